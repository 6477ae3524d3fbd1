"""How jobs die and how they are revived.

A dying job moves to the dead-letter queue of its queue, if there is one: it keeps its id and the
history of its errors, is ready again there, and begins anew as far as limits go. Else it is dead.
"""

from collections.abc import Sequence

import msgspec

from zq.model.commands import Retry, ReviveSlice
from zq.model.errors import JobNotFound, NotDead
from zq.model.events import EventType
from zq.model.job import MAX_TIME, Extras, Job, Reason
from zq.model.lifecycle import NAMES, Status
from zq.model.settling import kept_until
from zq.store.pick import still_matching, visible_job
from zq.store.work import QUERIES, Work, as_json, brief_of

NO_EXTRAS = Extras()


def bury(work: Work, dying: Sequence[tuple[Job, Reason]]) -> None:
    """Let jobs in flight die, each for its reason. They become what the store has of them then.

    What led to their death, say another attempt, is in the database already.
    """
    moved: list[tuple[Job, str]] = []
    dead: list[Job] = []
    # As they are now: one that moves is told of once more, as a new job of the other queue.
    work.tell(EventType.FAILED, [brief_of(job) for job, _ in dying])
    for job, reason in dying:
        target = work.settings_of(job.queue).dead_letter
        if target is None:
            _change_extras(job, reason=reason)
            dead.append(job)
        else:
            _change_extras(job, reason=reason, origin=_extras(job).origin or job.queue)
            moved.append((job, target))
    _bury(work, dead)
    _revive(work, moved)
    work.tally.died += len(dying)


def retry(work: Work, command: Retry) -> object:
    """Make one dead job ready again, in the queue in which it died."""
    job = visible_job(work, command.key, command.reach)
    if job is None:
        return JobNotFound()
    if job.status is not Status.DEAD:
        return NotDead(NAMES[job.status])
    _change_extras(job, reason=None)
    _revive(work, [(job, job.queue)])
    return job


def revive_slice(work: Work, command: ReviveSlice) -> int:
    """Revive the jobs among the keys that still match the sweep's filter."""
    keys = still_matching(work, command.keys, command.filter)
    moved: list[tuple[Job, str]] = []
    for job in work.jobs(QUERIES["read_jobs"], keys=as_json(keys)):
        target = _extras(job).origin or job.queue
        if command.filter.reach.covers(target):
            _change_extras(job, reason=None, origin=None)
            moved.append((job, target))
    _revive(work, moved)
    return len(moved)


def _bury(work: Work, jobs: Sequence[Job]) -> None:
    """Mark jobs in flight as dead, or delete those that are not kept."""
    rows: list[tuple[object, ...]] = []
    for job in jobs:
        policy = work.policy_of(job.queue)
        job.purge_at = kept_until(Status.DEAD, job.options, work.now, policy)
        rows.append((job.key, job.purge_at, job.extras))
    work.remove([brief_of(job) for job in jobs if job.purge_at is None])
    kept = [job for job in jobs if job.purge_at is not None]
    if kept:
        graves = [row for row in rows if row[1] is not None]
        work.run("bury", graves=as_json(graves), now=work.now)
        work.move([job.queue for job in kept], Status.IN_FLIGHT, Status.DEAD)
        work.touch_groups(kept)
        work.end(kept)
    for job in jobs:
        job.status, job.finished_at = Status.DEAD, work.now
        job.holder = job.lease_until = job.claimant = None


def _revive(work: Work, moves: Sequence[tuple[Job, str]]) -> None:
    """Make jobs ready that wait, die or are dead, each in the queue that is named.

    Attempts, stalls and the time to live begin anew. They become what the store has of them then.
    """
    if not moves:
        return
    jobs = [job for job, _ in moves]
    rows: list[tuple[object, ...]] = []
    work.touch_groups(jobs)
    work.end(jobs)
    for job, queue in moves:
        ttl_ms = work.settings_of(queue).ttl_ms
        expires_at = None if ttl_ms is None else min(work.now + ttl_ms, MAX_TIME)
        rows.append((job.key, job.status, queue, expires_at, job.extras))
        work.counts[job.queue, job.status] -= 1
        work.counts[queue, Status.READY] += 1
        work.woken.add(queue)
        job.queue, job.status, job.ready_at = queue, Status.READY, work.now
        job.expires_at, job.forgiven, job.stalls = expires_at, job.attempts, 0
        job.finished_at = job.purge_at = job.holder = job.lease_until = job.claimant = None
    work.run("revive", revivals=as_json(rows), now=work.now)
    work.touch_groups(jobs)
    work.tell(EventType.ENQUEUED, jobs)
    work.retimed = True
    if locks := [job.key for job in jobs if job.unique_key is not None]:
        work.run("restore_all_locks", keys=as_json(locks))


def _extras(job: Job) -> Extras:
    return job.extras or NO_EXTRAS


def _change_extras(job: Job, **changes: str | None) -> None:
    changed = msgspec.structs.replace(_extras(job), **changes)
    job.extras = None if changed == NO_EXTRAS else changed
