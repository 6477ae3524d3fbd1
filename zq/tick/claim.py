"""The tick's last phase: it hands ready jobs to the streams and claimants that wait."""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from zq.model.commands import Claim
from zq.model.job import JobRecord, brief_of
from zq.model.leasing import NO_TERMS, lease_time
from zq.model.lifecycle import Move, Status
from zq.model.reach import EVERYWHERE
from zq.tick.finish import expire
from zq.tick.gates import Gates
from zq.tick.lined import with_lines
from zq.tick.moves import apply
from zq.tick.walk import FoundJobs, next_jobs
from zq.tick.work import UnitOfWork, options_of

MOST_ROUNDS = 4
"""A claim looks at most so many times for other jobs in the place of expired ones. The next tick
goes on with it."""


Credits = Sequence[tuple[int, int]]
"""Holders, and how many jobs each can take."""


def claim(work: UnitOfWork, wanted: Claim, gates: Gates, monotonic: float) -> list[JobRecord]:
    """Take the next jobs in dispatch order, and share them out. Return them, in flight."""
    find = partial(_find_jobs, work, wanted, gates, monotonic)
    has_lines = work.has_lines and wanted.lined
    if has_lines:
        find = partial(_find_in_lines, work, wanted, gates, monotonic)
    found = find()
    if work.retimed:
        found = _fresh(work, found, find)
    jobs = share_out(found.jobs, wanted)
    left = {job.queue for job in found.jobs[len(jobs) :]}
    work.effects.left |= left
    if not work.rulebook.is_empty and not wanted.leaves:
        gates.note(work, jobs)
    if found.frontier is not None:
        # A walk has passed the jobs that are left.
        gates.begin_at(wanted.reach, found.frontier.reopened(left))
    if not jobs:
        return jobs
    book = work.rulebook
    rows: dict[str, Collection[Any]]
    if (
        wanted.terms is not None
        or any(options.lease_ms is not None for options in options_of(jobs))
        or (not book.is_empty and book.has_leases)
    ):
        rows = {"leases": _leases(work, jobs, wanted)}
        work.retimed = True
    else:
        rows = {"holders": {job.key: job.holder for job in jobs}}
    if has_lines:
        rows = {f"{name}_from_lines": values for name, values in rows.items()}
    apply(work, Move.TAKE, jobs, to=Status.IN_FLIGHT, after=None, gone=(), **rows)
    for job in jobs:
        job.status = Status.IN_FLIGHT
        job.deliveries += 1
        job.dequeued_at = work.now
        job.line = None
    if has_lines:
        # The next claim of this transaction must see what this one has left.
        work.open_heads()
    return jobs


def share_out(jobs: Sequence[JobRecord], claim: Claim) -> list[JobRecord]:
    """Give the jobs to the holders in turn, one each, until their credit is used up.

    Return the jobs that were given, from the first on. Some are left only if every holder that has
    credit already has as many bytes as it takes at once.
    """
    bytes_left = {
        holder: asked.most_bytes
        for holder, asked in (claim.terms or {}).items()
        if asked.most_bytes is not None
    }
    idle, busy = claim.credits[: claim.idle], claim.credits[claim.idle :]
    if bytes_left:
        return _share_out_bytes(jobs, (idle, busy), bytes_left)
    places = sum([credit for _, credit in idle])
    _give_in_turn(jobs[:places], idle)
    _give_in_turn(jobs[places:], busy)
    return list(jobs)


def _give_in_turn(jobs: Sequence[JobRecord], credits: Credits) -> None:
    """Give each job a holder. The credits are enough for all of them."""
    start = 0
    while start < len(jobs):
        # So many rounds at once as the holder with the least credit can join.
        rounds = min([credit for _, credit in credits])
        given = jobs[start : start + rounds * len(credits)]
        for place, (holder, _) in enumerate(credits):
            for job in given[place :: len(credits)]:
                job.holder = holder
        start += len(given)
        credits = [(holder, credit - rounds) for holder, credit in credits if credit > rounds]


def _share_out_bytes(
    jobs: Sequence[JobRecord], courses: Sequence[Credits], bytes_left: dict[int, int]
) -> list[JobRecord]:
    """Give each job to the next holder whose limit of bytes allows it."""
    waiting = deque(jobs)
    empty = {holder for course in courses for holder, _ in course}
    given: list[JobRecord] = []
    for course in courses:
        takers = deque(course)
        while waiting and takers:
            holder, credit = takers.popleft()
            left, size = bytes_left.get(holder), waiting[0].payload_size
            # The first job is given however large it is: otherwise it would never be given.
            if left is not None and holder not in empty and size > left:
                continue
            job = waiting.popleft()
            job.holder = holder
            given.append(job)
            empty.discard(holder)
            if left is not None:
                bytes_left[holder] = left - size
            if credit > 1:
                takers.append((holder, credit - 1))
    return given


def _leases(work: UnitOfWork, jobs: Sequence[JobRecord], wanted: Claim) -> list[tuple[object, ...]]:
    """Give jobs the claimants and the ends of their leases. Return a row for each job."""
    leases: list[tuple[object, ...]] = []
    for job in jobs:
        assert job.holder is not None
        terms = NO_TERMS if wanted.terms is None else wanted.terms.get(job.holder, NO_TERMS)
        job_ms = None if job.options is None else job.options.lease_ms
        lasts_ms = lease_time(terms, job_ms, work.settings_of(job.queue).lease_ms)
        job.claimant = terms.claimant
        job.lease_until = None if lasts_ms is None else work.steady + lasts_ms
        holder = job.holder if terms.claimant is None else 0
        leases.append((job.key, holder, job.claimant, job.lease_until))
    return leases


def _find_jobs(work: UnitOfWork, wanted: Claim, gates: Gates, monotonic: float) -> FoundJobs:
    """The jobs that a claim would get if none has expired."""
    if wanted.queues is not None:
        open_queues = gates.sort(work, wanted.queues, monotonic, leaves=wanted.leaves)
        if wanted.span is not None:
            span = {"first": wanted.span.start, "end": wanted.span.stop}
            queues = [queue for some in open_queues for queue in some]
            found = work.tx.jobs("claim_span", queues=queues, limit=wanted.limit, **span)
            return FoundJobs(found)
        return FoundJobs(work.tx.first_of(*open_queues, wanted.limit))
    is_open = work.rulebook.is_empty or not work.rulebook.has_gates
    if wanted.reach is EVERYWHERE and is_open:
        return FoundJobs(work.tx.jobs("claim_any", limit=wanted.limit))
    return next_jobs(work, wanted, gates, monotonic)


def _find_in_lines(work: UnitOfWork, wanted: Claim, gates: Gates, monotonic: float) -> FoundJobs:
    """Like `_find_jobs`, plus jobs that wait in lines."""
    found = _find_jobs(work, wanted, gates, monotonic)
    return with_lines(work, wanted, gates, monotonic, found)


def _fresh(work: UnitOfWork, found: FoundJobs, again: Callable[[], FoundJobs]) -> FoundJobs:
    """Replace the expired ones among found jobs by others, as long as there are any."""
    for _ in range(MOST_ROUNDS):
        lapsed = [job for job in found.jobs if _has_lapsed(job, work.steady)]
        if not lapsed:
            return found
        expire(work, [brief_of(job) for job in lapsed])
        work.open_heads()
        found = again()
    # The rest falls due in the next tick.
    left = [job for job in found.jobs if _has_lapsed(job, work.steady)]
    work.effects.woken.update([job.queue for job in left])
    return found._replace(jobs=[job for job in found.jobs if not _has_lapsed(job, work.steady)])


def _has_lapsed(job: JobRecord, now: int) -> bool:
    return job.expires_at is not None and job.expires_at <= now
