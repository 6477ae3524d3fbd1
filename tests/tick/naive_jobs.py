"""The jobs of the naive queue: what readers see of them, and how each changes its state."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from zq.model.commands import Deadlines, Due, Enqueue
from zq.model.effects import Traffic
from zq.model.errors import KeyTaken, QueueFull, Unprocessable, ZqError
from zq.model.events import EventType
from zq.model.filters import Filter
from zq.model.job import JobRecord, Retention
from zq.model.leasing import Holder
from zq.model.lifecycle import Status
from zq.model.settings import QueueSettings
from zq.model.settling import Policy
from zq.model.unique import KeySpace, Scope

from .naive_row import Ended, Row, matches

SCHEDULED, READY, IN_FLIGHT, COMPLETED, DEAD, CANCELLED, EXPIRED = Status

SPAN = {
    Scope.QUEUED: {SCHEDULED, READY},
    Scope.ACTIVE: {SCHEDULED, READY, IN_FLIGHT},
    Scope.EXISTS: {SCHEDULED, READY, IN_FLIGHT, COMPLETED, DEAD},
}


Told = tuple[EventType, int, str, int, str]
"""What happened to a job: its key, its queue, how often it has failed, its unique key or none."""


@dataclass
class Answers:
    """What a tick has to answer. `gained` names queues that got a ready job before the claims."""

    replies: list[object] = field(default_factory=list)
    ended: list[tuple[int, int]] = field(default_factory=list)
    revoked: list[int] = field(default_factory=list)
    lapsed: list[int] = field(default_factory=list)
    buried: dict[int, tuple[str, int]] = field(default_factory=dict)
    claimed: list[list[JobRecord]] = field(default_factory=list)
    gained: set[str] = field(default_factory=set)
    news: list[Told] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)


class NaiveJobs:
    """All jobs and who owns which unique key."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.now = 0
        self.rows: dict[int, Row] = {}
        self.owners: dict[str, int] = {}
        self.settings: dict[str, QueueSettings] = {}
        self.names: dict[tuple[str, str, str], tuple[int, int]] = {}
        self.outcome = Answers()
        self.history: list[Ended] = []
        self.workers: Mapping[int, Holder] = {}
        self._waits_again: list[Row] = []
        self._revived: list[Row] = []

    # What there is to see.

    def visible(self, now: int, filter: Filter | None = None) -> list[JobRecord]:
        """What readers see, by id."""
        return [
            row.job(whole=True)
            for row in sorted(self.rows.values(), key=lambda row: row.key)
            if not row.expired(now) and (filter is None or matches(row, filter))
        ]

    def counts(self) -> Counter[tuple[str, Status]]:
        return Counter((row.queue, row.status) for row in self.rows.values())

    def deadlines(self) -> Deadlines:
        waiting = [row for row in self.rows.values() if row.status in (SCHEDULED, READY)]
        times = {
            Due.EXPIRY: [row.expires_at for row in waiting if row.expires_at is not None],
            Due.PROMOTION: [r.ready_at for r in self._scheduled() if r.due_at is None],
            Due.WAIT: [r.due_at for r in self._scheduled() if r.due_at is not None],
            Due.PURGE: [row.purge_at for row in self.rows.values() if row.purge_at is not None],
            Due.NAMES: [until for _, until in self.names.values()],
        }
        return {due: min(waiting) for due, waiting in times.items() if waiting}

    def _scheduled(self) -> list[Row]:
        return [row for row in self.rows.values() if row.status is SCHEDULED]

    def keys(self, *statuses: Status) -> list[int]:
        """Keys of the jobs in these states (none given: in any)."""
        return [row.key for row in self.rows.values() if not statuses or row.status in statuses]

    # What happens.

    def _expire(self, row: Row) -> None:
        self._record(row, "expired")
        keep_ms = self._keep_ms(row, "dead_ms")
        row.finished_at, row.purge_at = self.now, self.now + keep_ms if keep_ms else None
        self._to(row, EXPIRED)
        self._tell(EventType.EXPIRED, row)
        if not keep_ms:
            self._remove(row.key)

    def _revive(self, row: Row, queue: str) -> None:
        self._move(row, queue)
        row.ready_at = self.now
        row.finished_at = row.purge_at = None
        row.forgiven, row.stalls = row.attempts, 0
        ttl_ms = self._lasts_ms(row)
        row.expires_at = None if ttl_ms is None else self.now + ttl_ms
        row.due_at = row.life_ms = None
        self._to(row, READY)
        self._tell(EventType.ENQUEUED, row)
        self._revived.append(row)

    def _lasts_ms(self, row: Row) -> int | None:
        """How long a job may wait for a worker, if its time begins anew."""
        own = row.ttl_ms if row.origin is None else None
        return self._set_for(row.queue).ttl_ms if own is None else own

    def _keeps_out(self, row: Row, queue: str, *, keyless: bool = False) -> ZqError | None:
        """Why a job may not enter a queue. If it may, it has its key from now on."""
        lock = None if keyless else row.lock_in(queue)
        owner = self.rows.get(self.owners.get(lock or "", -1))
        if lock is not None and owner is not None and owner is not row:
            if not owner.lapsed(self.now) and not owner.expired(self.now):
                return KeyTaken(row.unique_key or "")
            del self.owners[lock]
        most = self._set_for(queue).max_depth
        waiting = [
            other for other in self.rows.values() if other.waits_in(queue) and other is not row
        ]
        if most is not None and len(waiting) >= most:
            return QueueFull(queue, most)
        if lock is not None:
            self._disown(row)
            self.owners[lock] = row.key
        return None

    def _lapse(self) -> None:
        """Leases are the business of a subclass."""
        raise NotImplementedError

    # Budgets are the business of a subclass too: here each job has all that it needs.

    def _refusal(self, _command: Enqueue) -> Unprocessable | None:
        """Why no budget could pay one of the new jobs."""
        return None

    def _prepare(self, command: Enqueue) -> None:
        """Create the budgets that new jobs bring."""

    def _cannot_return(self, _row: Row) -> Unprocessable | None:
        """Why no budget could pay a job that has ended."""
        return None

    def _pays(self, _row: Row, _spent: Counter[str]) -> bool:
        """Whether a job can be paid beside what others of its claim have spent; it is noted."""
        return True

    # Small change.

    def _record(self, row: Row, outcome: str, *error: str | None) -> None:
        worker = row.claimant or self.workers.get(row.holder or 0, Holder()).name or None
        self.history.append(row.attempt(self.now, outcome, worker, *error))

    def _set_for(self, queue: str) -> QueueSettings:
        return self.settings.get(queue, QueueSettings())

    def _keep_ms(self, row: Row, name: str, said: int | None = None) -> int:
        """What is said now, else what the job, its queue, or the server has set."""
        queue = getattr(self._set_for(row.queue).retention or Retention(), name)
        choices = (said, getattr(row, name), queue, getattr(self.policy, name))
        chosen: int = next(ms for ms in choices if ms is not None)
        return chosen

    def _tell(self, type: EventType, row: Row) -> None:
        told = (type, row.key, row.queue, row.attempts, row.unique_key or "")
        self.outcome.news.append(told)

    def _to(self, row: Row, status: Status) -> None:
        if row.status is IN_FLIGHT and status is not IN_FLIGHT:
            assert row.holder is not None
            self.outcome.ended.append((row.holder, row.key))
            row.holder = row.claimant = row.lease_until = None
        row.status = status
        if status is not READY:
            row.revision = None
        if row.status not in (SCHEDULED, READY):
            row.held = False
        if status is READY:
            self.outcome.gained.add(row.queue)
        if row.scope is not None and status not in SPAN[row.scope]:
            self._disown(row)

    def _disown(self, row: Row) -> None:
        if row.lock is not None and self.owners.get(row.lock) == row.key:
            del self.owners[row.lock]

    def _move(self, row: Row, queue: str) -> None:
        """Bring a job to a queue; a key of its former one stays behind."""
        if row.space is KeySpace.QUEUE and queue != row.queue:
            self._disown(row)
        row.queue = queue

    def _wait_again(self, row: Row, status: Status) -> None:
        self._to(row, status)
        self._waits_again.append(row)

    def _restore_locks(self) -> None:
        """A "queued" owner that waits again owns its key again, if it is free; the oldest first."""
        for row in sorted(self._revived, key=lambda row: row.key):
            if row.lock is not None and row.origin is None:
                self.owners.setdefault(row.lock, row.key)
        for row in sorted(self._waits_again, key=lambda row: row.key):
            if row.lock is not None and row.scope is Scope.QUEUED and row.origin is None:
                self.owners.setdefault(row.lock, row.key)
        self._revived, self._waits_again = [], []

    def _remove(self, key: int) -> bool:
        row = self.rows.pop(key, None)
        if row is None:
            return False
        if row.holder is not None:
            self.outcome.ended.append((row.holder, key))
        self._disown(row)
        return True

    def _among(self, keys: Iterable[int], filter: Filter) -> list[Row]:
        return [
            self.rows[key] for key in keys if key in self.rows and matches(self.rows[key], filter)
        ]
