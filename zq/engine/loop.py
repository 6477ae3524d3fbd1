"""The tick loop: gathers what waits, runs one transaction, spreads the news, and again.

No timer delays a commit. While one tick commits the next gathers, so batches grow with load by
themselves.
"""

import asyncio
import logging
import math
import sqlite3
from collections.abc import Callable, Sequence

from zq.engine.committed import Committed
from zq.engine.events import Events
from zq.engine.flows import Flows
from zq.engine.history import Readers
from zq.engine.inbox import Inbox, Request, commands
from zq.engine.openings import Openings
from zq.engine.pace import Pace
from zq.engine.stats import Stats
from zq.engine.streams import Plan, Streams
from zq.engine.timetable import Timetable
from zq.engine.waiters import Waiters
from zq.model.clock import Clock, Timer
from zq.model.commands import Command, Enqueue, Return, SetAside, Tick
from zq.model.errors import Internal, OutcomeUnknown, StorageFull
from zq.store.connection import is_full, stops_the_server
from zq.store.files import FilesMoved
from zq.store.store import Store
from zq.store.tick import STORAGE_FULL

log = logging.getLogger(__name__)

FULL_PAUSE_S = 0.1
"""Pause after a tick that failed although it was tried again: as a rule, the disk is full."""

LONGEST_NAP_S = 1.0
"""Look at the clock at least this often, for it may jump, and at the files, which may go away."""

SYNC_S = 1.0
"""Longest time that ticks go on without one that waits for the disk: with the rest until free space
is looked at, what buffered mode can lose is two seconds."""

IDLE_S = 1.0
"""Idle time after which free space is given back, a slice at a time."""

CHECK_S = 0.5
"""Time between two looks at the files of an idle server: they may have been removed or replaced."""

WAL_RETRY_S = 1.0
"""Time between two looks whether the reader is gone that keeps the WAL over its limit."""


class Alarm:
    """Wakes the loop at the next deadline, at the latest; sooner at times, for an earlier one.

    Most deadlines move on before they come. A timer that is left to fire costs less than one that
    is cancelled and set again with every tick.
    """

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._timer: Timer | None = None
        self._at = math.inf

    def set(self, delay: float) -> None:
        """Wake in so many seconds at the latest."""
        at = self._clock.monotonic() + delay
        if at < self._at:
            self.stop()
            self._at = at
            self._timer = self._clock.call_later(delay, self._ring)

    def stop(self) -> None:
        """Wake no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._at = None, math.inf

    def _ring(self) -> None:
        self._timer, self._at = None, math.inf
        self._wake()


class TickLoop:
    """Runs ticks until it is stopped or the disk fails; `failure` then says how."""

    def __init__(
        self,
        store: Store,
        streams: Streams,
        clock: Clock,
        *,
        max_inbox_jobs: int,
        reaper_interval: float,
        durable: bool,
        durable_enqueues: bool,
    ) -> None:
        self.inbox = Inbox(max_inbox_jobs, self.wake)
        self.waiters = Waiters()
        self.readers = Readers(store.logged)
        self.stats = Stats()
        self.flows = Flows(clock)
        self.events = Events(clock)
        self.delivering = True
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._store = store
        self._streams = streams
        self._clock = clock
        self._durable = durable
        self._durable_enqueues = durable_enqueues
        self._timetable = Timetable(clock, store.deadlines, reaper_interval)
        self._openings = Openings(clock)
        self._pace = Pace()
        self._learners: Sequence[Callable[[Committed], object]] = (
            self._pace.learn,
            self.stats.learn,
            self._timetable.learn,
            self._openings.learn,
            # Before frames are rendered: a worker that has its reply sends more meanwhile.
            self._reply,
            self.waiters.learn,
            self._deliver,
            self.readers.learn,
            self.flows.learn,
            self.events.learn,
        )
        """All that hears of a tick once it is on the disk, in this order."""
        self._awake = asyncio.Event()
        self._alarm = Alarm(clock, self.wake)
        self._stopping = False
        self._untidy = True
        store.when_unreadable = self.set_aside
        self._ticked = self._synced = self._checkpointed = self._checked = clock.monotonic()

    def wake(self) -> None:
        """Something has changed that a tick may want to know."""
        self._awake.set()

    def stop(self) -> None:
        """End the loop once nothing waits any more."""
        self._stopping = True
        self.wake()

    async def set_aside(self, source: str, keys: Sequence[object]) -> None:
        """Have those of the rows of a table set aside that cannot be read."""
        if not self.failure.done():
            await self.inbox.submit(SetAside(source, keys))

    async def run(self) -> None:
        """Tick until stopped. Never raises: a failure is set as `failure`, for the composition."""
        try:
            while not (self._stopping and not self.inbox):
                if self._has_work():
                    await self._tick()
                elif not await self._tidy():
                    await self._sleep()
        except Exception as error:
            if isinstance(error, FilesMoved):
                log.critical(str(error))
            else:
                log.critical("the tick loop has failed", exc_info=error)
            self.failure.set_result(error)
            self._streams.dismiss_all()
            for request in self.inbox.drain():
                request.reply(OutcomeUnknown("the server is stopping after a failure of its disk"))
        finally:
            self._alarm.stop()

    def _has_work(self) -> bool:
        """Whether a tick would find something to do, as far as that can be told at little cost."""
        if self.inbox or (self.delivering and self._streams.is_hungry):
            return True
        return self._timetable.is_due or self._openings.is_due

    async def _tick(self) -> None:
        """Run one tick, unless there turns out to be nothing to do."""
        # In this order: whoever gets a job whose lease is over gets it after its deadline, also by
        # the clock, however long the processor is away between the two.
        steady = self._timetable.steady
        now = self._clock.now_ms()
        requests = self.inbox.take(self._pace.rows, self._pace.beside)
        batch = commands(requests)
        self._streams.touch(self._openings.due())
        plan = self._streams.plan(batch) if self.delivering else Plan()
        due = self._timetable.due(now)
        if not (batch or plan.claims or due):
            return
        started = self._clock.monotonic()
        tick = Tick(
            now=now,
            steady=steady,
            commands=batch,
            claims=plan.claims,
            due=due,
            durable=self._sync_due() or self._must_sync(batch, plan),
            workers=self._streams.workers,
            monotonic=started,
        )
        try:
            result = await self._store.tick(tick)
        except (sqlite3.Error, OSError) as error:
            self._fail(requests, error)
            self._streams.postpone(plan)
            # What waits without a command, say a claim, would fail again at once.
            await asyncio.sleep(FULL_PAUSE_S)
            return
        if tick.durable:
            self._synced = started
        self._untidy, self._ticked = True, self._clock.monotonic()
        committed = Committed(tick, requests, plan, result, self._ticked - started)
        for learn in self._learners:
            learn(committed)
        if self._store.wants_checkpoint or self._wal_retry() <= 0:
            # One turn of the event loop first: replies go out before the disk is busy again.
            await asyncio.sleep(0)
            await self._checkpoint()

    async def _checkpoint(self) -> None:
        was_over = self._store.wal_is_over
        await self._store.checkpoint()
        if not self._store.uncopied_bytes:
            self.readers.synced()
        self._checkpointed = self._clock.monotonic()
        if self._store.wal_is_over is not was_over:
            fields = {"wal_bytes": self._store.wal_bytes()}
            if was_over:
                log.info("the write-ahead log is small again", extra={"fields": fields})
            else:
                log.warning(
                    "the write-ahead log is over --max-wal: new jobs are refused",
                    extra={"fields": fields},
                )

    def _wal_retry(self) -> float:
        """Seconds until a WAL over its limit is to be looked at again; infinite where none is."""
        if not self._store.wal_is_over:
            return math.inf
        return self._checkpointed + WAL_RETRY_S - self._clock.monotonic()

    async def _tidy(self) -> bool:
        """Use an idle moment: copy the WAL, give free space back. False before its time."""
        if self._clock.monotonic() - self._checked >= CHECK_S:
            self._checked = self._clock.monotonic()
            self._store.check_files()
        if self._wal_retry() <= 0:
            await self._checkpoint()
            return True
        if not self._untidy or self._clock.monotonic() - self._ticked < IDLE_S:
            return False
        await self._checkpoint()
        try:
            self._untidy = await self._store.tidy()
        except sqlite3.Error as error:
            if not is_full(error):
                raise
            self._ticked = self._clock.monotonic()  # try again after a rest
        return True

    def _reply(self, committed: Committed) -> None:
        for request, reply in zip(committed.requests, committed.result.replies, strict=True):
            request.reply(reply)

    def _deliver(self, committed: Committed) -> None:
        for rest in self._streams.apply(committed.result, committed.plan):
            self.inbox.submit(rest)

    def _fail(self, requests: list[Request], error: sqlite3.Error | OSError) -> None:
        """Answer everyone who waits for a tick that has come to nothing."""
        if isinstance(error, OSError) or stops_the_server(error):
            unknown = "the disk failed while this was being written: it may or may not be stored"
            for request in requests:
                request.reply(OutcomeUnknown(unknown))
            raise error
        log.error("a tick was rolled back", exc_info=error)
        for request in requests:
            if isinstance(request.command, Return):
                # Nobody waits for it, and the jobs must not stay with a stream that is gone.
                self.inbox.submit(request.command)
            elif is_full(error):
                request.reply(StorageFull(STORAGE_FULL))
            else:
                request.reply(Internal())

    def _must_sync(self, batch: list[Command], plan: Plan) -> bool:
        # A token that a power cut could take back might be given out a second time.
        claims = self._durable and bool(plan.claims)
        return claims or any(self._is_durable(command) for command in batch)

    def _is_durable(self, command: Command) -> bool:
        return self._durable_enqueues if isinstance(command, Enqueue) else self._durable

    def _sync_due(self) -> bool:
        return self._clock.monotonic() - self._synced >= SYNC_S

    async def _sleep(self) -> None:
        """Until something arrives or the next deadline, whichever comes first."""
        self._alarm.set(self._delay())
        await self._awake.wait()
        self._awake.clear()

    def _delay(self) -> float:
        """Seconds to the next deadline, or to the next look at the clock and the files."""
        delays: list[float] = [LONGEST_NAP_S]
        if self._untidy:
            delays.append(self._ticked + IDLE_S - self._clock.monotonic())
        awaited = (self._timetable.delay(), self._openings.delay())
        delays += [delay for delay in awaited if delay is not None]
        if self._store.wal_is_over:
            delays.append(self._wal_retry())
        return max(min(delays), 0.0)
