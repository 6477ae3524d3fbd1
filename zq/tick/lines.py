"""Lines: where jobs wait that a claim may not take by their place alone.

A room may hold jobs: those that draw from budgets, or share a queue by a key. And the priorities of
a queue may age (`zq.model.aging`). Such a job waits in a line with all jobs of its queue that
nothing tells apart but their ids: of one priority, or one urgency, one key and one set of draws.
Bit 2 of its `held` keeps it out of the indexes of other claims, and its row names its line, from
the time it is stored until it is taken. So it leaves its line by any change of its own row, and the
index of the jobs of a line has it as long as it may be claimed.

A line is a row. It is in one index: that of the open lines, which claims read in the order of heads
as far as they need, or that of the lines that wait for the same thing (`zq.tick.lined`). So the
cost of a claim grows neither with lines that wait for what they lack, nor with those behind.

Moves only note the lines that they touch. `flush` finds the heads of these before the claims of the
same transaction, so a crash cannot come in between.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from zq.model.job import Brief, JobRecord, JobSettings
from zq.model.lifecycle import Status
from zq.store.api import Transaction

HELD_IN_LINE = 2
"""The bit of `held` that is set for jobs that wait in lines."""

_WAITS = frozenset({Status.SCHEDULED, Status.READY})

Places = dict[str, dict[str, float]]
"""The places of lines, by their queues and the keys by which they share these."""


class Placed(NamedTuple):
    """Where lines stand now whose keys have moved."""

    found: Places
    """Lines whose jobs have come or gone too, so that they may have other heads."""
    moved: Places
    """Lines to which nothing else has happened. They stay in three of their four indexes."""


NOWHERE = Placed({}, {})

NewName = tuple[str, int, int, str | None]
"""What names the line of a job: its queue, the priority of the line, the time in which this gains a
step (0: never), and the options of the job as JSON text, if it has any."""

MOST_LED = 500
"""One tick leads at most so many jobs into the lines in which their queues age by now."""

MOST_ASTRAY = 16
"""One tick looks at so many queues for jobs that must be led to other lines."""


class LineHold(Protocol):
    """A room's hold (`zq.tick.hooks.Hold`), as far as lines know it."""

    is_used: bool
    """True if there may be jobs that it holds, or there were some in this transaction."""

    @property
    def noted(self) -> int:
        """How many of its own things have changed since they were written."""

    def holds(self, options: JobSettings | None) -> bool:
        """True if it holds jobs with these options while they wait."""

    def places(self) -> Placed:
        """Where lines stand now whose keys have moved, as far as they share their queues."""

    def note(
        self,
        job: Brief | JobRecord,
        before: Status | None,
        after: Status | None,
        queue: str,
        now: int,
    ) -> None:
        """Note a move of a job that it holds. It is as before but for its status, at a wall time.

        None means that the job does not exist. `queue` is the queue after the move.
        """

    def note_together(
        self,
        jobs: Sequence[Brief | JobRecord],
        before: Status | None,
        after: Status | None,
        now: int,
    ) -> None:
        """Note the move of jobs that all come to one state, each in its queue.

        If `before` is None, it is the state that each job has.
        """


class Lines:
    """What the current transaction does to lines. The holds of rooms say whose jobs are in them."""

    def __init__(self, holds: Sequence[LineHold]) -> None:
        self._holds = holds
        self.agings: set[int] = set()
        """The times of steps by which lines may age, in milliseconds."""
        self._astray: set[str] = set()
        """Queues with jobs that may wait in other lines than their settings say, or in none."""
        self._is_known = False
        self.is_astray = True
        """True if jobs may wait in other lines than the settings of their queues say. Every
        transaction asks, so it is no property."""
        self.clear()

    def learn(self, tx: Transaction, aging: Mapping[str, int]) -> None:
        """Read how lines age, which may be in other ways than the settings say by now."""
        self._astray = self._read(tx, aging) | aging.keys()
        self._is_known = True
        self.is_astray = bool(self._astray)

    def review(self, queue: str, was: int | None, is_now: int | None) -> None:
        """Note that a queue ages in another way than before, if it does."""
        if was != is_now:
            self._astray.add(queue)
            self.is_astray = True
            self.agings.update([aging_ms for aging_ms in (was, is_now) if aging_ms is not None])

    def lead(self, tx: Transaction, aging: Mapping[str, int]) -> None:
        """Note waiting jobs that are to be in other lines, up to a number. Later ticks go on."""
        if not self._is_known:
            self.learn(tx, aging)
        left = MOST_LED
        for queue in list(self._astray)[:MOST_ASTRAY]:
            aging_ms = aging.get(queue, 0)
            others = list(self.agings - {aging_ms})
            place = {"queue": queue, "aging_ms": aging_ms, "others": others}
            keys = tx.keys("misplaced", **place, limit=left)
            if keys:
                self._left.update(tx.keys("lines_of_jobs", keys=keys))
                self._moving.update(keys)
            else:
                self._astray.discard(queue)
            left -= len(keys)
            if not left:
                break
        if not self._astray:
            self._read(tx, aging)
            self.is_astray = False

    def _read(self, tx: Transaction, aging: Mapping[str, int]) -> set[str]:
        """Read by which times lines age. Return their queues."""
        aged = tx.table("aged_lines")
        self.agings = {aging_ms for aging_ms, _ in aged} | set(aging.values())
        return {queue for _, queue in aged}

    @property
    def noted(self) -> int:
        """How many lines and jobs `flush` has to look at, and of what the holds have to write."""
        noted = len(self._left) + len(self._joined) + len(self._moving)
        for hold in self._holds:
            if hold.is_used:
                noted += hold.noted
        return noted

    def forget(self) -> None:
        """Forget everything. The next transaction reads it again."""
        self._is_known = False
        self.is_astray = True
        self.clear()

    def clear(self) -> None:
        """Forget the notes of a transaction, or of a part of it."""
        self._left: set[int] = set()
        """Lines that may have lost a job."""
        self._joined: set[int] = set()
        """Lines that may have one more."""
        self._moving: set[int] = set()
        """Jobs that may wait in another line than before, or wait again."""

    def delete_all(self, tx: Transaction) -> None:
        """Delete all lines, with all jobs."""
        tx.write("clear_lines")
        self.clear()

    def note(
        self,
        job: Brief | JobRecord,
        before: Status | None,
        after: Status | None,
        queue: str,
        now: int,
        *,
        moves: bool = False,
    ) -> None:
        """Note a move of a job at a wall time in milliseconds. `queue` is where it is then.

        `moves`: it may be in another queue or of another priority then.
        """
        if job.line is not None:
            self._left.add(job.line)
        if after in _WAITS and (moves or self._enters(before, after)):
            self._moving.add(job.key)
        for hold in self._holds:
            if hold.is_used and hold.holds(job.options):
                hold.note(job, before, after, queue, now)

    def note_together(
        self,
        jobs: Sequence[Brief | JobRecord],
        before: Status | None,
        after: Status | None,
        now: int,
    ) -> None:
        """Note the move of jobs that all come to one state, each in its queue. None as a state
        stands for those that jobs have, or for none."""
        self._left.update([job.line for job in jobs if job.line is not None])
        if after in _WAITS:
            self._moving.update(
                [job.key for job in jobs if self._enters(before or job.status, after)]
            )
        for hold in self._holds:
            if hold.is_used:
                hold.note_together(jobs, before, after, now)

    def _enters(self, before: Status | None, after: Status | None) -> bool:
        """True if a job that comes to wait may not be in its line: a date may have moved, and its
        queue may age in another way since it was stored."""
        return before not in _WAITS or (before is not after and bool(self.agings))

    def rename(self, job: JobRecord) -> None:
        """Note that a waiting job may have other options."""
        if job.line is not None:
            self._left.add(job.line)
        self._moving.add(job.key)

    def of_new(self, tx: Transaction, names: Sequence[NewName]) -> list[int]:
        """The lines of jobs that are about to be stored, in their order."""
        once = list(dict.fromkeys(names))
        tx.write("name_new_lines", names=once)
        lines = dict(zip(once, tx.keys("lines_of_names", names=once), strict=True))
        self._joined.update(lines.values())
        return [lines[name] for name in names]

    def regroup(self, tx: Transaction, keys: Iterable[int]) -> None:
        """Note jobs that now wait behind the head of their group, or have become the head."""
        some = list(keys)
        self._left.update(tx.keys("lines_of_jobs", keys=some))
        if self.agings:
            self._moving.update(some)

    def mend(self, tx: Transaction) -> None:
        """Note that jobs were set aside of which nothing is known."""
        self._left.update(tx.keys("torn_lines"))

    def flush(self, tx: Transaction, now: int, ahead: int) -> None:
        """Find the lines of jobs, and the heads of lines, at a wall time that steady time is
        `ahead` of."""
        if self._moving:
            keys = list(self._moving)
            tx.write("name_lines", keys=keys, now=now, ahead=ahead)
            tx.write("enter_lines", keys=keys, now=now, ahead=ahead)
            tx.write("leave_lines", keys=keys)
            self._joined.update(tx.keys("lines_of_jobs", keys=keys))
        heads = self._place(tx)
        touched = (self._left | self._joined) - heads.keys()
        if touched:
            tx.write("refresh_lines", lines=list(touched))
        left = [line for line in self._left if heads.get(line) is None]
        if left:
            tx.write("forget_lines", lines=left)
        self.clear()

    def _place(self, tx: Transaction) -> dict[int, int | None]:
        """Place the lines that share their queues. Return the heads that were found on the way."""
        heads: dict[int, int | None] = {}
        for hold in self._holds:
            if hold.is_used:
                placed = hold.places()
                if placed.moved:
                    tx.write("move_lines", places=placed.moved)
                if placed.found:
                    heads.update(tx.rows_of("place_lines", places=placed.found))
        tx.rows += len(heads)
        return heads
