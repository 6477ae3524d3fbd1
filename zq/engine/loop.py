"""The tick loop: gathers what waits, runs one transaction, spreads the news, and again.

No timer delays a commit. While one tick commits the next gathers, so batches grow with load by
themselves.
"""

import asyncio
import logging
import math
import sqlite3
from collections.abc import Sequence

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
from zq.model.clock import Clock
from zq.model.commands import Command, Enqueue, Return, SetAside, Tick, TickResult
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

WAL_RETRY_S = 1.0
"""Time between two looks whether the reader is gone that keeps the WAL over its limit."""


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
        self._awake = asyncio.Event()
        self._stopping = False
        self._untidy = True
        store.when_unreadable = self.set_aside
        self._ticked = self._synced = self._checkpointed = clock.monotonic()

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
                if not await self._tick() and not await self._tidy():
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

    async def _tick(self) -> bool:
        """Run one tick. False where there was nothing to do."""
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
            return False
        tick = Tick(
            now=now,
            steady=steady,
            commands=batch,
            claims=plan.claims,
            due=due,
            durable=self._sync_due() or self._must_sync(batch, plan),
            workers=self._streams.workers,
            monotonic=self._clock.monotonic(),
        )
        started = self._clock.monotonic()
        try:
            result = await self._store.tick(tick)
            # Before anybody is told of it: it is in no file that a restart would find.
            self._store.check_files()
        except sqlite3.Error as error:
            self._fail(requests, error)
            self._streams.postpone(plan)
            # What waits without a command, say a claim, would fail again at once.
            await asyncio.sleep(FULL_PAUSE_S)
            return True
        if tick.durable:
            self._synced = started
        seconds = self._clock.monotonic() - started
        rows = sum([request.rows for request in requests])
        # In a batch new jobs come last.
        new = bool(batch) and isinstance(batch[-1], Enqueue)
        rest = bool(batch) and not isinstance(batch[0], Enqueue)
        self._pace.learn(started, seconds, result.commit_s, rows, new=new, rest=rest)
        self.stats.learn(result, seconds, tick.durable)
        self.readers.learn(result.logged, tick.durable)
        self.flows.learn(result.traffic)
        self._learn(requests, plan, result)
        self.events.learn(now, batch, result)
        self._timetable.note(due, now)
        self._untidy, self._ticked = True, self._clock.monotonic()
        if self._store.wants_checkpoint or self._wal_retry() <= 0:
            # One turn of the event loop first: replies go out before the disk is busy again.
            await asyncio.sleep(0)
            await self._checkpoint()
        return True

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

    def _learn(self, requests: list[Request], plan: Plan, result: TickResult) -> None:
        if result.deadlines is not None:
            self._timetable.learn(result.deadlines)
        self._openings.learn(result.openings)
        # Replies first: a worker that has its reply sends more while frames are still rendered.
        for request, reply in zip(requests, result.replies, strict=True):
            request.reply(reply)
        self.waiters.learn([request.command for request in requests], result)
        for rest in self._streams.apply(result, plan):
            self.inbox.submit(rest)

    def _fail(self, requests: list[Request], error: sqlite3.Error) -> None:
        """Answer everyone who waits for a tick that has come to nothing."""
        if stops_the_server(error):
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
        timer = self._clock.call_later(self._delay(), self.wake)
        await self._awake.wait()
        self._awake.clear()
        timer.cancel()

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
