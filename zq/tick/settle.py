"""The tick's first phases: acknowledgements and failures."""

from collections.abc import Collection, Mapping, Sequence, Set

from zq.model.checksums import checksum
from zq.model.commands import Fail, Settled, Succeed
from zq.model.errors import NotInFlight, StaleLease, ZqError
from zq.model.job import INLINE_PAYLOAD, MAX_TIME, Brief, JobRecord, Reason
from zq.model.lifecycle import Move, Status, sources
from zq.model.reach import EVERYWHERE
from zq.model.settings import QueueSettings, dead_letter_of, is_last_failure
from zq.model.settling import Completion, Failure, Verdict, after_failure, kept_until
from zq.store.api import BYTES_A_ROW, Sliced
from zq.tick.bury import FailedAttempts, bury, queue_as_named
from zq.tick.moves import apply
from zq.tick.work import UnitOfWork, is_held, options_of, stale_deliveries, unsettled, within_reach

ALL_SETTLED = Settled(frozenset())
NOTHING_SAID = Completion()
NOTHING_SET: Mapping[str, QueueSettings] = {}
_NONE = frozenset[int]()


def succeed(work: UnitOfWork, commands: Sequence[Succeed]) -> list[object]:
    """Complete jobs: delete those that are not retained, mark the others."""
    keys = [key for command in commands for key in command.keys]
    said = {k: c for command in commands if command.said for k, c in command.said.items()}
    held = work.tx.briefs("read_held", keys=keys)
    resumed: Set[int] = _NONE
    if len(held) < len(keys):
        resumed = resume(work, commands, {job.key for job in held})
        held += work.tx.briefs("read_held", keys=list(resumed)) if resumed else []
    if any(command.reach is not EVERYWHERE for command in commands):
        held = within_reach(held, {key: c.reach for c in commands for key in c.keys})
    stale = _stale(work, said, commands) if said else _NONE
    if stale:
        held = [job for job in held if job.key not in stale]
    if said:
        _spend(work, held, said)
    gone, kept, purges = _ends(work, held, said)
    completions, beside = _results(work, purges, said) if said else ([], [])
    apply(work, Move.SUCCEED, kept, gone=gone, purges=purges, completions=completions)
    if beside:
        work.tx.insert_large("results", "job_id, body, checksum", beside)
    if resumed:
        settled(work, resumed)
    if len(held) == len(keys):
        return [ALL_SETTLED] * len(commands)
    work.effects.tally.not_in_flight += len(keys) - len(held)
    return list(unsettled(commands, held, stale))


def _spend(work: UnitOfWork, held: Sequence[Brief], said: Mapping[int, Completion]) -> None:
    """Tell holds what jobs have used of what these gave them."""
    for job in held:
        used = said.get(job.key, NOTHING_SAID).used
        if used:
            for hold in work.holds:
                if hold.is_used:
                    hold.spend(job, used)


def _ends(
    work: UnitOfWork, held: list[Brief], said: Mapping[int, Completion]
) -> tuple[list[Brief], list[Brief], dict[int, int]]:
    """The completed jobs that are deleted, those that are kept, and until when, by key."""
    usual = kept_until(Status.COMPLETED, None, work.steady, work.rulebook.server)
    special = NOTHING_SET if work.rulebook.is_empty else work.rulebook.settings
    if usual is None and not (
        said or special or any(options.retention is not None for options in options_of(held))
    ):
        return held, [], {}
    gone: list[Brief] = []
    kept: list[Brief] = []
    purges: dict[int, int] = {}
    for job in held:
        purge_at = usual
        if job.key in said or job.queue in special or _has_retention(job):
            retention, policy = said.get(job.key, NOTHING_SAID).retention, work.policy_of(job.queue)
            purge_at = kept_until(Status.COMPLETED, job.options, work.steady, policy, retention)
        if purge_at is None:
            gone.append(job)
        else:
            kept.append(job)
            purges[job.key] = purge_at
    return gone, kept, purges


def _has_retention(job: Brief) -> bool:
    return job.options is not None and job.options.retention is not None


def fail(work: UnitOfWork, commands: Sequence[Fail]) -> Sliced[list[object]]:
    """Record each failure, and schedule the next attempt or bury the job."""
    keys = [command.key for command in commands]
    found = work.tx.jobs("read_jobs", keys=keys)
    resumed = resume(work, commands, [j.key for j in found if j.status in sources(Move.FAIL)])
    if resumed:
        found = work.tx.jobs("read_jobs", keys=keys)
    jobs = {job.key: job for job in found}
    failed = FailedAttempts(work)
    dying: list[tuple[JobRecord, Reason]] = []
    retried: list[tuple[JobRecord, Verdict]] = []
    replies: list[object] = []
    for command in commands:
        job = jobs.get(command.key)
        refusal = _refusal(command, job, work.steady)
        if refusal is not None:
            replies.append(refusal)
            work.effects.tally.not_in_flight += 1
            continue
        assert job is not None
        failure = command.failure
        failed.count(job)
        verdict = after_failure(
            job.attempts - job.forgiven,
            job.options,
            failure,
            work.policy_of(job.queue),
            work.random,
        )
        died = verdict.status is Status.DEAD or _is_last(work, job, failure)
        record = failed.add(job, failure, died=died)
        if died:
            dying.append((job, Reason.KILLED if failure.kill else Reason.EXHAUSTED))
            work.effects.fatal[job.key] = record
        else:
            retried.append((job, verdict))
        replies.append(job)
    failed.store()
    if dying:
        yield from bury(work, dying)
    if retried:
        _retry(work, retried)
    if resumed:
        settled(work, resumed)
    return replies


def _is_last(work: UnitOfWork, job: JobRecord, failure: Failure) -> bool:
    """True if a job moves to its dead-letter queue although its limit allows another attempt."""
    if failure.retry_at is not None:
        return False
    letter = dead_letter_of(job.options, work.settings_of(job.queue))
    return is_last_failure(letter, queue_as_named(work, letter, job), job.attempts - job.forgiven)


def _retry(work: UnitOfWork, retried: Sequence[tuple[JobRecord, Verdict]]) -> None:
    """Schedule the next attempts of jobs. The objects are updated to match their rows."""
    for job, verdict in retried:
        if verdict.ready_at is None:
            job.ready_at = min(work.now + verdict.delay_ms, MAX_TIME)
            job.due_at = min(work.steady + verdict.delay_ms, MAX_TIME)
        else:
            job.ready_at, job.due_at = verdict.ready_at, None
    jobs = [job for job, _ in retried]
    verdicts = [(job.key, job.attempts, job.ready_at, job.due_at) for job in jobs]
    apply(work, Move.FAIL, jobs, verdicts=verdicts)
    for job in jobs:
        job.status = Status.SCHEDULED
        job.holder = job.claimant = job.lease_until = None


def _refusal(command: Fail, job: JobRecord | None, steady: int) -> ZqError | None:
    """Why a failure is refused. `job` is None if the job was not found."""
    if job is None or not command.reach.covers(job.queue):
        return NotInFlight()
    lease = command.failure.lease
    in_flight = job.status in sources(Move.FAIL)
    if in_flight and lease in (None, job.deliveries):
        return None
    purged = job.purge_at is not None and job.purge_at <= steady
    return NotInFlight() if lease is None or purged else StaleLease()


def _stale(
    work: UnitOfWork, said: Mapping[int, Completion], commands: Sequence[Succeed]
) -> frozenset[int]:
    """The jobs within reach whose acknowledged delivery has ended."""
    leases = {key: told.lease for key, told in said.items() if told.lease is not None}
    if not leases:
        return frozenset()
    reaches = {key: command.reach for command in commands for key in command.said or ()}
    return stale_deliveries(work, leases, reaches)


def _results(
    work: UnitOfWork, purges: dict[int, int], said: Mapping[int, Completion]
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """The rows of jobs with results, which are removed from `purges`, and of large results."""
    rows: list[tuple[object, ...]] = []
    beside: list[tuple[object, ...]] = []
    for key, told in said.items():
        if key not in purges or told.result is None:
            continue
        text: str | None = told.result
        check = checksum(told.result)
        if told.result_size > INLINE_PAYLOAD:
            beside.append((key, text, check))
            work.tx.rows += told.result_size // BYTES_A_ROW
            text = None
        rows.append((key, purges.pop(key), told.result_size, text, check))
    return rows, beside


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
