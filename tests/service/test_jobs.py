"""Jobs by their keys, without a door."""

import asyncio

import pytest

from zq.features.sweeps.service_running import Sweeps
from zq.instance import Instance
from zq.model.errors import JobNotFound, NotDead, QueueOutOfReach, ServiceUnavailable
from zq.model.filters import EVERYTHING, Filter
from zq.model.job import NewJob
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE, Reach
from zq.service.services import Services

HERE = Reach(("q",))


def new(queue: str = "q") -> NewJob:
    return NewJob(queue, "t", "{}", 2)


async def test_a_job_is_known_by_its_key_to_all_within_reach(services: Services) -> None:
    stored = await services.jobs.enqueue([new()], HERE)
    (key,) = stored.keys
    assert stored.joined == 0
    assert (await services.jobs.get(key, HERE)).payload == "{}"
    with pytest.raises(JobNotFound):
        await services.jobs.get(key, Reach(("other",)))
    with pytest.raises(QueueOutOfReach):
        await services.jobs.enqueue([new("p")], HERE)


async def test_a_change_answers_the_job_as_it_is_then(services: Services) -> None:
    (key,) = (await services.jobs.enqueue([new()], EVERYWHERE)).keys
    assert (await services.jobs.patch(key, Patch(priority=7), EVERYWHERE)).priority == 7
    with pytest.raises(QueueOutOfReach):
        await services.jobs.patch(key, Patch(queue="p"), HERE)
    with pytest.raises(NotDead):
        await services.jobs.requeue(key, EVERYWHERE)
    assert (await services.jobs.cancel(key, False, EVERYWHERE)).status is Status.CANCELLED


async def test_whoever_waits_hears_how_a_job_ends(services: Services) -> None:
    (key,) = (await services.jobs.enqueue([new()], EVERYWHERE)).keys
    waiting = asyncio.create_task(services.jobs.ending(key, EVERYWHERE, 1_000))
    await asyncio.sleep(0)
    await services.jobs.cancel(key, False, EVERYWHERE)
    assert (await waiting).status is Status.CANCELLED
    assert (await services.jobs.ending(key, EVERYWHERE, 0)).is_final


async def test_jobs_are_listed_counted_and_swept_by_a_filter(services: Services) -> None:
    keys = (await services.jobs.enqueue([new(), new("p"), new()], EVERYWHERE)).keys
    page = await services.listing.page(Filter(queues=("q",)), -1, False, 1)
    assert ([job.key for job in page.jobs], page.more) == ([keys[0]], True)
    assert await services.listing.count(Filter(queues=("q",))) == 2
    assert await services.queues.names(EVERYWHERE) == ["p", "q"]
    assert await services.queues.names(HERE) == ["q"]
    assert await services[Sweeps].delete(Filter(queues=("q",))) == 2
    assert await services[Sweeps].delete(EVERYTHING) == 1
    assert await services.listing.count(EVERYTHING) == 0


async def test_after_a_failure_of_the_disk_nothing_is_taken(instance: Instance) -> None:
    instance.engine.inbox.close()
    with pytest.raises(ServiceUnavailable):
        await instance.services.jobs.enqueue([new()], EVERYWHERE)
