"""The tick's last phase: handing ready jobs to the streams that wait."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter

from zq.model.commands import Claim
from zq.model.job import Job
from zq.model.leasing import NO_TERMS, lease_time
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.store.deal import deal
from zq.store.finish import expire
from zq.store.gates import Gates
from zq.store.groups import turn_heads
from zq.store.merge import merge
from zq.store.walk import Found, next_jobs
from zq.store.work import QUERIES, Work, as_json, brief_of

MOST_ROUNDS = 4
"""Times that a claim looks again because what it found has expired: bounds a tick."""


def claim(work: Work, wanted: Claim, gates: Gates, monotonic: float) -> list[Job]:
    """Take the next jobs in dispatch order and deal them out."""
    look = partial(_look, work, wanted, gates, monotonic)
    found = look()
    if work.retimed:
        found = _fresh(work, found, look)
    jobs = deal(found.jobs, wanted.credits, wanted.terms)
    left = {job.queue for job in found.jobs[len(jobs) :]}
    work.left |= left
    gates.note(work, jobs)
    if found.frontier is not None:
        # A walk has passed what is left behind.
        work.frontiers[wanted.reach] = found.frontier.stir(left)
    if not jobs:
        return jobs
    for job in jobs:
        job.status = Status.IN_FLIGHT
        job.deliveries += 1
        job.dequeued_at = work.now
    moved = work.move([job.queue for job in jobs], Status.READY, Status.IN_FLIGHT)
    work.traffic.delivered.update(moved)
    work.tally.delivered += len(jobs)
    if wanted.terms is not None or work.rulebook.has_leases or any(map(_OPTIONS, jobs)):
        _take_on_terms(work, jobs, wanted)
    else:
        holders = as_json({job.key: job.holder for job in jobs})
        work.run("take", holders=holders, now=work.now)
    return jobs


def _take_on_terms(work: Work, jobs: Sequence[Job], wanted: Claim) -> None:
    """Hand out jobs of which some may have claimants, or leases with deadlines."""
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
    work.run("take_on_terms", leases=as_json(leases), now=work.now)
    work.retimed = True


def _look(work: Work, wanted: Claim, gates: Gates, monotonic: float) -> Found:
    """The jobs that a claim is to get, if none of them has expired."""
    if wanted.queues is not None:
        open_queues = gates.sort(work, wanted.queues, monotonic)
        return Found(merge(work, *open_queues, wanted.limit))
    if wanted.reach is EVERYWHERE and not work.rulebook.has_gates:
        return Found(work.jobs(QUERIES["claim_any"], limit=wanted.limit))
    return next_jobs(work, wanted, gates, monotonic)


def _fresh(work: Work, found: Found, again: Callable[[], Found]) -> Found:
    """The same without jobs that have expired; as many others in their place as there are."""
    for _ in range(MOST_ROUNDS):
        lapsed = [job for job in found.jobs if _has_lapsed(job, work.now)]
        if not lapsed:
            return found
        expire(work, [brief_of(job) for job in lapsed])
        turn_heads(work)
        found = again()
    # What is left over falls due with the next tick.
    left = [job for job in found.jobs if _has_lapsed(job, work.now)]
    work.woken.update([job.queue for job in left])
    return found._replace(jobs=[job for job in found.jobs if not _has_lapsed(job, work.now)])


def _has_lapsed(job: Job, now: int) -> bool:
    return job.expires_at is not None and job.expires_at <= now


_OPTIONS = attrgetter("options")
