"""The first jobs of some queues, in dispatch order: the heads of each, merged by one statement."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from zq.model.job import Job
from zq.model.reach import Reach
from zq.store.where import pattern
from zq.store.work import QUERIES, Work, as_json

MOST_ARMS = 499
"""Queues that one statement can merge: SQLite compiles compounds of up to 500 arms."""


def merge(work: Work, free: Sequence[str], bounds: Mapping[str, int], limit: int) -> list[Job]:
    """The first jobs of some queues that are free, and of others of which only so many count."""
    queues = [*free, *bounds]
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


def merge_many(work: Work, free: Sequence[str], bounds: Mapping[str, int], limit: int) -> list[Job]:
    """The same where the queues may be far more than jobs are wanted."""
    if len(free) + len(bounds) > limit:
        # The first jobs are those of the queues whose heads come first.
        names = as_json([*free, *bounds])
        first = work.names(QUERIES["first_heads"], queues=names, limit=limit)
        free = [queue for queue in first if queue not in bounds]
        bounds = {queue: bounds[queue] for queue in first if queue in bounds}
    return merge(work, free, bounds, limit)


def ready_queues(work: Work, reach: Reach) -> list[str]:
    """The queues within reach that have ready jobs now, by one seek each."""
    names: list[str] = []
    for prefix in reach.prefixes:
        names += work.names(QUERIES["ready_queues"], prefix=prefix, pattern=pattern(prefix))
    return names


@lru_cache(maxsize=MOST_ARMS)
def _merged(free: int, bounded: int) -> str:
    kinds = [QUERIES["claim_arm"]] * free + [QUERIES["claim_bounded_arm"]] * bounded
    arms = [
        arm.replace(":queue", f":q{index}").replace(":most", f":m{index}")
        for index, arm in enumerate(kinds)
    ]
    return QUERIES["claim_merged"].replace("ARMS", "\n    UNION ALL ".join(arms))
