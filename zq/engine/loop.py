"""The tick loop: it gathers commands, runs one transaction, passes on the results, and repeats.

No timer delays a commit. The next tick gathers while one commits, so ticks grow with the load, up
to what `Pace` permits. `Timetable`, `Openings` and `Alarm` wake the loop when something falls due.
"""

import asyncio
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from zq.engine.after_commit import Committed, Subscriber
from zq.engine.delivery.streams import Streams
from zq.engine.delivery.takers import NO_PLAN, Plan
from zq.engine.foreign_lock import ForeignLock, refusal_by
from zq.engine.inbox import Inbox, PendingCommand
from zq.engine.upkeep import Upkeep
from zq.model.clock import Clock, SteadyClock, SteadyMark, Timer
from zq.model.commands import DATES, AnyCommand, Deadlines, Due, Return, Tick, TickResult
from zq.model.errors import OutcomeUnknown, StorageFull, ZqError, unexpected
from zq.model.ids import Mint
from zq.store.api import OthersNews, Store
from zq.store.errors import Fenced, FilesMoved, StoreBusy, StoreDamaged, StoreFailed, StoreFull

log = logging.getLogger(__name__)

PAUSE_S = 0.1
"""The pause after a failure: work without a command, such as a claim, would fail again at once."""

FIRST_LOOK_S, LAST_LOOK_S = 0.001, 0.05
"""The pauses between two looks at a lock of another program grow from the first to the last."""

LONGEST_NAP_S = 1.0
"""The loop looks at the clock, which may jump, and at the files, which may go away, this often."""

DOUBT_S = 20.0
"""A tick that is held up for so long leaves its callers in doubt: they are told that they are."""

UNKNOWN = "it may or may not be stored"

SYNC_S = 1.0
"""The longest time that ticks go on without a sync, in seconds, if they answer before it. Then an
idle server syncs after as long again, so buffered mode can lose two seconds."""


UNSEEN = (Due.PURGE, Due.NAMES, Due.TRIM, Due.RECORDS, Due.WRITES)
"""Clearances of data that nobody sees any more. They can wait until there is more to clear."""

NONE_DUE = frozenset[Due]()

MOST_ROWS = 20_000
LEAST_ROWS = 250

GOAL_S = 0.020
"""A tick that takes longer makes the next one smaller."""

SHARED_GOAL_S = 0.005
SHARED_S = 1.0
"""The goal in seconds while new jobs and other commands have both come within the last second. A
few more commits cost bulks of new jobs little, and the other commands do not wait long for each of
them. Without new jobs, acknowledgements may be as large as their senders can wait for. A slow disk
raises the goal."""

FORGET = 1.05
"""The shortest flush that is remembered grows by this factor with every tick."""

_COMMAND, _ROWS = attrgetter("command"), attrgetter("rows")
_NOTHING: Mapping[str, Callable[[Any], object]] = {}


class Durability(NamedTuple):
    """True for the commands that are on the disk before they are answered: acknowledgements and
    changes, and new jobs. What was answered earlier is flushed within `sync_s` seconds."""

    changes: bool
    enqueues: bool
    sync_s: float = SYNC_S

    @property
    def loses_ms(self) -> int:
        """The changes that a power cut may take: those of so many milliseconds, at the most."""
        return 0 if self.changes and self.enqueues else round(2000 * self.sync_s)


class TickTime(msgspec.Struct, frozen=True):
    """The time of a tick on the wall and in steady time, in milliseconds, and what is due then.

    `mark` is that of the steady time, if the tick has to store one.
    """

    now: int
    steady: int
    due: frozenset[Due]
    mark: SteadyMark | None


class Timetable:
    """The deadlines of ticks: dates by the wall clock, durations by steady time.

    Clearances are at least `rest` seconds apart.
    """

    def __init__(
        self, clock: Clock, steady: SteadyClock, deadlines: Deadlines, rest: float
    ) -> None:
        self._clock = clock
        self._steady = steady
        self.deadlines = deadlines
        self.holds_dates = False
        """True if dates that have come wait, since a step of the clock is looked into first."""
        self._longest_rest = rest
        self._cleared = dict.fromkeys(UNSEEN, clock.monotonic() - rest)

    def tick_time(self) -> TickTime:
        """The time of a tick that begins now, and what is due in it."""
        now, steady = self._steady.read()
        mark = self._steady.unstored()
        return TickTime(now, steady, self.due(now, steady) if self.deadlines else NONE_DUE, mark)

    def due(self, now: int, steady: int) -> frozenset[Due]:
        """The deadlines and dates that are due in a tick at a moment (milliseconds)."""
        return frozenset(
            due
            for due, time in self.deadlines.items()
            if time <= (now if due in DATES else steady) and not self._waits(due)
        )

    @property
    def is_due(self) -> bool:
        """True if anything is due."""
        now, steady = self._steady.read()
        return bool(self.deadlines) and bool(self.due(now, steady))

    def learn(self, committed: Committed) -> None:
        """Adopt the deadlines that a tick has found."""
        assert committed.result.deadlines is not None
        self.set(committed.result.deadlines)
        if committed.tick.due:
            self.note(committed.tick.due, committed.tick.steady)

    def set(self, deadlines: Deadlines) -> None:
        """Go by these deadlines from now on."""
        self.deadlines = deadlines

    def note(self, done: frozenset[Due], steady: int) -> None:
        """Begin the rest after a clearance, if everything that was due is gone."""
        for due in UNSEEN:
            if due in done and self.deadlines.get(due, steady + 1) > steady:
                self._cleared[due] = self._clock.monotonic()

    def delay(self) -> float | None:
        """The seconds until the next deadline; None if there is none."""
        now, steady = self._steady.read()
        delays = [
            max((time - (now if due in DATES else steady)) / 1000, self._rest(due))
            for due, time in self.deadlines.items()
            if not (self.holds_dates and due in DATES)
        ]
        return min(delays, default=None)

    def _waits(self, due: Due) -> bool:
        return (self.holds_dates and due in DATES) or bool(self._rest(due))

    def _rest(self, due: Due) -> float:
        if due not in self._cleared:
            return 0.0
        return max(self._cleared[due] + self._longest_rest - self._clock.monotonic(), 0.0)


class Openings:
    """The times at which the rates of queues let the next job through, by the monotonic clock.

    It wakes the streams that wait for these queues.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.times: dict[str, float] = {}

    @property
    def is_due(self) -> bool:
        """True if a queue has opened since the last call of `due`."""
        return bool(self.times) and min(self.times.values()) <= self._clock.monotonic()

    def note(self, times: Mapping[str, float]) -> None:
        """Expect these queues to open. A repeated call delays nothing."""
        for queue, time in times.items():
            self.times[queue] = min(time, self.times.get(queue, time))

    def due(self) -> list[str]:
        """The queues that have opened. Each is named once."""
        if not self.times:
            return []
        now = self._clock.monotonic()
        opened = [queue for queue, time in self.times.items() if time <= now]
        for queue in opened:
            del self.times[queue]
        return opened

    def delay(self) -> float | None:
        """The seconds until the next queue opens; None if none is expected."""
        if not self.times:
            return None
        return min(self.times.values()) - self._clock.monotonic()


class Alarm:
    """Wakes the loop at the next deadline, or sometimes earlier.

    While it `is_set`, nothing falls due before it rings, so nobody need look. Whoever learns of
    something earlier clears that. Most deadlines move on before they come: a timer that is left to
    fire costs less than one that is cancelled and set again with every tick.
    """

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._timer: Timer | None = None
        self._at = math.inf
        self.is_set = False

    def set(self, delay: float) -> None:
        """Wake the loop in `delay` seconds at the latest."""
        at = self._clock.monotonic() + delay
        if at < self._at:
            self.stop()
            self._at = at
            self._timer = self._clock.call_later(delay, self._go_off)
        self.is_set = True

    def ring(self) -> None:
        """Wake now: there is something to look at."""
        self.is_set = False
        self._wake()

    def stop(self) -> None:
        """Turn the alarm off."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._at = None, math.inf
        self.is_set = False

    def _go_off(self) -> None:
        self._timer, self._at = None, math.inf
        self.ring()


class Pace:
    """Learns from each tick how large the next one may be."""

    def __init__(self) -> None:
        self.rows = self.beside = MOST_ROWS
        """The rows that the next tick may have, and the rows that take no longer than the disk."""
        self._new_until = self._rest_until = float("-inf")
        self._disk_s = float("inf")

    def learn(self, committed: Committed) -> None:
        """Learn from a tick: its time, its weight, and the kinds of its commands."""
        tick = committed.tick
        batch = tick.commands
        self.note(
            tick.monotonic,
            committed.seconds,
            committed.result.flush_s,
            sum(map(_ROWS, committed.requests)),
            # New jobs and records come last in a batch.
            new=bool(batch) and batch[-1].comes_last,
            rest=bool(batch) and not batch[0].comes_last,
        )

    def note(
        self, now: float, seconds: float, flush_s: float, rows: int, *, new: bool, rest: bool
    ) -> None:
        """Learn from a tick of `rows` that took `seconds`, of which its flush took `flush_s`.

        `new` says whether it had new jobs, `rest` whether it had others. `now` is monotonic.
        """
        # The time of the smallest flush does not depend on the size of a tick.
        disk_s = self._disk_s * FORGET
        if flush_s < disk_s:
            disk_s = flush_s
        self._disk_s = disk_s
        seconds -= disk_s
        if new:
            self._new_until = now + SHARED_S
        if rest:
            self._rest_until = now + SHARED_S
        goal = GOAL_S
        if now < self._new_until and now < self._rest_until:
            goal = min(goal, max(SHARED_GOAL_S, disk_s))
        if seconds > goal:
            self.rows = max(int(self.rows * goal / seconds), LEAST_ROWS)
        elif rows * 2 >= self.rows:  # a tick that is short for lack of work proves nothing
            self.rows = min(self.rows * 2, MOST_ROWS)
        self.beside = int(self.rows * disk_s / goal)


class LoopParts(NamedTuple):
    """The schedule and the limits that the loop follows."""

    alarm: Alarm
    timetable: Timetable
    openings: Openings
    pace: Pace
    upkeep: Upkeep
    lock: ForeignLock


class TickLoop:
    """Runs ticks until it is stopped or the store fails. `failure` then says how.

    Any other error is answered to the callers whom it concerns and logged once, and the loop goes
    on.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        inbox: Inbox,
        streams: Streams,
        loop_parts: LoopParts,
        durability: Durability,
        subscribers: Sequence[Subscriber],
        mint: Mint,
        when_found: Mapping[str, Callable[[Any], object]] = _NOTHING,
    ) -> None:
        """`subscribers` learn of each tick in this order, after its commands have their replies.

        `when_found` has, by its name, who learns of what a tick has found for a room.
        """
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._store = store
        self._clock = clock
        self._inbox = inbox
        self._streams = streams
        self._alarm, self._timetable, self._openings = loop_parts[:3]
        self._pace, self._upkeep, self._lock = loop_parts[3:]
        self._durability = durability
        self._subscribers = subscribers
        self._when_found = when_found
        self._mint = mint
        self._stopping = False
        self._under_way: Sequence[PendingCommand] = ()
        """The commands of the tick that runs."""
        self._puts_off = False
        """True if the upkeep after the last tick has been put off until after the next one."""
        self._logged = ""
        """The last failure in the log, while it goes on."""
        self._faulty: list[Subscriber] = []
        """The subscribers of which a failure is in the log."""
        self._synced = clock.monotonic()
        self.when_heard: list[Callable[[], object]] = []
        """Called from time to time while other servers may change anything in the store."""
        self._heard: list[OthersNews] = []

    def hear(self, news: OthersNews) -> None:
        """Learn before the next tick what other servers have done, and look for jobs again."""
        self._heard.append(news)
        self._inbox.awake.set()

    def stop(self) -> None:
        """End the loop once no command waits any more."""
        self._stopping = True
        self._inbox.awake.set()

    async def run(self) -> None:
        """Tick until stopped. This never raises: it sets an error as `failure`."""
        try:
            while not (self._stopping and not self._inbox.commands):
                try:
                    if self._heard:
                        self._learn_others()
                    if self._has_work():
                        await self._tick()
                    elif self._alarm.is_set:
                        await self._sleep()
                    elif (nap := await self._upkeep.tidy()) > 0:
                        self._set_alarm(nap)
                except StoreFailed:
                    raise
                except Exception as error:
                    self._log(error)
                    await asyncio.sleep(PAUSE_S)
        except StoreFailed as error:
            log.critical(failure_text(error))
            self.failure.set_result(error)
            self._upkeep.fail(error)
            self._streams.stop()
            self._inbox.close()
        finally:
            self._alarm.stop()

    def _has_work(self) -> bool:
        """True if a tick would find work, as far as a cheap check can tell."""
        streams = self._streams
        if self._inbox.commands or ((streams.hungry or streams.hasty) and streams.is_hungry):
            return True
        # While the alarm is set, nothing falls due before it rings.
        if not self._alarm.is_set and self._timetable.is_due:
            return True
        return bool(self._openings.times) and self._openings.is_due

    async def _tick(self) -> None:
        """Run one tick, unless it has nothing to do. If it fails, its commands learn of that."""
        time = self._timetable.tick_time()
        inbox, pace = self._inbox, self._pace
        requests = inbox.take(pace.rows, pace.beside) if inbox.commands else []
        self._under_way = requests
        try:
            await self._do(requests, time)
        except Exception as error:
            self._refuse(requests, error)
            raise
        finally:
            self._under_way = ()

    async def _do(self, requests: list[PendingCommand], time: TickTime) -> None:
        """Run one tick with these commands."""
        batch: list[AnyCommand] = [*map(_COMMAND, requests)]
        if self._openings.times:
            self._streams.touch(self._openings.due())
        plan = self._streams.plan(batch) if self._streams.listens else NO_PLAN
        if not (batch or plan.claims or time.due):
            return
        started = self._clock.monotonic()
        tick = Tick(
            now=time.now,
            steady=time.steady,
            commands=batch,
            claims=plan.claims,
            due=time.due,
            durable=started - self._synced >= self._durability.sync_s
            or self._must_sync(batch, plan),
            workers=self._streams.workers,
            monotonic=started,
            mint=self._mint,
            mark=time.mark,
        )
        try:
            try:
                result = await self._store.tick(tick)
            except StoreBusy as cause:
                tick, result = await self._once_unlocked(tick, cause)
        except BaseException:
            self._streams.postpone(plan)
            raise
        if self._logged or self._lock.since is not None:
            self._logged = ""
            self._lock.gone()
        if tick.mark is not None:
            self._store.steady.stored(tick.mark)
        if result.durable:
            self._synced = started
        ended = self._clock.monotonic()
        self._tell(Committed(tick, requests, plan, result, ended - started))
        if self._upkeep.ticked(ended, durable=result.durable):
            # One turn of the event loop first: replies are sent before the disk is busy again.
            await asyncio.sleep(0)
            # Who has come during this tick is not to wait for the upkeep too: that goes second.
            self._puts_off = bool(self._inbox.commands) and not self._puts_off
            if not self._puts_off:
                await self._upkeep.between_ticks()
        elif not (requests or result.durable):
            # Many groups may be asked in one such tick after the other: requests come in between.
            await asyncio.sleep(0)

    def _tell(self, committed: Committed) -> None:
        """Tell the waiting commands and the subscribers of a tick that is on the disk."""
        result = committed.result
        if result.deadlines is not None:
            self._timetable.learn(committed)
            self._alarm.is_set = False
        if result.openings:
            self._openings.note(result.openings)
            self._alarm.is_set = False
        if result.found:
            for name, value in result.found.items():
                if (learn := self._when_found.get(name)) is not None:
                    learn(value)
        self._pace.learn(committed)
        # Replies come before frames are rendered: a worker with its reply sends more meanwhile.
        for request, reply in zip(committed.requests, result.replies, strict=True):
            if not request.future.done():  # else nobody waits any more
                request.future.set_result(reply)
        for subscriber in self._subscribers:
            if subscriber.listens:
                try:
                    subscriber.learn(committed)
                except Exception as error:
                    self._log_once(subscriber, error)

    def _learn_others(self) -> None:
        """Learn what other servers have done. All ticks of this one so far are learnt by now."""
        heard, self._heard = self._heard, []
        for news in heard:
            ended = TickResult(ended=news.ended, revoked=news.revoked, lapsed=news.lapsed)
            for rest in self._streams.apply(ended, Plan()):
                self._inbox.give_back(rest)
            self._streams.touch_all(news.woken)
            if news.deadlines is not None:
                self._timetable.set(news.deadlines)
            for name, value in news.found.items():
                if (learn := self._when_found.get(name)) is not None:
                    learn(value)
            if news.is_round:
                for look_again in self.when_heard:
                    look_again()
        self._alarm.is_set = False

    async def _once_unlocked(self, tick: Tick, cause: StoreBusy) -> tuple[Tick, TickResult]:
        """Run a tick that something holds up, with the time at which it ran.

        Raises `StoreBusy` if that takes too long.
        """
        pause = FIRST_LOOK_S
        while not self._lock.met(cause):
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_LOOK_S)
            time = self._timetable.tick_time()
            now = self._clock.monotonic()
            times = {"now": time.now, "steady": time.steady, "monotonic": now, "mark": time.mark}
            tick = structs.replace(tick, **times)
            try:
                return tick, await self._store.tick(tick)
            except StoreBusy as error:
                cause = error
        raise cause

    def hold_up(self, cause: StoreBusy) -> bool:
        """Refuse what waits, if the tick under way has been held up for long.

        Returns True if it is not to be waited for any longer, since the loop is to end.
        """
        if self._lock.met(cause):
            self._refuse(self._inbox.take(MOST_ROWS, MOST_ROWS), cause)
        if self._lock.seconds() >= DOUBT_S:
            for request in self._under_way:
                request.reply(OutcomeUnknown(f"{cause}: {UNKNOWN}"))
        return self._stopping

    def _refuse(self, requests: list[PendingCommand], error: Exception) -> None:
        """Answer those commands of a failed tick that have no answer yet."""
        answer = _answer_to(error)
        for request in requests:
            if request.future.done():
                continue
            if isinstance(request.command, Return) and not self._stopping:
                # Nobody waits for a return, and its jobs must not stay with a closed stream. The
                # next start returns them too, so the end of the server does not wait for it.
                self._inbox.give_back(request.command)
            else:
                request.reply(answer)

    def _log(self, error: Exception) -> None:
        """Log a failure once, and not again while it goes on. The lock has a line of its own."""
        told = f"{type(error).__name__}: {error}"
        if told != self._logged and not isinstance(error, StoreBusy):
            self._logged = told
            log.error("a tick or the upkeep has failed, and others go on", exc_info=error)

    def _log_once(self, subscriber: Subscriber, error: Exception) -> None:
        """Log the first failure of a subscriber. The others have learnt of the tick."""
        if subscriber not in self._faulty:
            self._faulty.append(subscriber)
            log.error("a subscriber of ticks has failed, and ticks go on", exc_info=error)

    def _must_sync(self, batch: list[AnyCommand], plan: Plan) -> bool:
        # A power cut could take a token back, which might then be given out a second time.
        if self._durability.changes and plan.claims:
            return True
        # In the order of `SyncRule`.
        synced = (self._durability.changes, self._durability.enqueues, False)
        return any(synced[command.sync] for command in batch)

    def _set_alarm(self, nap: float) -> None:
        """Set the alarm for the next deadline, in `nap` seconds at the latest."""
        nap = min(nap, LONGEST_NAP_S)
        for awaited in (self._timetable.delay(), self._openings.delay()):
            if awaited is not None and awaited < nap:
                nap = awaited
        self._alarm.set(max(nap, 0.0))

    async def _sleep(self) -> None:
        """Wait until something arrives or the alarm rings."""
        await self._inbox.awake.wait()
        self._inbox.awake.clear()


def _answer_to(error: Exception) -> ZqError:
    """The answer to a command whose tick has failed."""
    if isinstance(error, StoreFailed):
        return OutcomeUnknown(f"the disk failed while this was being written: {UNKNOWN}")
    if isinstance(error, StoreFull):
        return StorageFull("no space left on the disk, and nothing was changed: make room for it")
    return refusal_by(error) if isinstance(error, StoreBusy) else unexpected(error)


def failure_text(error: StoreFailed) -> str:
    """The message about a store that cannot go on: the cause, and what follows."""
    if isinstance(error, FilesMoved | StoreDamaged):
        return str(error)
    if isinstance(error, Fenced):
        return f"{error}: this server ends, and may be started again"
    return (
        f"the disk has failed ({error}): the server ends with exit code {os.EX_IOERR}. What was"
        " acknowledged is safe if the disk can be read again. Check the disk, then start again"
    )
