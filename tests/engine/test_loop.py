"""The tick loop: who learns of a tick, and what becomes of one that fails."""

import asyncio
import errno
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from conformance.streams import pause
from manual_clock import ManualClock
from store.rig import new_job

from zq.engine.after_commit import Committed
from zq.engine.delivery.streams import Streams
from zq.engine.foreign_lock import ForeignLock
from zq.engine.inbox import Inbox, PendingReply
from zq.engine.loop import Alarm, Durability, LoopParts, Openings, Pace, TickLoop, Timetable
from zq.engine.upkeep import Upkeep
from zq.features.crons.model import EntryDraft
from zq.features.crons.model_expression import CronExpression
from zq.features.crons.service_running import Crons
from zq.features.forward.model import LaneRule
from zq.features.forward.service import Lanes
from zq.instance import Instance
from zq.model.commands import AnyCommand, Clear, Return, Tick, TickResult
from zq.model.errors import DiskFailed, Internal, OutcomeUnknown
from zq.model.ids import Mint
from zq.model.job import BackoffRule
from zq.model.leasing import Terms
from zq.model.reach import EVERYWHERE
from zq.model.settling import Policy
from zq.store.errors import StoreFailed, StoreFull
from zq.store.sqlite.store import open_store
from zq.tick.runner import make_ticks


class Noting:
    """Notes what it is told."""

    def __init__(self, name: str, told: list[str], reply: list[PendingReply[int]]) -> None:
        self.listens = True
        self._name = name
        self._told = told
        self._reply = reply

    def learn(self, _: Committed) -> None:
        self._told.append(f"{self._name} {self._reply[0].done()}")


async def test_each_who_listens_hears_once_and_after_whoever_waits(tmp_path: Path) -> None:
    clock, inbox = ManualClock(), Inbox(10)
    store = await open_store(
        tmp_path,
        make_ticks(Policy(3, BackoffRule(1, 1, 1), 0, 0), Random(1)),
        cache_bytes=2**20,
        read_timeout=5,
        max_wal=2**20,
        clock=clock,
    )
    told: list[str] = []
    replies: list[PendingReply[int]] = []
    first, deaf, last = (Noting(name, told, replies) for name in ("first", "deaf", "last"))
    deaf.listens = False
    loop_parts = LoopParts(
        Alarm(clock, inbox.awake.set),
        Timetable(clock, store.steady, store.at_start.deadlines, 30),
        Openings(clock),
        Pace(),
        Upkeep(store, clock, ForeignLock(clock)),
        ForeignLock(clock),
    )
    streams = Streams(0, 0, inbox.give_back)
    loop = TickLoop(
        *(store, clock, inbox, streams, loop_parts, Durability(True, True), [first, deaf, last]),
        mint=Mint(0),
    )
    running = asyncio.create_task(loop.run())
    replies.append(inbox.submit(Clear()))
    assert await replies[0] == 0
    loop.stop()
    await running
    assert told == ["first True", "last True"]
    await store.close()


async def test_who_comes_during_a_tick_does_not_wait_for_a_copy_of_the_log_too(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, store, jobs = instance.engine.inbox, instance._store, instance.services.jobs
    order: list[str] = []
    checkpoint, others = store.checkpoint, list[asyncio.Task[None]]()
    copied = asyncio.Event()

    async def noted(*, shrink: bool = False) -> None:
        order.append("log copied")
        copied.set()
        await checkpoint(shrink=shrink)

    async def store_one(name: str) -> None:
        await jobs.enqueue([new_job()], EVERYWHERE)
        order.append(name)

    def taken() -> None:
        if len(others) < 3:
            others.append(asyncio.create_task(store_one(f"job {len(others) + 1}")))

    monkeypatch.setattr(store, "checkpoint", noted)
    monkeypatch.setattr(inbox, "when_taken", taken)
    await jobs.enqueue([new_job()] * 1_000, EVERYWHERE)
    await copied.wait()
    await asyncio.gather(*others)
    assert order[:2] == ["job 1", "log copied"]


def failing(
    monkeypatch: pytest.MonkeyPatch, instance: Instance, *errors: Exception
) -> list[Sequence[AnyCommand]]:
    """Have the next ticks of a store raise these errors. Return their commands."""
    store, left, failed = instance._store, list(errors), list[Sequence[AnyCommand]]()
    run = store.tick

    async def tick(wanted: Tick) -> TickResult:
        if not left:
            return await run(wanted)
        failed.append(wanted.commands)
        raise left.pop(0)

    monkeypatch.setattr(store, "tick", tick)
    return failed


async def test_a_tick_that_raises_anything_answers_its_callers_and_ticks_go_on(
    instance: Instance, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine, jobs = instance.engine, instance.services.jobs
    failed = failing(monkeypatch, instance, *[ValueError("a fault")] * 3)
    callers = [asyncio.create_task(jobs.enqueue([new_job()], EVERYWHERE)) for _ in range(2)]
    engine.inbox.give_back(Return(1, [7]))
    for caller in callers:
        with pytest.raises(Internal):
            await caller
    for _ in range(2):
        with pytest.raises(Internal):
            await jobs.enqueue([new_job()], EVERYWHERE)
    assert await jobs.enqueue([new_job()], EVERYWHERE)
    # Nobody waits for a return, so it is tried again.
    assert [len(commands) for commands in failed] == [3, 2, 2]
    assert all(isinstance(commands[0], Return) for commands in failed)
    assert caplog.text.count("ValueError: a fault") == 1
    assert not engine.failure.done()


async def test_a_subscriber_that_raises_keeps_no_other_from_learning(
    instance: Instance, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Faulty:
        listens = True

        def learn(self, _: Committed) -> None:
            raise ValueError("a fault")

    loop = instance.engine._loop
    monkeypatch.setattr(loop, "_subscribers", (Faulty(), *loop._subscribers))
    for _ in range(3):
        await instance.services.jobs.enqueue([new_job()], EVERYWHERE)
    assert instance.engine.stats.jobs.stored == 3
    assert caplog.text.count("ValueError: a fault") == 1


async def test_race_the_end_does_not_wait_for_returns_that_a_full_disk_refuses(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start returns these jobs anyway."""
    with monkeypatch.context() as patch:
        failed = failing(patch, instance, *[StoreFull("no space")] * 1000)
        instance.engine.inbox.give_back(Return(1, [7]))
        while not failed:
            await pause()
        await instance.engine.stop()
    assert len(failed) < 10


async def test_a_store_that_fails_ends_the_loop_and_nobody_waits(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, instance, StoreFailed("broken"))
    jobs = instance.services.jobs
    with instance.services.work.claimer("q", EVERYWHERE, 1, Terms(), wait_ms=60_000) as claimer:
        with pytest.raises(OutcomeUnknown):
            await jobs.enqueue([new_job()], EVERYWHERE)
        assert await claimer.take() == []
    assert isinstance(await instance.engine.failure, StoreFailed)
    with pytest.raises(DiskFailed):
        await jobs.enqueue([new_job()], EVERYWHERE)


async def test_a_disk_that_has_failed_is_not_told_of_again_and_again(
    instance: Instance,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A server ends by it. The owner of an embedded engine ends that whenever they like."""
    monkeypatch.setattr("zq.features.forward.service.LOOK_S", 0.001)
    services = instance.services
    every_minute = EntryDraft("e", CronExpression("0 * * * * *"), "UTC", None, new_job())
    await services[Crons].put_entry("g", every_minute, EVERYWHERE)
    await services[Lanes].put("up", LaneRule(("q",), max_age_ms=60_000))
    broken = asyncio.get_running_loop().create_future()
    broken.set_exception(OSError(errno.EIO, "Input/output error"))
    monkeypatch.setattr(cast(Any, instance._store)._flush, "begin", lambda: broken)
    with pytest.raises(OutcomeUnknown):
        await services.jobs.enqueue([new_job()], EVERYWHERE)
    await instance.engine.failure
    caplog.clear()
    for _ in range(100):
        clock.advance(1000)
        await asyncio.sleep(0.001)
    assert not caplog.messages


@pytest.mark.parametrize("cause", ["its time", "a stop"])
async def test_race_a_wait_that_is_over_while_its_tick_is_flushed_ends_with_its_jobs(
    instance: Instance, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    """The tick has committed the lease: a crash after the answer [] would leave it behind."""
    work, terms = instance.services.work, Terms(60_000, claimant="c")
    flush: Any = cast(Any, instance._store)._flush
    begin, landed = flush.begin, asyncio.get_running_loop().create_future()
    begun = asyncio.Event()

    def held_up() -> Any:
        if begun.is_set():
            return begin()
        begun.set()
        return landed

    with (
        work.claimer("q", EVERYWHERE, 1, terms, wait_ms=1000) as claimer,
        work.claimer("other", EVERYWHERE, 1, terms, wait_ms=1000) as other,
    ):
        await instance.services.jobs.enqueue([new_job(queue="third")], EVERYWHERE)
        monkeypatch.setattr(flush, "begin", held_up)
        enqueue = asyncio.create_task(instance.services.jobs.enqueue([new_job()], EVERYWHERE))
        await begun.wait()
        if cause == "a stop":
            instance.engine.streams.stop()
        else:
            clock.advance(1000)
        assert not claimer.is_done
        landed.set_result(None)
        (job,) = await claimer.take()
        assert job.key == (await enqueue).keys[0]
        assert await other.take() == []


async def test_race_a_wait_that_is_over_while_its_tick_fails_ends_with_nothing(
    instance: Instance, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = failing(monkeypatch, instance, *[StoreFull("no space")] * 3)
    terms = Terms(60_000, claimant="c")
    with instance.services.work.claimer("q", EVERYWHERE, 1, terms, wait_ms=1000) as claimer:
        while not failed:
            await pause()
        clock.advance(1000)
        assert await claimer.take() == []
