"""The end of jobs that die."""

from collections.abc import Sequence

from zq.model.job import Job
from zq.model.lifecycle import Status
from zq.model.settling import kept_until
from zq.store.work import Brief, Work, as_json, brief_of


def bury(work: Work, jobs: Sequence[Job], reason: str) -> None:
    """Let ready jobs die of something that is no failure."""
    purges: dict[int, int] = {}
    gone: list[Brief] = []
    for job in jobs:
        purge_at = kept_until(Status.DEAD, job.options, work.now, work.policy_of(job.queue))
        if purge_at is None:
            gone.append(brief_of(job))
        else:
            purges[job.key] = purge_at
    if purges:
        work.run("bury", purges=as_json(purges), now=work.now, reason=reason)
        queues = [job.queue for job in jobs if job.key in purges]
        work.move(queues, Status.READY, Status.DEAD)
    work.remove(gone)
    work.tally.died += len(jobs)
    work.buried |= {job.key: reason for job in jobs}
