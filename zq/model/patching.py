"""PATCH: the fields of a job that may change, and the effect of the change on its state."""

import msgspec

from zq.model.errors import Unprocessable
from zq.model.job import (
    NO_OPTIONS,
    BackoffRule,
    JobRecord,
    JobSettings,
    Millis,
    Retention,
    SettingFields,
)
from zq.model.lifecycle import NAMES, TERMINAL, Status

Unset = msgspec.UnsetType
UNSET = msgspec.UNSET


class RetentionPatch(msgspec.Struct, frozen=True):
    """For each field: absent keeps it, None removes it, a number sets it."""

    completed_ms: Millis | None | Unset = UNSET
    dead_ms: Millis | None | Unset = UNSET


class Patch(msgspec.Struct, frozen=True):
    """A validated change. An absent field stays; None means the default (`ready_at`: now)."""

    queue: str | Unset = UNSET
    priority: int | Unset = UNSET
    ready_at: int | None | Unset = UNSET
    retry_limit: int | None | Unset = UNSET
    backoff: BackoffRule | None | Unset = UNSET
    retention: RetentionPatch | None | Unset = UNSET
    lease_ms: int | None | Unset = UNSET

    @property
    def queues_named(self) -> tuple[str, ...]:
        """The queue that it moves jobs to, if any."""
        return () if self.queue is UNSET else (self.queue,)


_SETTINGS = [name for name in Patch.__struct_fields__ if name in SettingFields.__struct_fields__]


def refuse_terminal(text_id: str, status: Status) -> None:
    """Raise `Unprocessable` for a finished job: it can no longer change."""
    if status in TERMINAL:
        raise Unprocessable(f"cannot patch job {text_id} in {NAMES[status]} status")


def moves_a_running_head(job: JobRecord, patch: Patch) -> bool:
    """True if a patch would move a job of a group while it is in flight.

    That is refused. The next job of its group would start beside it, and in the new queue a group
    of the same name might have a job in flight.
    """
    return (
        job.status is Status.IN_FLIGHT
        and job.group is not None
        and patch.queue not in (UNSET, job.queue)
    )


def patched(job: JobRecord, patch: Patch, now: int, steady: int, lasts_ms: int | None) -> JobRecord:
    """The job after the patch. `job` must not be terminal.

    `lasts_ms` is how long it may wait for a worker if its time begins anew; None means forever.
    """
    status, ready_at = _schedule(job, patch.ready_at, now)
    due_at, expires_at, ttl_ms = job.due_at, job.expires_at, job.ttl_ms
    if patch.ready_at is not UNSET:
        due_at = None
        if status is Status.SCHEDULED and expires_at is not None:
            # It waits for a date, at which its time begins.
            expires_at, ttl_ms = None, lasts_ms
    if ttl_ms is not None and status is Status.READY:
        # It waits for its date no longer.
        expires_at, ttl_ms = steady + ttl_ms, None
    return msgspec.structs.replace(
        job,
        queue=job.queue if patch.queue is UNSET else patch.queue,
        priority=job.priority if patch.priority is UNSET else patch.priority,
        status=status,
        ready_at=ready_at,
        options=_options(job.options or NO_OPTIONS, patch),
        due_at=due_at,
        expires_at=expires_at,
        ttl_ms=ttl_ms,
    )


def _schedule(job: JobRecord, ready_at: int | None | Unset, now: int) -> tuple[Status, int]:
    if ready_at is UNSET:
        return job.status, job.ready_at
    if job.status is Status.IN_FLIGHT:
        return job.status, job.ready_at if ready_at is None else ready_at
    if ready_at is None:
        due = now if job.status is Status.SCHEDULED else job.ready_at
        return Status.READY, due
    return (Status.SCHEDULED if ready_at > now else Status.READY), ready_at


def _options(options: JobSettings, patch: Patch) -> JobSettings | None:
    changes = {name: value for name in _SETTINGS if (value := getattr(patch, name)) is not UNSET}
    changes["retention"] = merged_retention(options.retention, patch.retention)
    changed = msgspec.structs.replace(options, **changes)
    return None if changed == NO_OPTIONS else changed


def merged_retention(
    retention: Retention | None, patch: RetentionPatch | None | Unset
) -> Retention | None:
    """A retention after the patch; None if nothing is left of it."""
    if patch is UNSET:
        return retention
    if patch is None:
        return None
    old = retention or Retention()
    merged = Retention(
        completed_ms=old.completed_ms if patch.completed_ms is UNSET else patch.completed_ms,
        dead_ms=old.dead_ms if patch.dead_ms is UNSET else patch.dead_ms,
    )
    return None if merged == Retention() else merged


# Zizq ignores unknown fields, and so do its routes here. The bodies of other routes refuse them.


class StrictBackoff(BackoffRule, frozen=True, forbid_unknown_fields=True):
    """How long a failed job waits, in milliseconds."""


class StrictRetention(Retention, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How long a finished job is kept, in milliseconds."""

    def plain(self) -> Retention:
        """The retention as the model has it."""
        return Retention(self.completed_ms, self.dead_ms)


class StrictRetentionPatch(RetentionPatch, frozen=True, forbid_unknown_fields=True):
    """A change of retention. For each field: absent keeps, null removes, a number sets."""
