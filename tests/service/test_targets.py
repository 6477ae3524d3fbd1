"""Targets of queues that go: their jobs go slice by slice, and others pass in between."""

import asyncio

import pytest

from zq.features.targets import service
from zq.features.targets.model import TargetNotFound
from zq.features.targets.service import Targets
from zq.model.job import NewJob
from zq.model.reach import EVERYWHERE
from zq.model.settings import QueueSettings
from zq.service.services import Services

JOBS = 100


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "SLICE", 2)


async def stored(services: Services, queue: str, count: int) -> None:
    await services.jobs.enqueue([NewJob(queue, "t", "{}", 2) for _ in range(count)], EVERYWHERE)


async def left(services: Services, queue: str) -> int:
    return sum((await services.queues.statistics_of(queue, EVERYWHERE)).counts.values())


@pytest.fixture
async def services(services: Services) -> Services:
    await services.queues.set("q", QueueSettings(fan_out=("a", "b")), EVERYWHERE)
    await stored(services, "q", JOBS)
    return services


async def test_others_have_their_turn_while_a_target_goes(services: Services) -> None:
    going = asyncio.create_task(services[Targets].remove("q", "b", EVERYWHERE))
    seen, more = set[int](), 0
    while not going.done():
        await stored(services, "q", 1)
        more += 1
        seen.add(await left(services, "b"))
    assert any(0 < count < JOBS - 10 for count in seen)
    assert JOBS <= await going <= JOBS + more
    assert (await left(services, "b"), await left(services, "a")) == (0, JOBS + more)
    await stored(services, "q", 1)
    assert await left(services, "b") == 0


async def test_a_removal_that_was_cut_short_goes_on_when_it_is_called_again(
    services: Services,
) -> None:
    going = asyncio.create_task(services[Targets].remove("q", "b", EVERYWHERE))
    while await left(services, "b") == JOBS:
        assert not going.done()
        await asyncio.sleep(0)  # between two looks, as between two requests, others have their turn
    going.cancel()
    await asyncio.wait([going])
    rest = await left(services, "b")
    targets = (await services.queues.settings("q", EVERYWHERE)).fan_out
    if rest:
        assert targets == ("a", "b")
    if targets == ("a", "b"):  # It may have been cut short between its last job and its name.
        assert await services[Targets].remove("q", "b", EVERYWHERE) == rest
    assert await left(services, "b") == 0
    with pytest.raises(TargetNotFound):
        await services[Targets].remove("q", "b", EVERYWHERE)
    assert await left(services, "a") == JOBS


async def test_a_queue_that_is_no_target_keeps_its_jobs(services: Services) -> None:
    await stored(services, "c", 20)
    with pytest.raises(TargetNotFound):
        await services[Targets].remove("q", "c", EVERYWHERE)
    await services.queues.set("own", QueueSettings(fan_out=("own", "a")), EVERYWHERE)
    await stored(services, "own", 20)
    assert await services[Targets].remove("own", "own", EVERYWHERE) == 0
    assert (await left(services, "c"), await left(services, "own")) == (20, 20)
