"""The jobs that a claim takes from lines: the first in dispatch order that it may have.

Jobs in no line come from the indexes as usual, and both are merged. A claim reads the first open
lines, as many as it wants jobs. Rooms say whether a line can be paid for: its budgets may lack
tokens. Such a line is shut, and the claim looks at others in its place. So a job that cannot be
paid blocks none behind it, and each line is looked at in vain once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol

from zq.model.commands import Claim
from zq.model.job import JobRecord
from zq.model.reach import EVERYWHERE
from zq.store.api import Line
from zq.tick.gates import Gates, Place
from zq.tick.hooks import Allowances, Turn
from zq.tick.walk import FoundJobs
from zq.tick.work import UnitOfWork

MOST_LOOKS = 8
"""A claim looks at most so often for more lines, since it may not take from those it has found."""

MOST_QUEUES = 64
"""Among more queues than this, each look finds out first which of them come first."""


def with_lines(
    work: UnitOfWork, wanted: Claim, gates: Gates, monotonic: float, found: FoundJobs
) -> FoundJobs:
    """The jobs for a claim from the indexes and from lines."""
    if not wanted.limit:
        return found
    queues, bounds = _open_queues(work, wanted, gates, monotonic)
    if queues is not None and not queues:
        return found
    if bounds:
        named = bounds.keys() | {job.queue for job in found.jobs}
        bounds = gates.allowances(work, named, monotonic)
    limit = wanted.limit
    for look in range(MOST_LOOKS):
        most = limit << look
        first = queues
        if queues is not None and len(queues) > max(MOST_QUEUES, most):
            place = {"queues": queues, "steady": work.steady, "limit": most}
            first = work.tx.names("first_line_queues", **place)
        lines = work.tx.open_lines(first, sorted(work.lines.agings), most, work.steady)
        if not lines:
            return found
        merge = _Merge(work, wanted.limit, bounds, lines, most)
        merge.choose(found.jobs)
        if not merge.shut() and merge.is_done:
            break
    else:
        # The next tick looks further: by then the lines that were found in vain are shut.
        work.effects.left.update([line.queue for line in lines])
    merge.shut_drained()
    jobs = merge.jobs()
    kept = {job.key for job in jobs}
    displaced = {job.queue for job in found.jobs if job.key not in kept}
    return FoundJobs(jobs, found.frontier and found.frontier.reopened(displaced))


def _open_queues(
    work: UnitOfWork, wanted: Claim, gates: Gates, monotonic: float
) -> tuple[list[str] | None, dict[str, int]]:
    """The queues from whose lines a claim may take, and how many jobs. None means all queues."""
    queues: Sequence[str] | None = wanted.queues
    if queues is None:
        is_gated = not work.rulebook.is_empty and work.rulebook.has_gates
        if wanted.reach is EVERYWHERE and not is_gated:
            return None, {}
        queues = [
            queue
            for prefix in wanted.reach.prefixes
            for queue in work.tx.names("line_queues", prefix=prefix)
        ]
    free, bounds = gates.sort(work, queues, monotonic, leaves=wanted.leaves)
    return [*free, *bounds], bounds


class _Merge:
    """One calculation: the first of some jobs, and of those in lines, for which rooms can pay."""

    def __init__(
        self,
        work: UnitOfWork,
        limit: int,
        bounds: dict[str, int],
        lines: Sequence[Line],
        most: int,
    ) -> None:
        """`lines` has the first `most` open lines in the queues of the claim, or all of them."""
        self._work = work
        self._limit = limit
        self._most = most
        self._left = dict(bounds)
        self._rooms = [hold.allowances(work) for hold in work.holds if hold.is_used]
        self._sources = self._sources_of(lines)
        self._end: Place | None = None
        """There may be other lines behind this place, which were not read."""
        if len(lines) >= most:
            self._end = (lines[-1].urgency, lines[-1].head)
        self._shut: list[tuple[int, str, int]] = []
        self._drained: list[tuple[int, str, int]] = []
        """Lines that give some of their jobs, and cannot be paid for more."""
        self._lines: dict[int, Line] = {}
        """The lines of the chosen jobs, by the keys of these."""
        self._others: list[JobRecord] = []
        self.is_done = False
        """True if no job behind those that were read can come before one that is left out."""

    def choose(self, others: Sequence[JobRecord]) -> None:
        """Choose from lines, and among jobs in no line, which are in dispatch order."""
        heap = [(source.place, nth) for nth, source in enumerate(self._sources) if source.place]
        heapify(heap)
        waiting = iter(others)
        other = next(waiting, None)
        while len(self._lines) + len(self._others) < self._limit:
            if other is not None and (not heap or (other.priority, other.key) < heap[0][0]):
                if self._end is not None and (other.priority, other.key) > self._end:
                    return
                if self._has_room(other.queue):
                    self._others.append(other)
                    self._take_room(other.queue)
                other = next(waiting, None)
            elif heap:
                place, nth = heap[0]
                if self._end is not None and place > self._end:
                    return
                source = self._sources[nth]
                if self._has_room(source.queue) and source.take(self._pays) and source.place:
                    heapreplace(heap, (source.place, nth))
                else:
                    heappop(heap)
            elif self._end is None:
                break
            else:
                return
        self.is_done = True

    def shut(self) -> bool:
        """Shut the lines for which nobody can pay. Return whether others are open instead."""
        if not self._shut:
            return False
        self._work.tx.write("shut_lines", lines=self._shut)
        return True in [hold.pass_on() for hold in self._work.holds if hold.is_used]

    def shut_drained(self) -> None:
        """Shut the lines that have given what can be paid. No look follows."""
        if self._drained:
            self._work.tx.write("shut_lines", lines=self._drained)

    def jobs(self) -> list[JobRecord]:
        """The chosen jobs in dispatch order."""
        if not self._lines:
            return self._others
        jobs = self._work.tx.jobs("read_lined", keys=list(self._lines))
        for job in jobs:
            line = self._lines[job.key]
            if job.queue != line.queue:
                raise ValueError(f"a line of the queue {line.queue} has a job of {job.queue}")
            job.line = line.id
        jobs += self._others
        jobs.sort(key=self._place_of)
        return jobs

    def _place_of(self, job: JobRecord) -> Place:
        line = self._lines.get(job.key)
        return (job.priority if line is None else line.urgency, job.key)

    def _sources_of(self, lines: Sequence[Line]) -> list["_Source"]:
        """The lines from which jobs are taken. Those that share a queue and a priority are one."""
        lone = [line for line in lines if not line.fair_key]
        behind = _Behind(self._work, lone, self._limit)
        sources = [_LineSource(line, behind, self._rooms) for line in lone]
        sharing: defaultdict[tuple[str, int], list[Line]] = defaultdict(list)
        for line in lines:
            if line.fair_key:
                sharing[line.queue, line.priority].append(line)
        turns = [_Turns(self._work, some, self._most, self._rooms) for some in sharing.values()]
        return [*sources, *turns]

    def _pays(self, source: "_LineSource") -> bool:
        """Take the next job of a line, if rooms can pay for it."""
        line = source.line
        for allowance in source.allowances:
            refusal = allowance.refuses()
            if refusal is not None:
                gives_none = source.key == line.head
                (self._shut if gives_none else self._drained).append((line.id, *refusal))
                return False
        for allowance in source.allowances:
            allowance.pay()
        self._take_room(line.queue)
        assert source.key is not None
        self._lines[source.key] = line
        return True

    def _has_room(self, queue: str) -> bool:
        return self._left.get(queue, 1) > 0

    def _take_room(self, queue: str) -> None:
        if queue in self._left:
            self._left[queue] -= 1


class _Source(Protocol):
    """Jobs of one queue and one priority."""

    queue: str

    @property
    def place(self) -> Place | None:
        """The place of its next job in dispatch order; None if it has no more."""

    def take(self, pays: "Pays") -> bool:
        """Take its next job. Return False if rooms cannot pay for any."""


class _LineSource:
    """A line from which jobs are taken, beginning with the first. `key` is that of the next."""

    def __init__(self, line: Line, behind: "_Behind", rooms: Sequence[Allowances]) -> None:
        self.line = line
        found = [room.of(line) for room in rooms]
        self.allowances = [allowance for allowance in found if allowance is not None]
        self.queue = line.queue
        self.key: int | None = line.head
        self._keys = behind.keys(line)

    @property
    def place(self) -> Place | None:
        return None if self.key is None else (self.line.urgency, self.key)

    def take(self, pays: "Pays") -> bool:
        if not pays(self):
            return False
        self.key = next(self._keys, None)
        return True


Pays = Callable[[_LineSource], bool]


_Standing = tuple[float, int, _LineSource, Turn]
"""A place that a line had, the key of its next job, the line, and its present place."""


class _Turns:
    """The lines that share a queue and a priority. The one with the least place is next.

    The turn of the queue comes by the place of its oldest job among the jobs of other queues. The
    job that is taken then is that of the line whose turn it is in the queue.
    """

    def __init__(
        self,
        work: UnitOfWork,
        first: Sequence[Line],
        limit: int,
        rooms: Sequence[Allowances],
    ) -> None:
        """`first` has those of these lines with the lowest heads, in rising order."""
        self._first = first[0]
        self.queue = self._first.queue
        self._work = work
        self._heads = [line.head for line in first]
        self._gone: set[int] = set()
        self._limit = limit
        self._rooms = rooms
        self._heap: list[_Standing] | None = None

    @property
    def place(self) -> Place | None:
        return (self._first.urgency, self._heads[0]) if self._heads else None

    def take(self, pays: Pays) -> bool:
        if self._heap is None:
            self._heap = self._read()
        heap = self._heap
        while heap:
            place, key, source, turn = heap[0]
            if turn.place > place:
                # Another line of this key has had a turn.
                heapreplace(heap, (turn.place, key, source, turn))
                continue
            if not source.take(pays):
                heappop(heap)
                continue
            self._gone.add(key)
            if source.key is None:
                heappop(heap)
            else:
                heappush(self._heads, source.key)
                heapreplace(heap, (turn.place, source.key, source, turn))
            while self._heads and self._heads[0] in self._gone:
                heappop(self._heads)
            return True
        return False

    def _read(self) -> list[_Standing]:
        """Read the lines whose turns come first."""
        lines = self._work.tx.shared_lines(self.queue, self._first.priority, self._limit)
        for room in self._rooms:
            room.learn(lines)
        behind = _Behind(self._work, lines, self._limit)
        heap: list[_Standing] = []
        for line in lines:
            source = _LineSource(line, behind, self._rooms)
            turns = [turn for room in self._rooms if (turn := room.turn(line)) is not None]
            heap += [(turn.place, line.head, source, turn) for turn in turns]
        heapify(heap)
        return heap


class _Behind:
    """The jobs behind the heads of some lines. The first of all these lines are read together."""

    def __init__(self, work: UnitOfWork, lines: Sequence[Line], limit: int) -> None:
        self._tx = work.tx
        self._lines = [(line.id, line.second) for line in lines if line.second is not None]
        self._limit = limit
        self._most = 2 * limit // len(self._lines) + 1 if self._lines else 0
        self._found: dict[int, list[int]] | None = None

    def keys(self, line: Line) -> Iterator[int]:
        """The keys of the jobs of a line behind its head."""
        if line.second is None:
            return
        yield line.second
        if self._found is None:
            self._found = dict(self._tx.table("jobs_in_lines", lines=self._lines, most=self._most))
        keys = self._found[line.id]
        yield from keys
        if len(keys) == self._most:
            yield from self._tx.keys(
                "jobs_in_line", line=line.id, after=keys[-1], limit=self._limit
            )
