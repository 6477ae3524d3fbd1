"""Late reports: a worker's lease is over, and nobody else has taken its job.

The job waits again, and only a job in flight can be settled. So its last delivery goes on, for the
rest of the transaction.
"""

from collections.abc import Collection, Sequence, Set

from zq.model.commands import Fail, Succeed
from zq.model.job import JobRecord
from zq.model.lifecycle import Move
from zq.tick.holds import is_held
from zq.tick.moves import apply
from zq.tick.work import UnitOfWork

_NONE: Set[int] = frozenset()


def resume(
    work: UnitOfWork, commands: Sequence[Succeed] | Sequence[Fail], held: Collection[int]
) -> Set[int]:
    """Have the senders of late reports hold the jobs that they had last. Return the jobs' keys.

    The jobs in `held` are in flight anyway. Give the keys to `settled` when the reports have had
    their effects.
    """
    late: dict[int, Succeed | Fail] = {}
    for command in commands:
        if command.late is not None:
            keys = command.keys if isinstance(command, Succeed) else (command.key,)
            late |= {key: command for key in keys if key not in held}
    if not late:
        return _NONE
    found = work.tx.jobs("read_lost", keys=list(late), now=work.steady)
    jobs = [job for job in found if _may_go_on(work, job, late[job.key])]
    apply(work, Move.RESUME, jobs, claimants={job.key: late[job.key].late for job in jobs})
    return {job.key for job in jobs}


def settled(work: UnitOfWork, resumed: Set[int]) -> None:
    """Leave out that the leases of these jobs have ended: memory learned it when they were over."""
    if resumed:
        work.effects.ended = [each for each in work.effects.ended if each[1] not in resumed]


def _may_go_on(work: UnitOfWork, job: JobRecord, command: Succeed | Fail) -> bool:
    """True if a report is about the last delivery of a job within its reach.

    What a hold has given for its delivery, somebody else may have by now.
    """
    if isinstance(command, Fail):
        lease = command.failure.lease
    else:
        told = (command.said or {}).get(job.key)
        lease = None if told is None else told.lease
    named = lease in (None, job.deliveries)
    return named and not is_held(work, job) and command.reach.covers(job.queue)
