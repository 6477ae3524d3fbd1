"""The jobs that a claim takes from lines: the first in dispatch order that all their budgets can
pay.

Jobs without budgets come from the indexes as usual, and both are merged. A line is asked for as
many heads as it could pay with all the tokens. Nothing behind these can be taken, so a line costs
the same with one job and with a million. A job that cannot be paid does not block those behind it.
"""

from collections import Counter
from collections.abc import Sequence

from zq.features.budgets.model import Line
from zq.features.budgets.model_jobs import draws_in
from zq.features.budgets.tick_ledger import ledger_of
from zq.model.commands import Claim
from zq.model.job import JobRecord
from zq.tick.gates import Gates
from zq.tick.walk import FoundJobs
from zq.tick.work import UnitOfWork

MOST_LOOKS = 8
"""A claim looks further down the lines at most so often, past jobs without tokens."""


def with_lines(
    work: UnitOfWork, wanted: Claim, gates: Gates, monotonic: float, found: FoundJobs
) -> FoundJobs:
    """The jobs for a claim from the indexes and from lines, as far as there are tokens."""
    ledger = ledger_of(work)
    lines = [
        line
        for line in ledger.waiting_lines(wanted.queues)
        if wanted.reach.covers(line.queue) and ledger.payable(line) > 0
    ]
    if not lines or not wanted.limit:
        return found
    open_queues, bounds = gates.sort(work, {line.queue for line in lines}, monotonic)
    may = {*open_queues, *bounds}
    lines = [line for line in lines if line.queue in may]
    if bounds:
        named = bounds.keys() | {job.queue for job in found.jobs}
        bounds = gates.allowances(work, named, monotonic)
    for look in range(MOST_LOOKS):
        till = _Till(work, wanted.limit, bounds)
        heads, is_all = _heads(work, lines, wanted.limit << look)
        jobs = till.choose(sorted([*found.jobs, *heads], key=_place))
        if is_all or (len(jobs) == wanted.limit and _place(jobs[-1]) <= _place(heads[-1])):
            break
    else:
        # A job may stand between the last head and the next one behind it. The next tick looks
        # further: by then the jobs that were found are gone.
        work.effects.woken.update(may, [job.queue for job in found.jobs])
        jobs = [job for job in jobs if _place(job) <= _place(heads[-1])]
    kept = {job.key for job in jobs}
    displaced = {job.queue for job in found.jobs if job.key not in kept}
    return FoundJobs(jobs, found.frontier and found.frontier.reopened(displaced))


def leave_lines(work: UnitOfWork, jobs: Sequence[JobRecord]) -> None:
    """Remove jobs from their lines, since they are about to be taken."""
    keys = [job.key for job in jobs if draws_in(job.options)]
    if keys:
        work.tx.run("free_of_budgets", keys=keys)


class _Till:
    """One calculation: which of some jobs can be paid, beginning with the first."""

    def __init__(self, work: UnitOfWork, limit: int, bounds: dict[str, int]) -> None:
        self._ledger = ledger_of(work)
        self._limit = limit
        self._bounds = dict(bounds)
        self._spent: Counter[str] = Counter()

    def choose(self, jobs: Sequence[JobRecord]) -> list[JobRecord]:
        chosen: list[JobRecord] = []
        for job in jobs:
            left = self._bounds.get(job.queue)
            if (left is None or left > 0) and self._pays(job):
                chosen.append(job)
                if left is not None:
                    self._bounds[job.queue] = left - 1
                if len(chosen) == self._limit:
                    break
        return chosen

    def _pays(self, job: JobRecord) -> bool:
        draws = draws_in(job.options)
        if not draws:
            return True
        for draw in draws:
            if self._ledger.available(draw.key) - self._spent[draw.key] < draw.cost:
                return False
        for draw in draws:
            self._spent[draw.key] += draw.cost
        return True


def _heads(work: UnitOfWork, lines: Sequence[Line], limit: int) -> tuple[list[JobRecord], bool]:
    """The first jobs of lines, and whether no others could be paid."""
    ledger = ledger_of(work)
    most = {line.id: min(ledger.payable(line), limit) for line in lines}
    jobs = work.tx.first_of_lines("line_arm", most, limit)
    return jobs, len(jobs) < limit


def _place(job: JobRecord) -> tuple[int, int]:
    return job.priority, job.key
