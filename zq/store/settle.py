"""The tick's first phases: acknowledgements, failures, and jobs whose stream has ended."""

from collections.abc import Iterable, Mapping, Sequence

from zq.model.commands import Fail, Return, Settled, Succeed
from zq.model.errors import NotInFlight
from zq.model.job import INLINE_PAYLOAD, Job
from zq.model.lifecycle import Move, Status, sources
from zq.model.outcome import Completion
from zq.model.reach import EVERYWHERE
from zq.model.settling import Verdict, after_failure, kept_until
from zq.store.work import BYTES_A_ROW, QUERIES, Brief, Work, as_json, brief_of

NOTHING_SAID = Completion()

_ERROR_COLUMNS = "job_id, attempt, message, error_type, backtrace, dequeued_at, failed_at"


def succeed(work: Work, commands: Sequence[Succeed]) -> list[object]:
    """Complete jobs: delete those that are not retained, mark the others."""
    keys = [key for command in commands for key in command.keys]
    said = {k: c for command in commands if command.said for k, c in command.said.items()}
    held = work.briefs("read_held", keys)
    if any(command.reach is not EVERYWHERE for command in commands):
        held = _within_reach(held, commands)
    stale = _stale(work, said, commands)
    if stale:
        held = [job for job in held if job.key not in stale]
    usual = kept_until(Status.COMPLETED, None, work.now, work.policy)
    gone: list[Brief] = []
    kept: dict[int, Brief] = {}
    purges: dict[int, int] = {}
    for job in held:
        purge_at = usual
        if job.options is not None or job.key in said:
            retention = said.get(job.key, NOTHING_SAID).retention
            purge_at = kept_until(Status.COMPLETED, job.options, work.now, work.policy, retention)
        if purge_at is None:
            gone.append(job)
        else:
            kept[job.key] = job
            purges[job.key] = purge_at
    if kept:
        _complete(work, purges, said)
        work.move([job.queue for job in kept.values()], Status.IN_FLIGHT, Status.COMPLETED)
        _end(work, kept.values())
    work.remove(gone)
    work.tally.completed += len(held)
    work.tally.not_in_flight += len(keys) - len(held)
    done = {job.key for job in held} | stale
    return [
        Settled(frozenset(command.keys) - done, stale.intersection(command.keys))
        for command in commands
    ]


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
            unkept.append(brief_of(job))
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


def _stale(
    work: Work, said: Mapping[int, Completion], commands: Sequence[Succeed]
) -> frozenset[int]:
    """The jobs that are there, but of which the delivery that is acknowledged has ended."""
    leases = {key: told.lease for key, told in said.items() if told.lease is not None}
    if not leases:
        return frozenset()
    found = work.pairs(QUERIES["read_stale"], leases=as_json(leases), now=work.now)
    reaches = {key: command.reach for command in commands for key in command.said or ()}
    return frozenset(key for key, queue in found if reaches[key].covers(queue))


def _complete(work: Work, purges: dict[int, int], said: Mapping[int, Completion]) -> None:
    """Mark jobs as completed, and keep their results."""
    rows: list[tuple[object, ...]] = []
    beside: list[tuple[object, ...]] = []
    for key, told in said.items():
        if key not in purges or told.result is None:
            continue
        text: str | None = told.result
        if told.result_size > INLINE_PAYLOAD:
            beside.append((key, text))
            work.rows += told.result_size // BYTES_A_ROW
            text = None
        rows.append((key, purges.pop(key), told.result_size, text))
    if purges:
        work.run("complete", purges=as_json(purges), now=work.now)
    if rows:
        work.run("complete_with_results", completions=as_json(rows), now=work.now)
        work.insert("results", "job_id, body", beside)


def _end(work: Work, jobs: Iterable[Brief | Job]) -> None:
    work.ended += [(job.holder, job.key) for job in jobs if job.holder is not None]


def _failed(job: Job, verdict: Verdict, attempts: int, now: int) -> Job:
    job.status = verdict.status
    job.attempts = attempts
    job.failed_at = now
    job.holder = None
    job.purge_at = verdict.purge_at
    job.finished_at = now if verdict.status is Status.DEAD else None
    if verdict.ready_at is not None:
        job.ready_at = verdict.ready_at
    return job
