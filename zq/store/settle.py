"""The tick's first phases: acknowledgements and failures."""

from collections.abc import Mapping, Sequence

from zq.model.commands import Fail, Settled, Succeed
from zq.model.errors import NotInFlight, StaleLease, ZqError
from zq.model.events import EventType
from zq.model.history import AttemptOutcome
from zq.model.job import INLINE_PAYLOAD, Job, Reason
from zq.model.lifecycle import Move, Status, sources
from zq.model.outcome import Completion
from zq.model.reach import EVERYWHERE
from zq.model.settling import after_failure, kept_until
from zq.store.bury import bury
from zq.store.history import Failed, record, record_failures
from zq.store.pick import stale_deliveries, within_reach
from zq.store.work import BYTES_A_ROW, QUERIES, Brief, Work, as_json

NOTHING_SAID = Completion()

_ERROR_COLUMNS = "job_id, attempt, message, error_type, backtrace, dequeued_at, failed_at"


def succeed(work: Work, commands: Sequence[Succeed]) -> list[object]:
    """Complete jobs: delete those that are not retained, mark the others."""
    keys = [key for command in commands for key in command.keys]
    said = {k: c for command in commands if command.said for k, c in command.said.items()}
    held = work.briefs("read_held", keys)
    if any(command.reach is not EVERYWHERE for command in commands):
        held = within_reach(held, {key: c.reach for c in commands for key in c.keys})
    stale = _stale(work, said, commands)
    if stale:
        held = [job for job in held if job.key not in stale]
    record(work, AttemptOutcome.COMPLETED, held)
    usual = kept_until(Status.COMPLETED, None, work.now, work.rulebook.server)
    special = work.rulebook.settings
    gone: list[Brief] = []
    kept: dict[int, Brief] = {}
    purges: dict[int, int] = {}
    for job in held:
        purge_at = usual
        if job.options is not None or job.key in said or job.queue in special:
            retention, policy = said.get(job.key, NOTHING_SAID).retention, work.policy_of(job.queue)
            purge_at = kept_until(Status.COMPLETED, job.options, work.now, policy, retention)
        if purge_at is None:
            gone.append(job)
        else:
            kept[job.key] = job
            purges[job.key] = purge_at
    if kept:
        _complete(work, purges, said)
        moved = work.move([job.queue for job in kept.values()], Status.IN_FLIGHT, Status.COMPLETED)
        work.traffic.completed.update(moved)
        work.end(kept.values())
        work.open_groups(kept.values())
    for (queue, _), n in work.remove(gone).items():
        work.traffic.completed[queue] += n
    work.tell(EventType.COMPLETED, held)
    work.tally.completed += len(held)
    work.tally.not_in_flight += len(keys) - len(held)
    done = {job.key for job in held} | stale
    return [
        Settled(frozenset(command.keys) - done, stale.intersection(command.keys))
        for command in commands
    ]


def fail(work: Work, commands: Sequence[Fail]) -> list[object]:
    """Keep a record of each failure, and schedule the next try or bury the job."""
    keys = as_json([command.key for command in commands])
    jobs = {job.key: job for job in work.jobs(QUERIES["read_jobs"], keys=keys)}
    verdicts: list[tuple[object, ...]] = []
    errors: list[tuple[object, ...]] = []
    failed: list[Failed] = []
    dying: list[tuple[Job, Reason]] = []
    waiting: list[int] = []
    retried: list[Job] = []
    replies: list[object] = []
    for command in commands:
        job = jobs.get(command.key)
        refusal = _refusal(command, job, work.now)
        if refusal is not None:
            replies.append(refusal)
            work.tally.not_in_flight += 1
            continue
        assert job is not None
        failure = command.failure
        job.attempts, job.failed_at = job.attempts + 1, work.now
        work.traffic.failed[job.queue] += 1
        verdict = after_failure(
            job.attempts - job.forgiven,
            job.options,
            failure,
            work.now,
            work.policy_of(job.queue),
            work.random,
        )
        texts = (failure.message, failure.error_type, failure.backtrace)
        errors.append((job.key, job.attempts, *texts, job.dequeued_at, work.now))
        failed.append(Failed(job.key, job.holder, verdict.ready_at is None, failure))
        replies.append(job)
        if verdict.ready_at is None:
            dying.append((job, Reason.KILLED if failure.kill else Reason.EXHAUSTED))
            continue
        verdicts.append((job.key, job.attempts, verdict.ready_at))
        work.end([job])
        work.touch_group(job.queue, job.group)
        work.move([job.queue], Status.IN_FLIGHT, Status.SCHEDULED)
        job.status, job.ready_at = Status.SCHEDULED, verdict.ready_at
        job.holder = job.claimant = job.lease_until = None
        retried.append(job)
        work.retimed |= job.expires_at is not None
        if job.unique_key is not None:
            waiting.append(job.key)
    record_failures(work, failed)
    if verdicts:
        work.run("fail", verdicts=as_json(verdicts), now=work.now)
        work.tally.retried += len(verdicts)
        work.tell(EventType.RETRYING, retried)
    work.insert_large("errors", _ERROR_COLUMNS, errors)
    if dying:
        attempts = {job.key: job.attempts for job, _ in dying}
        work.run("note_last_failures", attempts=as_json(attempts), now=work.now)
        bury(work, dying)
    if waiting:
        work.run("restore_locks", keys=as_json(waiting))
    return replies


def _refusal(command: Fail, job: Job | None, now: int) -> ZqError | None:
    """Why a failure of a job that was found, or was not, is not taken."""
    if job is None or not command.reach.covers(job.queue):
        return NotInFlight()
    lease = command.failure.lease
    in_flight = job.status in sources(Move.FAIL)
    if in_flight and lease in (None, job.deliveries):
        return None
    purged = job.purge_at is not None and job.purge_at <= now
    return NotInFlight() if lease is None or purged else StaleLease()


def _stale(
    work: Work, said: Mapping[int, Completion], commands: Sequence[Succeed]
) -> frozenset[int]:
    """The jobs that are there, but of which the delivery that is acknowledged has ended."""
    leases = {key: told.lease for key, told in said.items() if told.lease is not None}
    if not leases:
        return frozenset()
    reaches = {key: command.reach for command in commands for key in command.said or ()}
    return stale_deliveries(work, leases, reaches)


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
        work.insert_large("results", "job_id, body", beside)
