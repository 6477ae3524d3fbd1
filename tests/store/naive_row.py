"""One job of the naive queue, and which filters mean it."""

from dataclasses import dataclass, field

from zq.model.filters import Filter, Range
from zq.model.job import Backoff, ErrorRecord, Job, Options, Retention
from zq.model.lifecycle import Status
from zq.model.outcome import Outcome
from zq.model.unique import Scope

LARGE = 512
"""Bytes above which a payload lies beside its row."""


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
    backoff: Backoff | None = None
    completed_ms: int | None = None
    dead_ms: int | None = None
    unique_key: str | None = None
    scope: Scope | None = None
    attempts: int = 0
    deliveries: int = 0
    holder: int | None = None
    dequeued_at: int | None = None
    failed_at: int | None = None
    finished_at: int | None = None
    purge_at: int | None = None
    result: str | None = None
    errors: list[ErrorRecord] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.payload.encode())

    @property
    def result_size(self) -> int | None:
        return None if self.result is None else len(self.result.encode())

    def job(self, *, whole: bool = False) -> Job:
        """As the store shows it: a large payload or result only where `whole` asks for it."""
        retention = Retention(self.completed_ms, self.dead_ms)
        options = Options(
            self.retry_limit, self.backoff, None if retention == Retention() else retention
        )
        return Job(
            key=self.key,
            queue=self.queue,
            type=self.type,
            priority=self.priority,
            status=self.status,
            ready_at=self.ready_at,
            payload_size=self.size,
            payload=self.payload if whole or self.size <= LARGE else None,
            attempts=self.attempts,
            deliveries=self.deliveries,
            holder=self.holder,
            dequeued_at=self.dequeued_at,
            failed_at=self.failed_at,
            finished_at=self.finished_at,
            purge_at=self.purge_at,
            options=None if options == Options() else options,
            unique_key=self.unique_key,
            unique_while=self.scope,
            result_size=self.result_size,
            result=self.result if whole or (self.result_size or 0) <= LARGE else None,
        )

    def outcome(self) -> Outcome:
        """What those who ask for its result are told."""
        return Outcome(
            self.status, self.result, self.errors[-1] if self.status is Status.DEAD else None
        )

    def expired(self, now: int) -> bool:
        """Whether its retention is over, so that readers no longer see it."""
        return self.purge_at is not None and self.purge_at <= now


def matches(row: Row, filter: Filter) -> bool:
    """Whether a filter means this job."""
    return all(
        (
            not filter.statuses or row.status in filter.statuses,
            not filter.queues or row.queue in filter.queues,
            not filter.types or row.type in filter.types,
            filter.keys is None or row.key in filter.keys,
            _inside(row.priority, filter.priority),
            _inside(row.ready_at, filter.ready_at),
            _inside(row.attempts, filter.attempts),
        )
    )


def _inside(value: int, bounds: Range | None) -> bool:
    if bounds is None:
        return True
    return (bounds.low is None or bounds.low <= value) and (
        bounds.high is None or value <= bounds.high
    )
