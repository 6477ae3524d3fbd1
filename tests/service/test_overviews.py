"""Looks at many queues: what they cost, and that one which remembers another one sees the same."""

from collections.abc import Awaitable, Callable, Generator
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

import pytest
from manual_clock import ManualClock

from zq.engine.delivery.takers import Stream, Subscription
from zq.engine.subscribers.figures import NO_FLOW
from zq.engine.subscribers.tallies import MOST_CHANGED, QueueChanges
from zq.features.diagnosis import service as judge
from zq.features.diagnosis.model import OLD_MS, Finding, FindingCode
from zq.features.diagnosis.service import UNKNOWN_MS, QueueJudge, SlowFindings, StuckWork
from zq.features.diagnosis.service_watched import WatchedQueue
from zq.features.forward.model import LaneRule
from zq.features.forward.service import Lanes
from zq.features.sweeps.service_running import Sweeps
from zq.features.trends.service import Trends
from zq.instance import Instance
from zq.model.filters import Filter
from zq.model.job import NewJob
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.model.settings import QueueSettings, SettingsPatch
from zq.operators.ops.service import StatusReader
from zq.operators.page import service as overviews
from zq.operators.page.service import RATES_MS, Overviews
from zq.operators.page.service_overview import Overview
from zq.service import queues
from zq.service.queues import QueueStatistics
from zq.service.services import Services
from zq.store import lookups
from zq.store.snapshot import Snapshot

T = TypeVar("T")

FLOWS = (NO_FLOW,) * 3
YEARS_MS = 3 * 365 * 86_400_000


class Turns(Generic[T]):
    """Awaits something, and counts how often it lets others run without waiting itself."""

    def __init__(self, work: Awaitable[T]) -> None:
        self.work = work
        self.count = 0

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self.work.__await__()
        while True:
            try:
                waits_for = next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            self.count += waits_for is None
            yield waits_for


def job(queue: str, **fields: Any) -> NewJob:
    return NewJob(queue, "t", "{}", 2, **fields)


async def enqueue(services: Services, *jobs: NewJob) -> None:
    await services.jobs.enqueue(jobs, EVERYWHERE)


async def test_ticks_get_their_turn_while_many_queues_are_looked_at(services: Services) -> None:
    await enqueue(services, *[job(f"q{number}") for number in range(1000)])

    look = Turns(services[Overviews].take())
    found = await look

    assert len(found.queues) == 1000
    assert found.totals == {Status.READY: 1000}
    assert look.count == 1000 // judge.AT_A_TIME + 1000 // queues.AT_A_TIME


async def test_a_look_reads_only_the_queues_that_have_changed(services: Services) -> None:
    await enqueue(services, *[job(f"q{number}") for number in range(1000)])
    await services[Overviews].take()
    await enqueue(services, job("q7"), job("new"))

    look = Turns(services[Overviews].take())
    found = await look

    assert look.count == 0
    assert found.totals == {Status.READY: 1002}
    counts = {queue.figures.queue: queue.waiting for queue in found.queues}
    assert (len(counts), counts["q7"], counts["new"], counts["q8"]) == (1001, 2, 1, 1)


async def test_a_look_reads_the_settings_of_queues_once(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = SettingsPatch(paused=True)
    await services.queues.set("q", patch, EVERYWHERE)
    read, reads = lookups.all_settings, list[Snapshot]()

    def counted(snapshot: Snapshot) -> dict[str, QueueSettings]:
        reads.append(snapshot)
        return read(snapshot)

    monkeypatch.setattr(lookups, "all_settings", counted)
    for _ in range(2):
        (queue,) = (await services[Overviews].take()).queues
        assert queue.settings is not None
        assert queue.settings.paused
    assert len(reads) == 2


class Seen(NamedTuple):
    """What two looks at the same moment have in common."""

    queues: dict[str, WatchedQueue]
    findings: list[Finding]
    totals: dict[Status, int]


def seen(overview: Overview, *, rates: bool) -> Seen:
    """What was seen, without the `rates`, and the findings which follow from them, if they may age.

    The age of a job is never looked at: it is that of the moment when its queue was read.
    """
    queues = {}
    for queue in overview.queues:
        figures = queue.figures._replace(oldest_ready_age_ms=None)
        if not rates:
            figures = QueueStatistics(figures.queue, figures.counts, None, *FLOWS, *figures[-1:])
            queue = queue._replace(flow=None, worst=None, place=0)
        queues[figures.queue] = queue._replace(figures=figures)
    return Seen(queues, list(overview.findings) if rates else [], dict(overview.totals))


class Rival:
    """The look that remembers, and one that remembers nothing."""

    def __init__(self, instance: Instance) -> None:
        self.services = instance.services

    async def same(self, *, rates: bool = True) -> Seen:
        """What both see while no tick comes in between. It fails unless that is the same."""
        services = self.services
        while True:
            await services.admin.ping()
            ticks = services[Overviews].ticks()
            found = seen(await services[Overviews].take(), rates=rates)
            fresh = Overviews(
                *(services.clock, services.queues, services.admin, services[StatusReader]),
                *(services[Trends], QueueChanges(), services[SlowFindings], services[QueueJudge]),
            )
            afresh = seen(await fresh.take(), rates=rates)
            await services.admin.ping()
            if services[Overviews].ticks() == ticks:
                assert found == afresh
                return found


async def test_findings_are_looked_for_after_the_clock_was_years_ahead(
    services: Services, clock: ManualClock
) -> None:
    async def found() -> list[FindingCode]:
        return [each.code for each in (await services[SlowFindings].read({})).findings]

    stream = services.work.open(["q"], EVERYWHERE, Subscription(window=1), lambda: 0)
    clock.step(YEARS_MS)
    assert await found() == []
    clock.step(-YEARS_MS)
    await enqueue(services, job("q"))
    await stream.wait()
    clock.advance(UNKNOWN_MS + 1)

    assert await found() == [FindingCode.STUCK]
    services.work.close(stream)


async def test_a_clock_that_is_set_forward_makes_no_job_look_stuck(
    services: Services, clock: ManualClock
) -> None:
    stream = services.work.open(["q"], EVERYWHERE, Subscription(window=1), lambda: 0)
    await enqueue(services, job("q"))
    await stream.wait()
    clock.step(YEARS_MS)
    clock.advance(UNKNOWN_MS)
    assert await services[StuckWork].find(EVERYWHERE, 9) == []

    clock.advance(1)
    (stuck,) = await services[StuckWork].find(EVERYWHERE, 9)
    assert stuck.ran_ms == UNKNOWN_MS + 1
    services.work.close(stream)


@pytest.fixture
async def rival(instance: Instance) -> Rival:
    # Idle queues have their turn to be read anew, one at each look, so the others hardly ever do.
    later = instance.services.clock.now_ms() + 86_400_000
    idle = [job(f"idle{number}", ready_at=later) for number in range(overviews.ROUND - 10)]
    await enqueue(instance.services, *idle)
    return Rival(instance)


async def test_old_jobs_are_told_of_without_a_tick(rival: Rival, clock: ManualClock) -> None:
    services = rival.services

    async def codes() -> list[FindingCode]:
        return [each.code for each in (await rival.same()).findings]

    await enqueue(services, job("q", ready_at=clock.now_ms() + 2 * OLD_MS), job("q"))
    stream = services.work.open(["q"], EVERYWHERE, Subscription(window=1), lambda: 0)
    await stream.wait()
    clock.advance(2 * OLD_MS)
    assert FindingCode.OLD not in await codes()
    clock.advance(OLD_MS - 1)
    assert FindingCode.OLD not in await codes()
    clock.advance(1)
    assert FindingCode.OLD in await codes()
    services.work.close(stream)


async def test_rates_fall_without_a_tick(rival: Rival, clock: ManualClock) -> None:
    services = rival.services
    stream = services.work.open(["q"], EVERYWHERE, Subscription(window=1), lambda: 0)
    await enqueue(services, job("q"), job("q"))
    await stream.wait()
    assert (await rival.same()).queues["q"].figures.deliveries.minute > 0
    clock.advance(90_000)
    assert (await rival.same()).queues["q"].figures.deliveries.minute == 0
    services.work.close(stream)


async def test_queues_that_leave_are_judged_anew_once_they_are_kept(
    rival: Rival, clock: ManualClock
) -> None:
    lanes = rival.services[Lanes]
    await enqueue(rival.services, job("q"), job("other"))
    clock.advance(2 * OLD_MS)
    assert {each.queue for each in (await rival.same()).findings} == {"q", "other"}
    await lanes.put("up", LaneRule(("q",)))
    assert {each.queue for each in (await rival.same()).findings} == {"other"}
    await lanes.drop("up")
    assert {each.queue for each in (await rival.same()).findings} == {"q", "other"}


async def test_a_reset_and_more_changes_than_are_remembered_are_seen(rival: Rival) -> None:
    await enqueue(rival.services, job("a"), job("b"))
    await rival.same()
    await rival.services.admin.clear()
    assert (await rival.same()).queues == {}
    for start in range(0, MOST_CHANGED + 1, 1000):
        some = range(start, min(start + 1000, MOST_CHANGED + 1))
        await enqueue(rival.services, *[job(f"q{number}") for number in some])
    assert len((await rival.same()).queues) == MOST_CHANGED + 1


async def test_a_look_that_fails_spoils_none_after_it(
    rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    await enqueue(rival.services, job("a"))
    await rival.same()
    await enqueue(rival.services, job("a"), job("b"))
    with monkeypatch.context() as patch:
        patch.setattr(rival.services.queues, "statistics", None)
        with pytest.raises(TypeError):
            await rival.services[Overviews].take()
    assert (await rival.same()).totals[Status.READY] == 3


class Operator:
    """Does something at random to six queues."""

    def __init__(self, services: Services, clock: ManualClock, random: Random) -> None:
        self.services = services
        self.clock = clock
        self.random = random
        self.streams: list[Stream] = []

    async def act(self) -> None:
        acts: list[Callable[[str], Awaitable[None]]] = [
            *(self.push, self.push, self.schedule, self.delete, self.pause),
            *(self.open, self.close, self.acknowledge, self.rest),
        ]
        await self.random.choice(acts)(self.random.choice("abcdef"))

    async def push(self, queue: str) -> None:
        await enqueue(self.services, *[job(queue) for _ in range(self.random.randrange(1, 4))])

    async def schedule(self, queue: str) -> None:
        later = self.clock.now_ms() + self.random.randrange(1, 90_000)
        await enqueue(self.services, job(queue, ready_at=later), job(queue, group="g"))

    async def delete(self, queue: str) -> None:
        await self.services[Sweeps].delete(Filter(queues=(queue,)))

    async def pause(self, queue: str) -> None:
        patch = SettingsPatch(paused=self.random.random() < 0.5)
        await self.services.queues.set(queue, patch, EVERYWHERE)

    async def open(self, queue: str) -> None:
        queues = [queue] if self.random.random() < 0.8 else []
        window = Subscription(window=self.random.randrange(1, 5))
        self.streams.append(self.services.work.open(queues, EVERYWHERE, window, lambda: 0))

    async def close(self, _queue: str) -> None:
        if self.streams:
            self.services.work.close(self.streams.pop(self.random.randrange(len(self.streams))))

    async def acknowledge(self, _queue: str) -> None:
        for stream in self.streams:
            if held := list(stream.held):
                await self.services.work.succeed(held, EVERYWHERE)

    async def rest(self, _queue: str) -> None:
        self.clock.advance(self.random.randrange(60_000))


@pytest.mark.parametrize("seed", range(4))
async def test_a_look_that_remembers_sees_what_one_sees_that_does_not(
    rival: Rival, clock: ManualClock, seed: int
) -> None:
    operator = Operator(rival.services, clock, Random(seed))
    for _ in range(60):
        await operator.act()
        await rival.same(rates=False)
        if operator.random.random() < 0.5:
            clock.advance(RATES_MS)
            await rival.same()
    for stream in operator.streams:
        rival.services.work.close(stream)
