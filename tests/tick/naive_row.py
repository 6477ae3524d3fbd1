"""One job of the naive queue, and the filters that match it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from zq.features.batches.model_jobs import batch_in
from zq.features.budgets.model import Draws
from zq.model.checksums import checksum, job_checksum
from zq.model.filters import Filter, ValueRange
from zq.model.job import BackoffRule, ErrorRecord, Extras, JobRecord, JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.settling import Ending
from zq.model.unique import KeySpace, Scope

LARGE = 512
"""Bytes above which a payload lies beside its row."""


class Ended(NamedTuple):
    """One record of the history."""

    key: int
    queue: str
    type: str
    attempt: int
    outcome: str
    ready_at: int
    dequeued_at: int | None
    finished_at: int
    error_type: str | None
    message: str | None
    worker: str | None
    payload_bytes: int
    priority: int


@dataclass
class Row:
    """One job with everything that belongs to it."""

    key: int
    queue: str
    type: str
    priority: int
    status: Status
    ready_at: int
    payload: str
    retry_limit: int | None = None
    backoff: BackoffRule | None = None
    lease_ms: int | None = None
    dead_letter: str | None = None
    dead_letter_after: int | None = None
    stall_limit: int | None = None
    draws: Draws = ()
    completed_ms: int | None = None
    dead_ms: int | None = None
    unique_key: str | None = None
    scope: Scope | None = None
    space: KeySpace = KeySpace.ALL
    group: str | None = None
    held: bool = False
    attempts: int = 0
    deliveries: int = 0
    holder: int | None = None
    dequeued_at: int | None = None
    failed_at: int | None = None
    finished_at: int | None = None
    purge_at: int | None = None
    extras: Extras | None = None
    result: str | None = None
    expires_at: int | None = None
    ttl_ms: int | None = None
    """What the job itself came with."""
    due_at: int | None = None
    """When it is ready again, where it waits for a while."""
    life_ms: int | None = None
    """How long it may wait once its date has come."""
    lease_until: int | None = None
    claimant: str | None = None
    stalls: int = 0
    forgiven: int = 0
    origin: str | None = None
    reason: str | None = None
    died_at: int | None = None
    swept: int | None = None
    revision: int | None = None
    """How often jobs were folded into it, while it hosts an open batch."""
    errors: list[ErrorRecord] = field(default_factory=list)

    def attempt(
        self,
        now: int,
        outcome: str,
        worker: str | None,
        error_type: str | None = None,
        message: str | None = None,
    ) -> "Ended":
        """What the history has of an attempt that ends now, before the row is changed."""
        held = self.holder is not None
        return Ended(
            key=self.key,
            queue=self.queue,
            type=self.type,
            attempt=self.attempts + 1,
            outcome=outcome,
            ready_at=self.ready_at,
            dequeued_at=self.dequeued_at if held else None,
            finished_at=now,
            error_type=error_type,
            message=message,
            worker=worker if held else None,
            payload_bytes=self.size,
            priority=self.priority,
        )

    @property
    def lock(self) -> str | None:
        """What its unique key is told from others by."""
        return self.lock_in(self.queue)

    def lock_in(self, queue: str) -> str | None:
        """What its unique key would be told from others by in a queue."""
        if self.unique_key is None:
            return None
        return f"{queue if self.space is KeySpace.QUEUE else ''},{self.unique_key}"

    def waits_in(self, queue: str) -> bool:
        """Whether it counts to the depth of a queue."""
        return self.queue == queue and self.status <= Status.IN_FLIGHT

    @property
    def batch(self) -> str | None:
        """The key of the batch that it came with."""
        rule = batch_in(self.extras)
        return None if rule is None else rule.key

    @property
    def size(self) -> int:
        return len(self.payload.encode())

    @property
    def result_size(self) -> int | None:
        return None if self.result is None else len(self.result.encode())

    @property
    def shown_ready_at(self) -> int:
        """Of a job that waits for a duration, when that ends."""
        if self.status is Status.SCHEDULED and self.due_at is not None:
            return self.due_at
        return self.ready_at

    def job(self, *, whole: bool = False) -> JobRecord:
        """As the store shows it: a large payload or result only where `whole` asks for it."""
        retention = Retention(self.completed_ms, self.dead_ms)
        options = JobSettings(
            retry_limit=self.retry_limit,
            backoff=self.backoff,
            retention=None if retention == Retention() else retention,
            lease_ms=self.lease_ms,
            dead_letter=self.dead_letter,
            dead_letter_after=self.dead_letter_after,
            stall_limit=self.stall_limit,
        )
        options = msgspec.structs.replace(options, budgets=self.draws or None)
        extras = msgspec.structs.replace(
            self.extras or Extras(),
            origin=self.origin,
            reason=self.reason,
            died_at=self.died_at,
            ttl_ms=self.ttl_ms,
        )
        return JobRecord(
            key=self.key,
            queue=self.queue,
            type=self.type,
            priority=self.priority,
            status=self.status,
            ready_at=self.shown_ready_at,
            payload_size=self.size,
            payload=self.payload if whole or self.size <= LARGE else None,
            checksum=job_checksum(
                self.type,
                self.payload if self.size <= LARGE else None,
                self.extras,
                None if options == JobSettings() else options,
            ),
            attempts=self.attempts,
            deliveries=self.deliveries,
            holder=self.holder,
            dequeued_at=self.dequeued_at,
            failed_at=self.failed_at,
            finished_at=self.finished_at,
            purge_at=self.purge_at,
            options=None if options == JobSettings() else options,
            unique_key=self.unique_key,
            unique_while=self.scope,
            group=self.group,
            expires_at=self.expires_at if self.life_ms is None else self.ready_at + self.life_ms,
            lease_until=self.lease_until,
            claimant=self.claimant,
            stalls=self.stalls,
            forgiven=self.forgiven,
            extras=None if extras == Extras() else extras,
            result_size=self.result_size,
            result=self.result if whole or (self.result_size or 0) <= LARGE else None,
            result_checksum=None if self.result is None else checksum(self.result),
            unique_in=self.space,
            due_at=self.due_at,
            ttl_ms=self.life_ms,
        )

    def outcome(self) -> Ending:
        """What those who ask for its result are told."""
        if self.status is not Status.DEAD and self.origin is None:
            return Ending(self.status, self.result)
        if self.reason == "stalled":
            stalls = self.stalls if self.status is Status.DEAD else 0
            return Ending(Status.DEAD, reason=self.reason, stalls=stalls)
        # A dead letter may fail again. That is not what the job has died of.
        before = self.errors if self.origin is None else self.errors[: self.forgiven]
        return Ending(Status.DEAD, error=before[-1] if before else None)

    def begin_life(self) -> None:
        """Its date has come: from then on its time runs."""
        self.due_at = None
        if self.life_ms is not None:
            self.expires_at, self.life_ms = self.ready_at + self.life_ms, None

    def expired(self, now: int) -> bool:
        """Whether its retention is over, so that readers no longer see it."""
        return self.purge_at is not None and self.purge_at <= now

    def lapsed(self, now: int) -> bool:
        """Whether it waits, and nobody may take it any more."""
        waits = self.status in (Status.SCHEDULED, Status.READY)
        return waits and self.expires_at is not None and self.expires_at <= now


def matches(row: Row, filter: Filter) -> bool:
    """Whether a filter means this job."""
    return all(
        (
            not filter.statuses or row.status in filter.statuses,
            not filter.queues or row.queue in filter.queues,
            not filter.types or row.type in filter.types,
            not filter.groups or row.group in filter.groups,
            not filter.budgets or any(draw.key in filter.budgets for draw in row.draws),
            filter.keys is None or row.key in filter.keys,
            filter.swept is None or row.swept == filter.swept,
            _inside(row.priority, filter.priority),
            _inside(row.ready_at, filter.ready_at),
            _inside(row.attempts, filter.attempts),
            not filter.revivable or row.status is Status.DEAD or _is_lettered(row),
        )
    )


def _is_lettered(row: Row) -> bool:
    return row.origin is not None and row.status in (Status.SCHEDULED, Status.READY)


def _inside(value: int, bounds: ValueRange | None) -> bool:
    if bounds is None:
        return True
    return (bounds.low is None or bounds.low <= value) and (
        bounds.high is None or value <= bounds.high
    )
