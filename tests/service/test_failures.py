"""Looks at the causes of failures: how seldom the store is asked, and how they take turns."""

import asyncio
from collections.abc import Sequence

import pytest
from manual_clock import ManualClock

from zq.engine.turns import SLICE
from zq.features.failures.model import FailureRow
from zq.features.failures.service import LASTS_S, STEPS, Depth, Failures
from zq.features.failures.store import FailureReads
from zq.model.job import NewJob
from zq.model.leasing import Terms
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settling import Failure
from zq.service.services import Services


async def fail(services: Services, messages: Sequence[str]) -> None:
    """Have one job fail with each of these messages."""
    jobs = [NewJob("q", "t", "{}", 2) for _ in messages]
    keys = (await services.jobs.enqueue(jobs, EVERYWHERE)).keys
    terms = Terms(lease_ms=60_000, claimant="c")
    with services.work.claimer("q", EVERYWHERE, len(keys), terms, 0) as claimer:
        await claimer.take()
    failed = zip(keys, messages, strict=True)
    await asyncio.gather(
        *(
            services.work.fail(key, Failure(message, kill=True), EVERYWHERE)
            for key, message in failed
        )
    )


async def test_all_who_look_at_the_overview_share_one_answer_for_a_while(
    services: Services, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, asked = FailureReads.failures, list[int]()

    async def counted(reads: FailureReads, since: int, bar: int, length: int) -> list[FailureRow]:
        asked.append(since)
        return await read(reads, since, bar, length)

    monkeypatch.setattr(FailureReads, "failures", counted)
    await fail(services, ["one"])
    looks = await asyncio.gather(*(services[Failures].causes(EVERYWHERE) for _ in range(5)))
    assert [look.total for look in looks] == [1] * 5
    await fail(services, ["other"])
    assert (await services[Failures].causes(EVERYWHERE)).total == 1
    assert len(asked) == 1
    assert (await services[Failures].causes(Reach(("r",)))).total == 0
    assert (await services[Failures].groups(EVERYWHERE)).total == 2
    clock.advance(int(LASTS_S * 1000))
    found = await services[Failures].causes(EVERYWHERE)
    assert {group.message for group in found.first} == {"one", "other"}


async def test_others_are_served_while_many_causes_are_looked_at(services: Services) -> None:
    words = [f"{a}{b}" for a in "abcdefghij" for b in "abcdefghijklmnop"]
    await fail(services, words)
    before = services.turns.waited
    found = await services[Failures].groups(EVERYWHERE)
    assert found.total == len(words) == len(found.first)
    assert services.turns.waited - before == len(words) * STEPS // SLICE


async def test_where_not_all_failures_are_looked_at_more_jobs_may_be_dead(
    services: Services,
) -> None:
    await fail(services, ["same 1", "same 2", "same 3"])
    for most, expected in ((4, (3, False)), (3, (3, True)), (2, (2, True))):
        (group,) = (await services[Failures].groups(EVERYWHERE, depth=Depth(200, most))).first
        assert (group.dead, group.more_dead) == expected
