"""Twins of stored jobs: new jobs for further targets of a queue."""

from collections.abc import Sequence

import msgspec

from zq.model.checksums import fits
from zq.model.commands import Enqueue, EnqueueResult
from zq.model.job import INLINE_PAYLOAD, NO_EXTRAS, JobRecord, NewJob, without_former_key
from zq.model.lifecycle import Status
from zq.model.sharing import maker
from zq.model.unique import KeySpace, OnConflict
from zq.store.api import PAGE_BYTES, exhaust
from zq.tick.fitting import by_bytes
from zq.tick.intake import enqueue
from zq.tick.work import UnitOfWork

_OWN = ("queue", "payload", "ready_at", "on_conflict", "extras", "ttl_ms", "unique_in")
_new = maker(JobRecord, NewJob, *_OWN)


def store_twins(work: UnitOfWork, target: str, jobs: Sequence[JobRecord]) -> None:
    """Store a twin of each stored job in a target. Depths of queues do not count."""
    for some in by_bytes(jobs, [job.payload_size for job in jobs], PAGE_BYTES):
        _store(work, target, some)


def first_of(job: JobRecord) -> int:
    """The key of the first of a job's twins, which may be the job itself."""
    known = None if job.extras is None else job.extras.twin_of
    return job.key if known is None else known


def _store(work: UnitOfWork, target: str, jobs: Sequence[JobRecord]) -> None:
    beside = [job.key for job in jobs if job.payload_size > INLINE_PAYLOAD]
    bodies: dict[int, str] = {}
    if beside:
        rows = work.tx.table("read_payloads", keys=beside)
        bodies = {key: body for key, body, stored in rows if fits(body, stored)}
        if gone := [key for key in beside if key not in bodies]:
            work.tx.set_aside("jobs", gone)
            jobs = [job for job in jobs if job.key not in set(gone)]
    twins = [_twin_of(work, job, bodies.get(job.key, job.payload), target) for job in jobs]
    size = sum(job.payload_size for job in jobs)
    keys = work.new_keys(len(twins))
    new = Enqueue(keys=keys, jobs=twins, now=work.now, size=size, over_depth=True)
    (reply,) = exhaust(enqueue(work, [new]))
    assert isinstance(reply, EnqueueResult), reply


def _twin_of(work: UnitOfWork, job: JobRecord, payload: str | None, target: str) -> NewJob:
    """A new job with the limits of a stored one. Its attempts begin anew."""
    waits = job.status is Status.SCHEDULED and not job.attempts
    ready_at = job.ready_at if job.due_at is None else job.due_at - (work.steady - work.now)
    ttl_ms = job.ttl_ms
    if job.expires_at is not None:
        start = work.steady if job.due_at is None or not waits else max(job.due_at, work.steady)
        ttl_ms = max(job.expires_at - start, 1)
    return _new(
        without_former_key(job),
        queue=target,
        payload=payload or "null",
        ready_at=ready_at if waits else None,
        on_conflict=OnConflict.REPLACE_CONTENT,
        extras=msgspec.structs.replace(job.extras or NO_EXTRAS, twin_of=first_of(job)),
        ttl_ms=ttl_ms,
        unique_in=KeySpace.QUEUE,
    )
