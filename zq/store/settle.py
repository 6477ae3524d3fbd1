"""The tick's first phases: acknowledgements, failures, and jobs whose stream has ended."""

from collections.abc import Sequence

from zq.model.commands import Fail, Return, Succeed
from zq.model.errors import NotInFlight
from zq.model.job import Job
from zq.model.lifecycle import Move, Status, sources
from zq.model.reach import EVERYWHERE
from zq.model.settling import Verdict, after_failure, after_success
from zq.store.work import QUERIES, Brief, Work, as_json

_ERROR_COLUMNS = "job_id, attempt, message, error_type, backtrace, dequeued_at, failed_at"


def succeed(work: Work, commands: Sequence[Succeed]) -> list[object]:
    """Complete jobs: delete those that are not retained, mark the others."""
    keys = [key for command in commands for key in command.keys]
    held = work.briefs("read_held", keys)
    if any(command.reach is not EVERYWHERE for command in commands):
        held = _within_reach(held, commands)
    usual = after_success(None, work.now, work.policy)
    gone: list[Brief] = []
    kept: list[Brief] = []
    purges: dict[int, int] = {}
    for job in held:
        options = job.options
        purge_at = usual if options is None else after_success(options, work.now, work.policy)
        if purge_at is None:
            gone.append(job)
        else:
            kept.append(job)
            purges[job.key] = purge_at
    if kept:
        work.run("complete", purges=as_json(purges), now=work.now)
        work.move([job.queue for job in kept], Status.IN_FLIGHT, Status.COMPLETED)
        _end(work, kept)
    work.remove(gone)
    found = {job.key for job in held}
    work.tally.completed += len(held)
    work.tally.not_in_flight += len(keys) - len(held)
    return [frozenset(command.keys) - found for command in commands]


def fail(work: Work, commands: Sequence[Fail]) -> list[object]:
    """Schedule the next try or bury the job, and keep a record of the failure."""
    keys = as_json([command.key for command in commands])
    jobs = {job.key: job for job in work.jobs(QUERIES["read_jobs"], keys=keys)}
    verdicts: list[tuple[object, ...]] = []
    errors: list[tuple[object, ...]] = []
    unkept: list[Brief] = []
    waiting: list[int] = []
    replies: list[object] = []
    for command in commands:
        job = jobs.get(command.key)
        if (
            job is None
            or job.status not in sources(Move.FAIL)
            or not command.reach.covers(job.queue)
        ):
            replies.append(NotInFlight())
            work.tally.not_in_flight += 1
            continue
        failure, attempts = command.failure, job.attempts + 1
        verdict = after_failure(attempts, job.options, failure, work.now, work.policy, work.random)
        if verdict.status is Status.DEAD and verdict.purge_at is None:
            unkept.append(_brief(job))
        else:
            row = (job.key, verdict.status, attempts, verdict.ready_at, verdict.purge_at)
            verdicts.append(row)
            texts = (failure.message, failure.error_type, failure.backtrace)
            errors.append((job.key, attempts, *texts, job.dequeued_at, work.now))
            work.move([job.queue], Status.IN_FLIGHT, verdict.status)
            _end(work, [job])
        if verdict.status is Status.SCHEDULED and job.unique_key is not None:
            waiting.append(job.key)
        replies.append(_failed(job, verdict, attempts, work.now))
        if verdict.status is Status.DEAD:
            work.tally.died += 1
        else:
            work.tally.retried += 1
    if verdicts:
        work.run("fail", verdicts=as_json(verdicts), now=work.now)
        work.insert("errors", _ERROR_COLUMNS, errors)
    work.remove(unkept)
    if waiting:
        work.run("restore_locks", keys=as_json(waiting))
    return replies


def give_back(work: Work, commands: Sequence[Return]) -> list[object]:
    """Make the jobs of ended streams ready again, in their old places, at no cost to them."""
    holders = {key: command.holder for command in commands for key in command.keys}
    held = [job for job in work.briefs("read_held", holders) if job.holder == holders[job.key]]
    if held:
        work.run("give_back", holders=as_json({job.key: job.holder for job in held}))
        work.tally.returned += len(held)
    queues = [job.queue for job in held]
    work.move(queues, Status.IN_FLIGHT, Status.READY)
    work.woken.update(queues)
    _end(work, held)
    if locks := [job.key for job in held if job.unique_while is not None]:
        work.run("restore_locks", keys=as_json(locks))
    return [None for _ in commands]


def _within_reach(held: Sequence[Brief], commands: Sequence[Succeed]) -> list[Brief]:
    """The jobs that those who acknowledge them may see. A tick has one settlement a job."""
    reaches = {key: command.reach for command in commands for key in command.keys}
    return [job for job in held if reaches[job.key].covers(job.queue)]


def _end(work: Work, jobs: Sequence[Brief | Job]) -> None:
    work.ended += [(job.holder, job.key) for job in jobs if job.holder is not None]


def _failed(job: Job, verdict: Verdict, attempts: int, now: int) -> Job:
    job.status = verdict.status
    job.attempts = attempts
    job.failed_at = now
    job.holder = None
    job.purge_at = verdict.purge_at
    if verdict.ready_at is not None:
        job.ready_at = verdict.ready_at
    return job


def _brief(job: Job) -> Brief:
    return Brief(
        key=job.key,
        queue=job.queue,
        status=job.status,
        attempts=job.attempts,
        holder=job.holder,
        options=job.options,
        unique_while=job.unique_while,
        payload_size=job.payload_size,
    )
