"""Claims while some queues are closed to them: a walk along the index, or a merge of queues.

A queue is closed to a claim if it is paused, at its rate or concurrency, or out of the claim's
reach. As a rule, closed queues have few of the next jobs or, once paused for a while, all of the
oldest. A walk in dispatch order passes the few, and begins behind the oldest (see `zq.tick.gates`).
So it costs the same with ten open queues and with ten thousand. If a walk passes too many jobs, the
claim merges the heads of all open queues instead, and the next claim goes on from where the walk
stopped.
"""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from zq.model.commands import Claim
from zq.model.job import JobRecord
from zq.model.reach import EVERYWHERE, Reach
from zq.tick.gates import START, Frontier, Gates, Place
from zq.tick.work import UnitOfWork

LONGEST_WALK = 2_000
"""The jobs that a claim examines beyond those that it wants, before it gives up. That takes 5
ms."""

FEW = 64
"""The most queues that cost less to ask one by one than a walk."""

WORTH_KEEPING = 8
"""A place is kept once a walk has passed one job for each `WORTH_KEEPING` that it has taken."""

MOST_HELD_BACK = 1_000
"""The most queues with a limit that a walk passes. Each claim asks them again."""


class FoundJobs(NamedTuple):
    """The jobs that a claim may take, and what is known after it has taken them."""

    jobs: list[JobRecord]
    frontier: Frontier | None = None


class Candidate(NamedTuple):
    """The place of a job in dispatch order, and its queue."""

    priority: int
    key: int
    queue: str

    @property
    def place(self) -> Place:
        return self.priority, self.key


def next_jobs(work: UnitOfWork, wanted: Claim, gates: Gates, now: float) -> FoundJobs:
    """The next jobs in dispatch order of all queues that are open to a claim, at `now`."""
    frontier = gates.frontier(wanted.reach)
    if not wanted.limit:
        return FoundJobs([], frontier)
    walk = _Walk(work, wanted, gates, now)
    found = None if frontier.few else walk.run(frontier)
    if found is not None:
        return found
    queues = _ready_queues(work, wanted.reach)
    jobs = _first_of_many(work, *gates.sort(work, queues, now), wanted.limit)
    return FoundJobs(jobs, Frontier(few=True) if len(queues) <= FEW else walk.frontier)


class _Walk:
    """One search for one claim. `frontier` is the knowledge after it."""

    def __init__(self, work: UnitOfWork, wanted: Claim, gates: Gates, now: float) -> None:
        self._work = work
        self._wanted = wanted
        self._gates = gates
        self._now = now
        self._jobs: dict[int, JobRecord] = {}
        self.frontier = Frontier()

    def run(self, frontier: Frontier) -> FoundJobs | None:
        """The jobs to take; None if the walk becomes too long."""
        self.frontier = frontier
        limit = self._wanted.limit
        near = [] if frontier.place == START else self._near()
        far = self._behind(self.frontier.place, limit)
        if not near and self._are_all_free(far):
            place = _candidate(far[-1]).place if far else START
            self._note(place, passed=0, taken=len(far))
            return FoundJobs(far, self.frontier)
        self._jobs = {job.key: job for job in (*near, *far)}
        candidates, ended = [_candidate(job) for job in far], len(far) < limit
        chosen = self._choose(near, candidates, ended=ended)
        while len(chosen) < limit and not ended:
            if len(candidates) > limit + LONGEST_WALK:
                return None
            # As many as the walk will need at this rate, and some more.
            missing = limit - len(chosen)
            step = min(
                2 * missing * len(candidates) // max(len(chosen), 1) + 8, 4 * len(candidates)
            )
            more = self._candidates_behind(candidates[-1].place, step)
            candidates, ended = candidates + more, len(more) < step
            chosen = self._choose(near, candidates, ended=ended)
        return FoundJobs(self._whole(chosen), self.frontier)

    def _near(self) -> list[JobRecord]:
        """The first jobs of the queues that have some before the start of the walk."""
        work, known = self._work, self.frontier
        asked = known.woken | known.held_back | work.effects.woken
        asked -= self._refused(asked)
        priority, upto = known.place
        before = frozenset[str]()
        if asked:
            place = {"priority": priority, "upto": upto}
            before = frozenset(work.tx.names("heads_before", queues=list(asked), **place))
        held_back = known.held_back & before
        self.frontier = known._replace(woken=before - held_back, held_back=held_back)
        return _first_of_many(work, *self._gates.sort(work, before, self._now), self._wanted.limit)

    def _behind(self, place: Place, limit: int) -> list[JobRecord]:
        if place == START:
            return self._work.tx.jobs("claim_any", limit=limit)
        priority, key = place
        return self._work.tx.jobs("claim_behind", priority=priority, after=key, limit=limit)

    def _candidates_behind(self, place: Place, limit: int) -> list[Candidate]:
        if limit <= self._wanted.limit:
            # The claim will take most of these.
            jobs = self._behind(place, limit)
            self._jobs.update([(job.key, job) for job in jobs])
            return [_candidate(job) for job in jobs]
        priority, key = place
        found = self._work.tx.table("read_spots", priority=priority, after=key, limit=limit)
        return [Candidate(*candidate) for candidate in found]

    def _whole(self, candidates: Sequence[Candidate]) -> list[JobRecord]:
        """The jobs at these places. Jobs that were only passed so far are read now."""
        missing = [candidate.key for candidate in candidates if candidate.key not in self._jobs]
        if missing:
            jobs = self._work.tx.jobs("read_jobs", keys=missing)
            self._jobs.update([(job.key, job) for job in jobs])
        return [self._jobs[candidate.key] for candidate in candidates]

    def _choose(
        self, near: Sequence[JobRecord], far: list[Candidate], *, ended: bool
    ) -> list[Candidate]:
        """The jobs that the claim may take. Notes how far the claim has come."""
        candidates = far
        if near:
            # A job beyond the walk's end may not be the next one. The walk has to reach it.
            end = None if ended else far[-1]
            met = [
                candidate for candidate in map(_candidate, near) if end is None or candidate <= end
            ]
            candidates = sorted({*far, *met})
        queues = {candidate.queue for candidate in candidates}
        refused = self._refused(queues)
        left = self._gates.allowances(self._work, queues - refused, self._now)
        return self._pick(candidates, refused, left)

    def _pick(
        self, candidates: Sequence[Candidate], refused: Set[str], left: dict[str, int]
    ) -> list[Candidate]:
        chosen: list[Candidate] = []
        reached = START
        held_back = set(self.frontier.held_back)
        stopped = False
        seen = 0
        for candidate in candidates:
            seen += 1
            queue = candidate.queue
            if queue not in refused:
                if left.get(queue, 1) > 0:
                    chosen.append(candidate)
                    if queue in left:
                        left[queue] -= 1
                elif queue in held_back or len(held_back) < MOST_HELD_BACK:
                    held_back.add(queue)
                else:
                    stopped = True
            if not stopped:
                reached = candidate.place
            if len(chosen) == self._wanted.limit:
                break
        self.frontier = self.frontier._replace(held_back=frozenset(held_back))
        self._note(reached, passed=seen - len(chosen), taken=len(chosen))
        return chosen

    def _note(self, reached: Place, *, passed: int, taken: int) -> None:
        """Continue from the reached place next time, unless too few jobs were passed."""
        known = self.frontier
        if known.place == START and passed * WORTH_KEEPING <= taken:
            self.frontier = Frontier()
        else:
            self.frontier = known._replace(place=max(known.place, reached))

    def _are_all_free(self, jobs: Sequence[JobRecord]) -> bool:
        queues = {job.queue for job in jobs}
        return queues.isdisjoint(self._work.rulebook.limited) and not self._refused(queues)

    def _refused(self, queues: Set[str]) -> Set[str]:
        """The queues, among some, that are shut or out of reach."""
        reach = self._wanted.reach
        refused = self._work.rulebook.shut(queues)
        if reach is not EVERYWHERE:
            refused |= {queue for queue in queues if not reach.covers(queue)}
        return refused


def _first_of_many(
    work: UnitOfWork, free: Sequence[str], bounds: Mapping[str, int], limit: int
) -> list[JobRecord]:
    """The first jobs of queues that may be far more than the wanted jobs."""
    if len(free) + len(bounds) > limit:
        # The first jobs belong to the queues whose heads come first.
        first = work.tx.names("first_heads", queues=[*free, *bounds], limit=limit)
        free = [queue for queue in first if queue not in bounds]
        bounds = {queue: bounds[queue] for queue in first if queue in bounds}
    return work.tx.first_of(free, bounds, limit)


def _ready_queues(work: UnitOfWork, reach: Reach) -> list[str]:
    """The queues within reach that have ready jobs now, by one seek each."""
    names: list[str] = []
    for prefix in reach.prefixes:
        names += work.tx.names("ready_queues", prefix=prefix)
    return names


def _candidate(job: JobRecord) -> Candidate:
    return Candidate(job.priority, job.key, job.queue)
