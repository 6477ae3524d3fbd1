"""Reads: deadlines, cancellations, pages of large payloads, odd text."""

import asyncio
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from zq.model.commands import Fail
from zq.model.errors import ReadersBusy, ReadTimeout, ServiceUnavailable
from zq.model.filters import EVERYTHING
from zq.model.lifecycle import Status
from zq.model.settling import Failure
from zq.store import lookups
from zq.store.lanes import MOST_WAITING, SCANNERS
from zq.store.snapshot import Snapshot

from ..rig import FOREVER, POLICY, Rig, core_of

SOON_S = 0.5
PATIENCE_S = 60


class LongRead:
    """A read without an end, as a very long listing would be: two statements, the first short.

    `under_way` is set within the second one, or with `pause` before it, where it waits for `go_on`.
    """

    def __init__(self, *, pause: bool = False) -> None:
        self._loop = asyncio.get_running_loop()
        self.under_way = asyncio.Event()
        self.ended = asyncio.Event()
        self.go_on = threading.Event()
        self._pause = pause
        self._give_up = False

    def __call__(self, connection: sqlite3.Connection) -> None:
        connection.create_function("goes_on", 0, self._goes_on)
        connection.execute("SELECT 1").fetchone()
        if self._pause:
            self._signal(self.under_way)
            self.go_on.wait()
        try:
            connection.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                " WHERE i % 1000 OR goes_on()) SELECT count(*) FROM n"
            ).fetchone()
        finally:
            self._signal(self.ended)

    def _goes_on(self) -> bool:
        self._signal(self.under_way)
        # Only so that a test that fails also ends.
        return not self._give_up

    def _signal(self, event: asyncio.Event) -> None:
        self._loop.call_soon_threadsafe(event.set)

    async def end(self) -> None:
        """Wait until it has been stopped. Fails if nobody does."""
        try:
            await asyncio.wait_for(self.ended.wait(), PATIENCE_S)
        finally:
            self._give_up = True


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[Rig]:
    """A store with little patience for readers."""
    rig = Rig(tmp_path / "data", read_timeout=SOON_S)
    await rig.open()
    yield rig
    await rig.close()


async def check_every_reader(rig: Rig) -> None:
    """Each reader answers, and none was lost: as many as there are answer at the same time."""
    # Threads that meet may need longer than a hasty store gives them.
    rig.store.readers.scans._timeout = PATIENCE_S
    keys = await rig.keep(1)
    meeting = threading.Barrier(SCANNERS, timeout=PATIENCE_S)

    def read(snapshot: Snapshot) -> list[int]:
        meeting.wait()
        return lookups.list_keys(snapshot, EVERYTHING, 0, FOREVER, 10)

    scans = rig.store.reads.lanes.scans
    for found in await asyncio.gather(*(scans(read) for _ in range(SCANNERS))):
        assert found[-1:] == keys


@asynccontextmanager
async def all_scanners_busy(rig: Rig) -> AsyncIterator[None]:
    """Every scanner reads without an end."""
    busy = [LongRead(pause=True) for _ in range(SCANNERS)]
    tasks = [asyncio.create_task(rig.store.readers.scans.read(long)) for long in busy]
    for long in busy:
        await long.under_way.wait()
    try:
        yield
    finally:
        for task, long in zip(tasks, busy, strict=True):
            task.cancel()
            long.go_on.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(long.end() for long in busy))


async def test_a_read_after_the_end_opens_nothing(rig: Rig) -> None:
    await rig.store.readers.looks.read(lambda _: None)
    await rig.store.readers.close()
    with pytest.raises(ServiceUnavailable, match="stopping"):
        await rig.store.readers.looks.read(lambda _: None)


async def test_a_read_past_its_deadline_is_stopped_with_advice(hasty: Rig) -> None:
    long = LongRead()
    with pytest.raises(ReadTimeout, match="narrow the filter") as refusal:
        await hasty.store.readers.scans.read(long)
    assert f"{SOON_S:g} s" in refusal.value.message
    await long.end()


async def test_readers_work_after_their_deadlines(hasty: Rig) -> None:
    for _ in range(SCANNERS + 1):
        with pytest.raises(ReadTimeout):
            await hasty.store.readers.scans.read(LongRead())
    await check_every_reader(hasty)


async def test_a_deadline_that_falls_between_two_statements_still_holds(hasty: Rig) -> None:
    long = LongRead(pause=True)
    # The loop's timers run in the order of their times: the deadline's comes before this one.
    asyncio.get_running_loop().call_later(1.5 * SOON_S, long.go_on.set)
    task = asyncio.create_task(hasty.store.readers.scans.read(long))
    await long.end()
    with pytest.raises(ReadTimeout):
        await task


async def test_a_cancelled_read_stops_and_does_not_hurt_the_next(rig: Rig) -> None:
    for _ in range(SCANNERS + 1):
        long = LongRead()
        task = asyncio.create_task(rig.store.readers.scans.read(long))
        await long.under_way.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await long.end()
    await check_every_reader(rig)


async def test_a_read_cancelled_between_two_statements_stops_as_well(rig: Rig) -> None:
    long = LongRead(pause=True)
    task = asyncio.create_task(rig.store.readers.scans.read(long))
    await long.under_way.wait()
    task.cancel()
    await asyncio.sleep(0)
    long.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await long.end()
    await check_every_reader(rig)


async def test_a_read_that_is_cancelled_while_it_waits_for_a_reader_takes_none(rig: Rig) -> None:
    async with all_scanners_busy(rig):
        waiting = asyncio.create_task(rig.store.reads.lanes.scans(lookups.key_range))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await check_every_reader(rig)


async def test_long_reads_hold_up_none_but_their_own_kind(rig: Rig) -> None:
    (key,) = await rig.keep(1, payload=f'"{"x" * 100_000}"')
    lanes = rig.store.reads.lanes
    async with all_scanners_busy(rig):
        scan = asyncio.create_task(lanes.scans(lookups.key_range))
        for lane in (lanes.deliveries, lanes.looks, lanes.sweeps):
            assert list(await lane(lookups.payloads, [key])) == [key]
        assert not scan.done()
    assert await scan == (key, key)


async def test_the_line_of_long_reads_is_bounded(rig: Rig) -> None:
    scans, served = rig.store.reads.lanes.scans, list[int]()

    async def scan(number: int) -> None:
        await scans(lookups.key_range)
        served.append(number)

    async with all_scanners_busy(rig):
        line = [asyncio.create_task(scan(number)) for number in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(ReadersBusy, match="try again later"):
            await scan(-1)
        # Whoever leaves the line makes room for another.
        line.pop().cancel()
        await asyncio.sleep(0)
        line.append(asyncio.create_task(scan(MOST_WAITING)))
        await asyncio.sleep(0)
        with pytest.raises(ReadersBusy):
            await scan(-1)
    await asyncio.gather(*line)
    assert sorted(served) == [*range(MOST_WAITING - 1), MOST_WAITING]


async def test_a_long_read_whose_turn_does_not_come_is_told_so(hasty: Rig) -> None:
    scans = hasty.store.reads.lanes.scans
    blocked = [LongRead(pause=True) for _ in range(SCANNERS)]
    tasks = [asyncio.create_task(hasty.store.readers.scans.read(long)) for long in blocked]
    for long in blocked:
        await long.under_way.wait()
    with pytest.raises(ReadersBusy, match="before this one"):
        await scans(lookups.key_range)
    for long in blocked:
        long.go_on.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    await check_every_reader(hasty)


async def test_an_error_of_the_query_is_raised_as_it_is_and_the_reader_goes_on(rig: Rig) -> None:
    for _ in range(SCANNERS + 1):
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await rig.store.readers.scans.read(
                lambda connection: connection.execute("SELECT * FROM missing")
            )
    await check_every_reader(rig)


async def test_a_reader_cannot_write(rig: Rig) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await rig.store.readers.scans.read(
            lambda connection: connection.execute("DELETE FROM jobs")
        )


async def test_a_purge_between_two_statements_of_a_read_is_not_seen_by_it(rig: Rig) -> None:
    (dead,) = await rig.keep(1)
    await rig.take(1)
    await rig.run(Fail(dead, Failure("m", kill=True)))
    rig.now += POLICY.dead_ms
    loop = asyncio.get_running_loop()
    statements: list[str] = []

    def purge_before_the_next(sql: str) -> None:
        statements.append(sql)
        if "purge_at" in sql:
            asyncio.run_coroutine_threadsafe(rig.run(purge=True), loop).result(PATIENCE_S)

    def counts(connection: sqlite3.Connection) -> Counter[tuple[str, Status]]:
        connection.set_trace_callback(purge_before_the_next)
        try:
            return lookups.visible_counts(core_of(connection), rig.now)
        finally:
            connection.set_trace_callback(None)

    assert +await rig.look(counts) == {}
    assert len([sql for sql in statements if sql.startswith("SELECT")]) == 2
    assert await rig.statuses() == {}, "it was purged meanwhile"
