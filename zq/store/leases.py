"""The tick's phases of leases: longer ones, jobs given back, and holders of whom nobody hears."""

from collections.abc import Mapping, Sequence

from zq.model.commands import Extend, Extended, Release, Return, Settled
from zq.model.events import EventType
from zq.model.history import AttemptOutcome
from zq.model.job import MAX_TIME, Job, Reason
from zq.model.leasing import stalls_too_often
from zq.model.lifecycle import Status
from zq.store.bury import bury
from zq.store.history import record
from zq.store.pick import stale_deliveries, within_reach
from zq.store.work import QUERIES, Brief, Work, as_json, brief_of


def extend(work: Work, commands: Sequence[Extend]) -> list[object]:
    """Move the deadlines of leases, also of those that had none."""
    held, stale = _meant(work, commands)
    untils = {key: work.steady + command.lease_ms for command in commands for key in command.keys}
    if held:
        work.run("extend", deadlines=as_json({job.key: untils[job.key] for job in held}))
        work.retimed = True
    return [
        Extended(refused, work.steady + command.lease_ms)
        for command, refused in zip(commands, _refused(commands, held, stale), strict=True)
    ]


def release(work: Work, commands: Sequence[Release]) -> list[object]:
    """Make jobs ready again, or scheduled, whose worker does not want them."""
    held, stale = _meant(work, commands)
    later = {
        key: min(work.now + command.delay_ms, MAX_TIME)
        for command in commands
        if command.delay_ms
        for key in command.keys
    }
    if held:
        work.run("release", times=as_json([(job.key, later.get(job.key)) for job in held]))
        postponed = [job.queue for job in held if job.key in later]
        work.move(postponed, Status.IN_FLIGHT, Status.SCHEDULED)
        _wait_again(work, held, [job.queue for job in held if job.key not in later])
    return list(_refused(commands, held, stale))


def give_back(work: Work, commands: Sequence[Return]) -> list[object]:
    """Make jobs ready again whose holder is gone, in their old places."""
    holders = {key: command.holder for command in commands for key in command.keys}
    held = [job for job in work.briefs("read_held", holders) if job.holder == holders[job.key]]
    claims = {k: n for command in commands if command.leases for k, n in command.leases.items()}
    if claims:
        current = set(work.keys(QUERIES["read_current"], leases=as_json(claims)))
        held = [job for job in held if job.key not in claims or job.key in current]
    stalled = frozenset[int]().union(*[command.stalled for command in commands])
    if stalled:
        _stall(work, [job.key for job in held if job.key in stalled])
        held = [job for job in held if job.key not in stalled]
    if held:
        work.run("give_back", holders=as_json({job.key: job.holder for job in held}))
        _wait_again(work, held, [job.queue for job in held])
    return [None for _ in commands]


def lapse(work: Work, most: int) -> None:
    """Take jobs from their holders, strictly after the deadlines of their leases."""
    keys = work.keys(QUERIES["read_overdue"], now=work.steady, limit=most)
    work.lapsed += keys
    _stall(work, keys)


def _stall(work: Work, keys: Sequence[int]) -> None:
    """Make jobs ready again of which their worker has said nothing; some die of it."""
    if not keys:
        return
    waiting: list[Job] = []
    dying: list[Job] = []
    for job in work.jobs(QUERIES["read_jobs"], keys=as_json(keys)):
        job.stalls += 1
        limit = work.settings_of(job.queue).stall_limit
        (dying if stalls_too_often(job.stalls, limit) else waiting).append(job)
    work.tally.stalled += len(keys)
    work.tell(EventType.STALLED, [brief_of(job) for job in waiting + dying])
    record(work, AttemptOutcome.STALLED, waiting)
    record(work, AttemptOutcome.DEAD, dying)
    if waiting:
        work.run("stall", keys=as_json([job.key for job in waiting]))
        _wait_again(work, waiting, [job.queue for job in waiting])
    if dying:
        work.run("count_stalls", keys=as_json([job.key for job in dying]))
        bury(work, [(job, Reason.STALLED) for job in dying])
        work.buried |= {job.key: Reason.STALLED for job in dying if job.status is Status.DEAD}


def _wait_again(work: Work, jobs: Sequence[Brief | Job], ready: Sequence[str]) -> None:
    """Count what was in flight and waits now; `ready` has the queues of those that are ready."""
    work.move(ready, Status.IN_FLIGHT, Status.READY)
    work.woken.update(ready)
    work.retimed = True
    work.tally.returned += len(jobs)
    work.end(jobs)
    work.touch_groups(jobs)
    if locks := [job.key for job in jobs if job.unique_while is not None]:
        work.run("restore_locks", keys=as_json(locks))


def _meant(
    work: Work, commands: Sequence[Extend] | Sequence[Release]
) -> tuple[list[Brief], frozenset[int]]:
    """The jobs in flight that commands are about, and those that they mean another delivery of."""
    reaches = {key: command.reach for command in commands for key in command.keys}
    leases: Mapping[int, int] = {k: n for command in commands for k, n in command.leases.items()}
    stale = stale_deliveries(work, leases, reaches)
    held = within_reach(work.briefs("read_held", reaches), reaches)
    return [job for job in held if job.key not in stale], stale


def _refused(
    commands: Sequence[Extend] | Sequence[Release], held: Sequence[Brief], stale: frozenset[int]
) -> list[Settled]:
    done = {job.key for job in held} | stale
    return [
        Settled(frozenset(command.keys) - done, stale.intersection(command.keys))
        for command in commands
    ]
