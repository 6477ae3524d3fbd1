"""The tick's last phase: handing ready jobs to the streams that wait."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter

from zq.model.commands import Claim
from zq.model.job import Job
from zq.model.leasing import NO_TERMS, lease_time
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach
from zq.store.deal import deal
from zq.store.finish import expire
from zq.store.gates import Gates, Way
from zq.store.groups import turn_heads
from zq.store.where import pattern
from zq.store.work import QUERIES, Work, as_json, brief_of

MOST_ARMS = 499
"""Queues that one statement can merge: SQLite compiles compounds of up to 500 arms."""


MOST_ROUNDS = 4
"""Times that a claim looks again because what it found has expired: bounds a tick."""


def claim(work: Work, wanted: Claim, gates: Gates, monotonic: float) -> list[Job]:
    """Take the next jobs in dispatch order and deal them out."""
    way = gates.way(work, wanted, monotonic) if work.rulebook.has_gates else None
    jobs = _heads(work, wanted, way)
    if work.retimed:
        jobs = _fresh(work, jobs, lambda: _heads(work, wanted, way))
    found, jobs = jobs, deal(jobs, wanted.credits, wanted.terms)
    work.left.update([job.queue for job in found[len(jobs) :]])
    if way is not None:
        gates.note(work, way, jobs)
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


def _ready_queues(work: Work, reach: Reach) -> tuple[str, ...]:
    """The queues within reach that have ready jobs now."""
    names: list[str] = []
    for prefix in reach.prefixes:
        names += work.names(QUERIES["ready_queues"], prefix=prefix, pattern=pattern(prefix))
    return tuple(names)


def _heads(work: Work, wanted: Claim, way: Way | None) -> list[Job]:
    if way is not None:
        return _merge(work, [*way.free, *way.bounded], way.bounded, wanted.limit)
    queues = wanted.queues
    if queues is None and wanted.reach is not EVERYWHERE:
        queues = _ready_queues(work, wanted.reach)
    if queues is None:
        return work.jobs(QUERIES["claim_any"], limit=wanted.limit)
    return _merge(work, queues, {}, wanted.limit)


def _merge(work: Work, queues: Sequence[str], bounds: Mapping[str, int], limit: int) -> list[Job]:
    """The first jobs of some queues; of those with a bound, which come last, only so many."""
    heads: list[Job] = []
    for start in range(0, len(queues), MOST_ARMS):
        part = queues[start : start + MOST_ARMS]
        names: dict[str, object] = {f"q{index}": queue for index, queue in enumerate(part)}
        most = [(index, bounds[queue]) for index, queue in enumerate(part) if queue in bounds]
        names |= {f"m{index}": bound for index, bound in most}
        heads += work.jobs(_merged(len(part) - len(most), len(most)), limit=limit, **names)
    if len(queues) > MOST_ARMS:
        heads.sort(key=lambda job: (job.priority, job.key))
    return heads[:limit]


@lru_cache(maxsize=MOST_ARMS)
def _merged(free: int, bounded: int) -> str:
    kinds = [QUERIES["claim_arm"]] * free + [QUERIES["claim_bounded_arm"]] * bounded
    arms = [
        arm.replace(":queue", f":q{index}").replace(":most", f":m{index}")
        for index, arm in enumerate(kinds)
    ]
    return QUERIES["claim_merged"].replace("ARMS", "\n    UNION ALL ".join(arms))


def _fresh(work: Work, jobs: list[Job], again: Callable[[], list[Job]]) -> list[Job]:
    """The jobs, without those that have expired; as many others in their place as there are."""
    for _ in range(MOST_ROUNDS):
        lapsed = [job for job in jobs if _has_lapsed(job, work.now)]
        if not lapsed:
            return jobs
        expire(work, [brief_of(job) for job in lapsed])
        turn_heads(work)
        jobs = again()
    # What is left over falls due with the next tick.
    return [job for job in jobs if not _has_lapsed(job, work.now)]


def _has_lapsed(job: Job, now: int) -> bool:
    return job.expires_at is not None and job.expires_at <= now


_OPTIONS = attrgetter("options")
