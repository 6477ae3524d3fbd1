"""The end of jobs that die."""

from collections.abc import Sequence

from zq.model.job import Job
from zq.model.lifecycle import Status
from zq.model.settling import kept_until
from zq.store.work import Work, as_json, brief_of


def bury(work: Work, dying: Sequence[tuple[Job, str]]) -> None:
    """Let jobs in flight die, each for its reason."""
    for job, reason in dying:
        purge_at = kept_until(Status.DEAD, job.options, work.now, work.policy_of(job.queue))
        if purge_at is None:
            work.remove([brief_of(job)])
        else:
            work.run("bury", purges=as_json({job.key: purge_at}), now=work.now, reason=reason)
            work.move([job.queue], Status.IN_FLIGHT, Status.DEAD)
            work.end([job])
            work.touch_group(job.queue, job.group)
        job.status = Status.DEAD
    work.tally.died += len(dying)
