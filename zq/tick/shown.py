"""Makes the times in the results of a tick dates: nobody outside the store knows steady times."""

from zq.model.commands import EnqueueResult, TickResult
from zq.model.job import JobRecord, show_dates


def show_results(result: TickResult, ahead: int) -> None:
    """Make the times of the jobs that a tick has found dates, `ahead` of which steady time is."""
    shown: dict[int, JobRecord] = {}
    for reply in result.replies:
        if isinstance(reply, JobRecord):
            shown[id(reply)] = reply
        elif isinstance(reply, EnqueueResult) and (reply.owners or reply.folded):
            for job in (*reply.owners.values(), *reply.folded.values()):
                shown[id(job)] = job
    if shown:
        show_dates(shown.values(), ahead)
    if ahead:
        for jobs in result.claimed:
            show_dates(jobs, ahead)
