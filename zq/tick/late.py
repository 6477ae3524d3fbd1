"""Late reports: a worker's lease is over, and nobody else has taken its job.

The job waits again, and only a job in flight can be settled. So its last delivery goes on, for the
rest of the transaction.
"""

from collections.abc import Sequence, Set

from zq.model.commands import Fail, Succeed
from zq.model.job import NO_OPTIONS, JobRecord
from zq.model.lifecycle import Move
from zq.tick.moves import apply
from zq.tick.work import UnitOfWork

_NONE: Set[int] = frozenset()


def resume(work: UnitOfWork, commands: Sequence[Succeed] | Sequence[Fail]) -> Set[int]:
    """Have the senders of late reports hold the jobs that they had last. Return the jobs' keys.

    Give them to `settled` when the reports have had their effects.
    """
    late: dict[int, Succeed | Fail] = {}
    for command in commands:
        if command.late is not None:
            keys = command.keys if isinstance(command, Succeed) else (command.key,)
            late |= dict.fromkeys(keys, command)
    if not late:
        return _NONE
    found = work.tx.jobs("read_lost", keys=list(late), now=work.now)
    jobs = [job for job in found if late[job.key].reach.covers(job.queue) and _is_free(job)]
    apply(work, Move.RESUME, jobs, claimants={job.key: late[job.key].late for job in jobs})
    return {job.key for job in jobs}


def settled(work: UnitOfWork, resumed: Set[int]) -> None:
    """Leave out that the leases of these jobs have ended: memory learned it when they were over."""
    if resumed:
        work.effects.ended = [each for each in work.effects.ended if each[1] not in resumed]


def _is_free(job: JobRecord) -> bool:
    """Whether a job draws from no budget: its tokens may be somebody else's by now."""
    return (job.options or NO_OPTIONS).budgets is None
