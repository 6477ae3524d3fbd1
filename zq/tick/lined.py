"""The jobs that a claim takes from lines: the first in dispatch order that it may have.

Jobs in no line come from the indexes as usual, and both are merged. A claim reads the first open
lines, as many as it wants jobs. Rooms say whether a line can be paid for: its budgets may lack
tokens. Such a line is shut, and the claim looks at others in its place. So a job that cannot be
paid blocks none behind it, and each line is looked at in vain once.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace

from zq.model.commands import Claim
from zq.model.job import JobRecord
from zq.model.reach import EVERYWHERE
from zq.store.api import Line
from zq.tick.gates import Gates, Place
from zq.tick.hooks import Till
from zq.tick.walk import FoundJobs
from zq.tick.work import UnitOfWork

MOST_LOOKS = 8
"""A claim looks at most so often for more lines, since it may not take from those it has found."""

MOST_QUEUES = 64
"""Among more queues than this, a claim finds out first which of them come first."""


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
        lines = work.tx.open_lines(queues, most)
        if not lines:
            return found
        merge = _Merge(work, wanted.limit, bounds, lines, is_all=len(lines) < most)
        merge.choose(found.jobs)
        if not merge.shut() and merge.is_done:
            break
    else:
        # The next tick looks further: by then the lines that were found in vain are shut.
        work.effects.woken.update([line.queue for line in lines], [j.queue for j in found.jobs])
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
    free, bounds = gates.sort(work, queues, monotonic)
    names = [*free, *bounds]
    if len(names) > max(MOST_QUEUES, wanted.limit):
        names = work.tx.names("first_line_queues", queues=names, limit=wanted.limit)
    return names, bounds


class _Merge:
    """One calculation: the first of some jobs, and of those in lines, for which rooms can pay."""

    def __init__(
        self,
        work: UnitOfWork,
        limit: int,
        bounds: dict[str, int],
        lines: Sequence[Line],
        *,
        is_all: bool,
    ) -> None:
        """`is_all`: there are no other open lines in the queues of the claim."""
        self._work = work
        self._limit = limit
        self._left = dict(bounds)
        self._tills = [hold.till(work) for hold in work.holds if hold.is_used]
        self._sources = [_Source(work, line, limit) for line in lines]
        self._end: Place | None = None if is_all else (lines[-1].priority, lines[-1].head)
        self._shut: list[tuple[int, str, int]] = []
        self._drained: list[tuple[int, str, int]] = []
        """Lines that give some of their jobs, and cannot be paid for more."""
        self._turns: dict[tuple[str, int], _Turns] = {}
        """The lines that share a queue and a priority."""
        self._keys: list[int] = []
        self._others: list[JobRecord] = []
        self.is_done = False
        """True if no job behind those that were read can come before one that is left out."""

    def choose(self, others: Sequence[JobRecord]) -> None:
        """Choose from lines, and among jobs in no line, which are in dispatch order."""
        heap = [(source.place, nth) for nth, source in enumerate(self._sources)]
        heapify(heap)
        waiting = iter(others)
        other = next(waiting, None)
        while len(self._keys) + len(self._others) < self._limit:
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
                if self._takes(source):
                    following = source.advance()
                    if following:
                        heapreplace(heap, (source.place, nth))
                        continue
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
        self._work.tx.run("shut_lines", lines=self._shut)
        return True in [hold.pass_on() for hold in self._work.holds if hold.is_used]

    def shut_drained(self) -> None:
        """Shut the lines that have given what can be paid. No look follows."""
        if self._drained:
            self._work.tx.run("shut_lines", lines=self._drained)

    def jobs(self) -> list[JobRecord]:
        """The chosen jobs in dispatch order."""
        if not self._keys:
            return self._others
        jobs = [*self._others, *self._work.tx.jobs("read_jobs", keys=self._keys)]
        jobs.sort(key=lambda job: (job.priority, job.key))
        return jobs

    def _takes(self, source: "_Source") -> bool:
        """Take the head of a line, or of one that shares its queue and is due before it."""
        line = source.line
        if not self._has_room(line.queue):
            return False
        if not line.fair_key:
            return self._pays(source)
        turns = self._turns.get((line.queue, line.priority))
        if turns is None:
            turns = _Turns(self._work, line, self._limit, self._tills)
            self._turns[line.queue, line.priority] = turns
        return turns.take(self._pays)

    def _pays(self, source: "_Source") -> bool:
        """Take the head of a line, if rooms can pay for it."""
        line = source.line
        for till in self._tills:
            refusal = till.refuses(line)
            if refusal is not None:
                gives_none = source.place[1] == line.head
                (self._shut if gives_none else self._drained).append((line.id, *refusal))
                return False
        for till in self._tills:
            till.pay(line)
        self._take_room(line.queue)
        self._keys.append(source.place[1])
        return True

    def _has_room(self, queue: str) -> bool:
        return self._left.get(queue, 1) > 0

    def _take_room(self, queue: str) -> None:
        if queue in self._left:
            self._left[queue] -= 1


class _Turns:
    """The lines that share a queue and a priority. The one with the least place is next.

    When the turn of the queue comes, by the place of one of these lines in dispatch order, the job
    is that of the line whose turn it is in the queue.
    """

    def __init__(self, work: UnitOfWork, line: Line, limit: int, tills: Sequence[Till]) -> None:
        lines = work.tx.shared_lines(line.queue, line.priority, limit)
        self._tills = tills
        for till in tills:
            till.learn(lines)
        self._sources = [_Source(work, each, limit) for each in lines]
        self._heap = [(self._place(each), each.head, nth) for nth, each in enumerate(lines)]
        heapify(self._heap)

    def take(self, pays: Callable[["_Source"], bool]) -> bool:
        """Take a job of the next line that rooms can pay for. Return whether there was one."""
        while self._heap:
            nth = self._heap[0][2]
            source = self._sources[nth]
            if not pays(source):
                heappop(self._heap)
                continue
            if source.advance():
                heapreplace(self._heap, (self._place(source.line), source.place[1], nth))
            else:
                heappop(self._heap)
            return True
        return False

    def _place(self, line: Line) -> float:
        for till in self._tills:
            place = till.place_of(line)
            if place is not None:
                return place
        return line.place


class _Source:
    """A line from which jobs are taken, beginning with the first. `place` is that of the next."""

    def __init__(self, work: UnitOfWork, line: Line, limit: int) -> None:
        self.line = line
        self.place: Place = (line.priority, line.head)
        self._work = work
        self._limit = limit
        self._behind = self._keys()

    def advance(self) -> bool:
        """Go on to the next job. Return whether there is one."""
        key = next(self._behind, None)
        if key is None:
            return False
        self.place = (self.line.priority, key)
        return True

    def _keys(self) -> Iterator[int]:
        if self.line.second is None:
            return
        yield self.line.second
        after, line, limit = self.line.second, self.line.id, self._limit
        yield from self._work.tx.keys("jobs_in_line", line=line, after=after, limit=limit)
