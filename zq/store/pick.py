"""Which jobs a command is about: by key or filter, within reach, of the delivery that is meant."""

from collections.abc import Mapping, Sequence

from zq.model.filters import Filter
from zq.model.job import Job
from zq.model.reach import Reach
from zq.store.where import where
from zq.store.work import QUERIES, Brief, Work, as_json


def visible_job(work: Work, key: int, reach: Reach) -> Job | None:
    """A job that is there for whoever asks: within reach, and its retention is not over."""
    return first_visible(work, work.jobs(QUERIES["read_jobs"], keys=as_json([key])), reach)


def owner_of(work: Work, unique_key: str, reach: Reach) -> Job | None:
    """The same for the job that owns a key."""
    sql = QUERIES["read_owners"].replace("NAMES", ":name")
    return first_visible(work, work.jobs(sql, name=unique_key), reach)


def first_visible(work: Work, jobs: Sequence[Job], reach: Reach) -> Job | None:
    """The first of the jobs that is there for whoever asks."""
    for job in jobs:
        if (job.purge_at is None or job.purge_at > work.now) and reach.covers(job.queue):
            return job
    return None


def still_matching(work: Work, keys: Sequence[int], filter: Filter) -> list[int]:
    """Those of the keys whose jobs match the filter of a sweep now."""
    conditions, parameters = where(filter)
    among = "id IN (SELECT value FROM json_each(:slice))"
    query = f"SELECT json_group_array(id) FROM jobs WHERE {among} AND {conditions}"
    return work.keys(query, slice=as_json(keys), **parameters)


def within_reach(jobs: Sequence[Brief], reaches: Mapping[int, Reach]) -> list[Brief]:
    """The jobs that are there for those who name them; a tick has one settlement a job."""
    return [job for job in jobs if reaches[job.key].covers(job.queue)]


def stale_deliveries(
    work: Work, leases: Mapping[int, int], reaches: Mapping[int, Reach]
) -> frozenset[int]:
    """The jobs that are there, but of which the delivery that is named has ended."""
    if not leases:
        return frozenset()
    found = work.pairs(QUERIES["read_stale"], leases=as_json(leases), now=work.now)
    return frozenset(key for key, queue in found if reaches[key].covers(queue))
