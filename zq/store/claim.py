"""The tick's last phase: handing ready jobs to the streams that wait."""

from collections.abc import Sequence
from functools import lru_cache

from zq.model.commands import Claim
from zq.model.job import Job
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach
from zq.store.where import pattern
from zq.store.work import QUERIES, Work, as_json

MOST_ARMS = 499
"""Queues that one statement can merge: SQLite compiles compounds of up to 500 arms."""


def claim(work: Work, wanted: Claim) -> list[Job]:
    """Take the next jobs in dispatch order and deal them out."""
    queues = wanted.queues
    if queues is None and wanted.reach is not EVERYWHERE:
        queues = _ready_queues(work, wanted.reach)
    jobs = _heads(work, queues, wanted.limit)
    if not jobs:
        return jobs
    deal(jobs, wanted.credits)
    for job in jobs:
        job.status = Status.IN_FLIGHT
        job.deliveries += 1
        job.dequeued_at = work.now
    work.move([job.queue for job in jobs], Status.READY, Status.IN_FLIGHT)
    work.tally.delivered += len(jobs)
    holders = as_json({job.key: job.holder for job in jobs})
    work.run("take", holders=holders, now=work.now)
    return jobs


def deal(jobs: Sequence[Job], credits: Sequence[tuple[int, int]]) -> None:
    """Give the jobs to the holders in turn, as cards are dealt, until their credit is used up."""
    players = list(credits)
    start = 0
    while start < len(jobs) and players:
        rounds = min(credit for _, credit in players)
        hand = jobs[start : start + rounds * len(players)]
        for seat, (holder, _) in enumerate(players):
            for job in hand[seat :: len(players)]:
                job.holder = holder
        start += len(hand)
        players = [(holder, credit - rounds) for holder, credit in players if credit > rounds]


def _ready_queues(work: Work, reach: Reach) -> tuple[str, ...]:
    """The queues within reach that have ready jobs now."""
    names: list[str] = []
    for prefix in reach.prefixes:
        names += work.names(QUERIES["ready_queues"], prefix=prefix, pattern=pattern(prefix))
    return tuple(names)


def _heads(work: Work, queues: tuple[str, ...] | None, limit: int) -> list[Job]:
    if queues is None:
        return work.jobs(QUERIES["claim_any"], limit=limit)
    heads: list[Job] = []
    for start in range(0, len(queues), MOST_ARMS):
        part = queues[start : start + MOST_ARMS]
        names = {f"q{index}": queue for index, queue in enumerate(part)}
        heads += work.jobs(_merged(len(part)), limit=limit, **names)
    if len(queues) > MOST_ARMS:
        heads.sort(key=lambda job: (job.priority, job.key))
    return heads[:limit]


@lru_cache(maxsize=MOST_ARMS)
def _merged(queues: int) -> str:
    arm = QUERIES["claim_arm"]
    arms = [arm.replace(":queue", f":q{index}") for index in range(queues)]
    return QUERIES["claim_merged"].replace("ARMS", "\n    UNION ALL ".join(arms))
