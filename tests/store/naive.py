"""The queue as a plain list in memory: slow, obvious, and written from the contract alone.

It shares the words of the model (commands, statuses, jobs) with the store, and none of its rules.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from zq.model.commands import (
    Cancel,
    CancelSlice,
    Change,
    ChangeSlice,
    Claim,
    Clear,
    Command,
    Deadlines,
    Delete,
    DeleteSlice,
    Due,
    Enqueue,
    Enqueued,
    Fail,
    Retain,
    Return,
    Settled,
    Succeed,
    Tick,
)
from zq.model.errors import (
    JobNotFound,
    NotCancellable,
    NotFinished,
    NotInFlight,
    Unprocessable,
)
from zq.model.filters import Filter
from zq.model.job import ErrorRecord, Job, NewJob, Options, Retention
from zq.model.lifecycle import Status
from zq.model.outcome import Completion
from zq.model.patching import UNSET, Patch
from zq.model.settling import Policy
from zq.model.unique import OnConflict, Scope

from .naive_row import Row, matches

SCHEDULED, READY, IN_FLIGHT, COMPLETED, DEAD, CANCELLED = Status

SPAN = {
    Scope.QUEUED: {SCHEDULED, READY},
    Scope.ACTIVE: {SCHEDULED, READY, IN_FLIGHT},
    Scope.EXISTS: {SCHEDULED, READY, IN_FLIGHT, COMPLETED, DEAD},
}


@dataclass
class Answers:
    """What a tick has to answer. `gained` names queues that got a ready job before the claims."""

    replies: list[object] = field(default_factory=list)
    ended: list[tuple[int, int]] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    claimed: list[list[Job]] = field(default_factory=list)
    gained: set[str] = field(default_factory=set)


class NaiveQueue:
    """All jobs and who owns which unique key."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.now = 0
        self.rows: dict[int, Row] = {}
        self.owners: dict[str, int] = {}
        self.outcome = Answers()
        self._waits_again: list[Row] = []

    # What there is to see.

    def visible(self, now: int, filter: Filter | None = None) -> list[Job]:
        """What readers see, by id."""
        return [
            row.job(whole=True)
            for row in sorted(self.rows.values(), key=lambda row: row.key)
            if not row.expired(now) and (filter is None or matches(row, filter))
        ]

    def counts(self) -> Counter[tuple[str, Status]]:
        return Counter((row.queue, row.status) for row in self.rows.values())

    def deadlines(self) -> Deadlines:
        times = {
            Due.PROMOTION: [row.ready_at for row in self.rows.values() if row.status is SCHEDULED],
            Due.PURGE: [row.purge_at for row in self.rows.values() if row.purge_at is not None],
        }
        return {due: min(waiting) for due, waiting in times.items() if waiting}

    def keys(self, *statuses: Status) -> list[int]:
        """Keys of the jobs in these states (none given: in any)."""
        return [row.key for row in self.rows.values() if not statuses or row.status in statuses]

    # What happens.

    def tick(self, tick: Tick) -> Answers:
        """Phase by phase: settlements, returns, changes, enqueues, what is due, claims."""
        self.now = tick.now
        self.outcome = Answers()
        replies: dict[int, object] = {}
        changes = (
            *(Change, ChangeSlice, Delete, DeleteSlice, Clear),
            *(Cancel, CancelSlice, Retain),
        )
        for kinds in (Succeed, Fail, Return, changes, Enqueue):
            chosen = {i: c for i, c in enumerate(tick.commands) if isinstance(c, kinds)}
            replies |= {i: self._apply(command) for i, command in chosen.items()}
            self._restore_locks()
        self.outcome.replies = [replies[i] for i in range(len(tick.commands))]
        if Due.PROMOTION in tick.due:
            for row in self.rows.values():
                if row.status is SCHEDULED and row.ready_at <= self.now:
                    self._to(row, READY)
        if Due.PURGE in tick.due:
            for key in [row.key for row in self.rows.values() if row.expired(self.now)]:
                self._remove(key)
        self.outcome.claimed = [self._claim(claim) for claim in tick.claims]
        return self.outcome

    def restart(self) -> int:
        """No stream outlives the server: jobs in flight go back. How many did."""
        held = self.keys(IN_FLIGHT)
        for key in held:
            self._wait_again(self.rows[key], READY)
        self._restore_locks()
        return len(held)

    def _apply(self, command: Command) -> object:
        match command:
            case Succeed(keys):
                said = command.said or {}
                stale = frozenset(key for key in keys if self._is_stale(key, said))
                rest = set(keys) - stale
                missing = [key for key in rest if not self._succeed(key, said.get(key))]
                return Settled(frozenset(missing), stale)
            case Fail():
                return self._fail(command)
            case Return(holder, keys):
                for key in keys:
                    if key in self.rows and self.rows[key].holder == holder:
                        self._wait_again(self.rows[key], READY)
                return None
            case Change(key, text_id, patch):
                return self._change(key, text_id, patch)
            case ChangeSlice(keys, filter, patch):
                rows = [row for row in self._among(keys, filter) if row.purge_at is None]
                for row in rows:
                    self._patch(row, patch)
                return len(rows)
            case Delete(key):
                return None if self._remove(key) else JobNotFound()
            case DeleteSlice(keys, filter):
                return sum(self._remove(row.key) for row in self._among(keys, filter))
            case Cancel():
                return self._cancel_one(command)
            case CancelSlice(keys, filter, force):
                rows = [row for row in self._among(keys, filter) if self._can_cancel(row, force)]
                for row in rows:
                    self._cancel(row)
                return len(rows)
            case Retain():
                return self._retain(command)
            case Clear():
                return sum(self._remove(key) for key in list(self.rows))
            case Enqueue():
                return self._enqueue(command)

    def _enqueue(self, command: Enqueue) -> Enqueued:
        duplicates: dict[int, Job] = {}
        replaced: set[int] = set()
        for index, (key, new) in enumerate(zip(command.keys, command.jobs, strict=True)):
            owner = self._blocker(new)
            dead = owner is not None and owner.status is DEAD
            if owner is None or (dead and new.on_conflict is OnConflict.REPLACE_DEAD):
                self._add(key, new, command.now)
                continue
            waits = owner.status in (SCHEDULED, READY)
            if waits and new.on_conflict is OnConflict.REPLACE_PAYLOAD:
                owner.payload = new.payload
                replaced.add(index)
            duplicates[index] = owner.job()
        return Enqueued(duplicates, frozenset(replaced))

    def _blocker(self, new: NewJob) -> Row | None:
        """The job that makes this one a duplicate: the incoming scope decides."""
        owner = self.rows.get(self.owners.get(new.unique_key or "", -1))
        if owner is None or new.unique_while is None or owner.expired(self.now):
            return None
        return owner if owner.status in SPAN[new.unique_while] else None

    def _add(self, key: int, new: NewJob, now: int) -> None:
        options = new.options or Options()
        retention = options.retention or Retention()
        ready_at = now if new.ready_at is None else new.ready_at
        row = self.rows[key] = Row(
            key=key,
            queue=new.queue,
            type=new.type,
            priority=new.priority,
            status=SCHEDULED,
            ready_at=ready_at,
            payload=new.payload,
            retry_limit=options.retry_limit,
            backoff=options.backoff,
            completed_ms=retention.completed_ms,
            dead_ms=retention.dead_ms,
            unique_key=new.unique_key,
            scope=new.unique_while,
        )
        if ready_at <= now:
            self._to(row, READY)
        if new.unique_key is not None:
            self.owners[new.unique_key] = key

    def _is_stale(self, key: int, said: Mapping[int, Completion]) -> bool:
        """Whether the delivery that is named, of a job that is there, is not the current one."""
        row = self.rows.get(key)
        if key not in said or said[key].lease is None or row is None or row.expired(self.now):
            return False
        return row.status is not IN_FLIGHT or row.deliveries != said[key].lease

    def _succeed(self, key: int, told: Completion | None) -> bool:
        row = self.rows.get(key)
        if row is None or row.status is not IN_FLIGHT:
            return False
        told = told or Completion()
        said = (told.retention or Retention()).completed_ms
        own = self.policy.completed_ms if row.completed_ms is None else row.completed_ms
        keep_ms = own if said is None else said
        if keep_ms == 0:
            return self._remove(key)
        row.result = told.result
        row.finished_at, row.purge_at = self.now, self.now + keep_ms
        self._to(row, COMPLETED)
        return True

    def _fail(self, command: Fail) -> object:
        row = self.rows.get(command.key)
        if row is None or row.status is not IN_FLIGHT:
            return NotInFlight()
        failure = command.failure
        assert row.dequeued_at is not None
        row.attempts += 1
        row.failed_at = self.now
        texts = (failure.message, failure.error_type, failure.backtrace)
        row.errors.append(ErrorRecord(row.attempts, *texts, row.dequeued_at, self.now))
        limit = self.policy.retry_limit if row.retry_limit is None else row.retry_limit
        if failure.kill or (failure.retry_at is None and row.attempts > limit):
            keep_ms = self.policy.dead_ms if row.dead_ms is None else row.dead_ms
            row.purge_at = self.now + keep_ms if keep_ms else None
            self._to(row, DEAD)
            row.finished_at = self.now
            reply = row.job()
            if not keep_ms:
                self._remove(row.key)
            return reply
        backoff = row.backoff or self.policy.backoff
        delay = int(row.attempts**backoff.exponent * 1000 + backoff.base_ms)
        row.ready_at = self.now + delay if failure.retry_at is None else failure.retry_at
        self._wait_again(row, SCHEDULED)
        return row.job()

    def _cancel_one(self, command: Cancel) -> object:
        key = command.key
        if key is None:
            key = self.owners.get(command.unique_key or "", -1)
        row = self.rows.get(key)
        if row is None or row.expired(self.now):
            return JobNotFound()
        if not self._can_cancel(row, command.force):
            return NotCancellable(row.status.name.lower())
        return self._cancel(row)

    def _can_cancel(self, row: Row, force: bool) -> bool:
        return row.status in (SCHEDULED, READY) or (force and row.status is IN_FLIGHT)

    def _cancel(self, row: Row) -> Job:
        keep_ms = self.policy.dead_ms if row.dead_ms is None else row.dead_ms
        row.finished_at, row.purge_at = self.now, self.now + keep_ms if keep_ms else None
        self._to(row, CANCELLED)
        self.outcome.cancelled.append(row.key)
        reply = row.job()
        if not keep_ms:
            self._remove(row.key)
        return reply

    def _retain(self, command: Retain) -> object:
        row = self.rows.get(command.key)
        if row is None or row.expired(self.now):
            return JobNotFound()
        if row.purge_at is None:
            return NotFinished(row.status.name.lower())
        completed = row.status is COMPLETED
        asked = command.retention.completed_ms if completed else command.retention.dead_ms
        own = row.completed_ms if completed else row.dead_ms
        default = self.policy.completed_ms if completed else self.policy.dead_ms
        keep_ms = next(ms for ms in (asked, own, default) if ms is not None)
        row.purge_at = self.now + keep_ms if keep_ms else None
        reply = row.job()
        if not keep_ms:
            self._remove(row.key)
        return reply

    def _change(self, key: int, text_id: str, patch: Patch) -> object:
        row = self.rows.get(key)
        if row is None or row.expired(self.now):
            return JobNotFound()
        if row.status in (COMPLETED, DEAD, CANCELLED):
            name = row.status.name.lower()
            return Unprocessable(f"cannot patch job {text_id} in {name} status")
        self._patch(row, patch)
        return row.job()

    def _patch(self, row: Row, patch: Patch) -> None:
        if patch.queue is not UNSET:
            row.queue = patch.queue
        if patch.priority is not UNSET:
            row.priority = patch.priority
        if patch.retry_limit is not UNSET:
            row.retry_limit = patch.retry_limit
        if patch.backoff is not UNSET:
            row.backoff = patch.backoff
        if patch.retention is None:
            row.completed_ms = row.dead_ms = None
        elif patch.retention is not UNSET:
            if patch.retention.completed_ms is not UNSET:
                row.completed_ms = patch.retention.completed_ms
            if patch.retention.dead_ms is not UNSET:
                row.dead_ms = patch.retention.dead_ms
        self._reschedule(row, patch.ready_at)
        if row.status is READY:
            self.outcome.gained.add(row.queue)

    def _reschedule(self, row: Row, ready_at: Any) -> None:
        if ready_at is UNSET or (ready_at is None and row.status is not SCHEDULED):
            return
        row.ready_at = self.now if ready_at is None else ready_at
        if row.status is not IN_FLIGHT:
            self._to(row, SCHEDULED if row.ready_at > self.now else READY)

    def _claim(self, claim: Claim) -> list[Job]:
        ready = [
            row
            for row in self.rows.values()
            if row.status is READY and (claim.queues is None or row.queue in claim.queues)
        ]
        ready.sort(key=lambda row: (row.priority, row.key))
        left = dict(claim.credits)
        turns = cycle(left)
        taken = ready[: sum(left.values())]
        for row in taken:
            holder = next(turn for turn in turns if left[turn])
            left[holder] -= 1
            row.holder = holder
            row.deliveries += 1
            row.dequeued_at = self.now
            self._to(row, IN_FLIGHT)
        return [row.job() for row in taken]

    # Small change.

    def _to(self, row: Row, status: Status) -> None:
        if row.status is IN_FLIGHT and status is not IN_FLIGHT:
            assert row.holder is not None
            self.outcome.ended.append((row.holder, row.key))
            row.holder = None
        row.status = status
        if status is READY:
            self.outcome.gained.add(row.queue)
        if row.scope is not None and status not in SPAN[row.scope]:
            self._disown(row)

    def _disown(self, row: Row) -> None:
        if row.unique_key is not None and self.owners.get(row.unique_key) == row.key:
            del self.owners[row.unique_key]

    def _wait_again(self, row: Row, status: Status) -> None:
        self._to(row, status)
        self._waits_again.append(row)

    def _restore_locks(self) -> None:
        """A "queued" owner that waits again owns its key again, if it is free; the oldest first."""
        for row in sorted(self._waits_again, key=lambda row: row.key):
            if row.unique_key is not None and row.scope is Scope.QUEUED:
                self.owners.setdefault(row.unique_key, row.key)
        self._waits_again = []

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
