"""The tick's phases of leases: longer leases, returned jobs, and holders that stay silent."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from zq.model.commands import Extend, Extended, NoteResidents, Release, Return
from zq.model.events import EventType
from zq.model.job import MAX_TIME, Brief, JobRecord, Reason, brief_of
from zq.model.leasing import WORKER_DIED, stall_words, stalls_too_often
from zq.model.lifecycle import Move, Status
from zq.model.settling import Failure
from zq.store.api import Sliced
from zq.tick.bury import FailedAttempts, bury
from zq.tick.moves import apply
from zq.tick.work import UnitOfWork, stale_deliveries, unsettled, within_reach


def extend(work: UnitOfWork, commands: Sequence[Extend]) -> list[object]:
    """Move the deadlines of leases, also of leases without one."""
    held, stale = _meant(work, commands)
    untils = {key: work.steady + command.lease_ms for command in commands for key in command.keys}
    if held:
        work.tx.write("extend", deadlines={job.key: untils[job.key] for job in held})
        back = {key for command in commands if command.resumed for key in command.keys}
        if back:
            work.tx.write("forgive_stall", keys=[job.key for job in held if job.key in back])
        work.retimed = True
    return [
        Extended(refused, work.now + command.lease_ms)
        for command, refused in zip(commands, unsettled(commands, held, stale), strict=True)
    ]


def release(work: UnitOfWork, commands: Sequence[Release]) -> list[object]:
    """Make jobs ready or scheduled again that their worker does not want."""
    held, stale = _meant(work, commands)
    later = {
        key: command.delay_ms for command in commands if command.delay_ms for key in command.keys
    }
    after = [
        replace(job, status=Status.SCHEDULED if job.key in later else Status.READY)
        for job in (held if later else ())
    ]
    times = [(job.key, *_times(work, later.get(job.key))) for job in held]
    apply(work, Move.RELEASE, held, to=Status.READY, after=after or None, times=times)
    return list(unsettled(commands, held, stale))


def note_residents(work: UnitOfWork, commands: Sequence[NoteResidents]) -> list[object]:
    """Store which streams would die with this process, before they are given a job."""
    work.tx.write("note_residents", residents=commands[-1].residents)
    return [None for _ in commands]


def give_back(work: UnitOfWork, commands: Sequence[Return]) -> Sliced[list[object]]:
    """Make jobs ready again whose holder is gone, in their old places."""
    holders = {key: command.holder for command in commands for key in command.keys}
    found = work.tx.briefs("read_held", keys=list(holders))
    held = [job for job in found if job.holder == holders[job.key]]
    claims = {k: n for command in commands if command.leases for k, n in command.leases.items()}
    if claims:
        current = set(work.tx.keys("read_current", leases=claims))
        held = [job for job in held if job.key not in claims or job.key in current]
    stalled = frozenset[int]().union(*[command.stalled for command in commands])
    if stalled:
        yield from _stall(work, [job.key for job in held if job.key in stalled])
        held = [job for job in held if job.key not in stalled]
    apply(work, Move.RETURN, held, holders={job.key: job.holder for job in held})
    return [None for _ in commands]


def lapse(work: UnitOfWork, most: int) -> Sliced[None]:
    """Take jobs from their holders, strictly after the deadlines of their leases."""
    keys = work.tx.keys("read_overdue", now=work.steady, limit=most)
    work.effects.lapsed += keys
    yield from _stall(work, keys)
    yield from work.regain_keys(most)


def _stall(work: UnitOfWork, keys: Sequence[int]) -> Sliced[None]:
    """Make jobs ready again whose worker has reported nothing. Some die of it."""
    if not keys:
        return
    waiting: list[JobRecord] = []
    dying: list[JobRecord] = []
    for job in work.tx.jobs("read_jobs", keys=keys):
        job.stalls += 1
        (dying if stalls_too_often(job.stalls, _limit(work, job)) else waiting).append(job)
    apply(work, Move.STALL, waiting, keys=[job.key for job in waiting])
    if dying:
        failed = FailedAttempts(work)
        for job in dying:
            failed.count(job)
            failed.add(job, Failure(stall_words(job.stalls), WORKER_DIED), died=True)
        failed.store()
        work.effects.tally.stalled += len(dying)
        work.effects.news.append((EventType.STALLED, [brief_of(job) for job in dying]))
        work.tx.write("count_stalls", keys=[job.key for job in dying])
        work.effects.buried |= {job.key: (Reason.STALLED, job.stalls) for job in dying}
        yield from bury(work, [(job, Reason.STALLED) for job in dying])


def _limit(work: UnitOfWork, job: JobRecord) -> int | None:
    """How often a job may stall: its own limit comes first, then its queue's, then its stream's."""
    if job.options is not None and job.options.stall_limit is not None:
        return job.options.stall_limit
    limit = work.settings_of(job.queue).stall_limit
    holder = work.workers.get(job.holder or 0)
    return holder.stall_limit if limit is None and holder is not None else limit


def _times(work: UnitOfWork, delay_ms: int | None) -> tuple[int | None, int | None]:
    """The `ready_at` and the `due_at` of a job that waits for a while, if it does."""
    if delay_ms is None:
        return None, None
    return min(work.now + delay_ms, MAX_TIME), min(work.steady + delay_ms, MAX_TIME)


def _meant(
    work: UnitOfWork, commands: Sequence[Extend] | Sequence[Release]
) -> tuple[list[Brief], frozenset[int]]:
    """The jobs in flight that commands name, and those of which they name another delivery."""
    reaches = {key: command.reach for command in commands for key in command.keys}
    leases: Mapping[int, int] = {k: n for command in commands for k, n in command.leases.items()}
    held = within_reach(work.tx.briefs("read_held", keys=list(reaches)), reaches)
    # Nobody changes what is held from here on.
    stale = stale_deliveries(work, leases, reaches)
    return [job for job in held if job.key not in stale], stale
