"""The queue as a plain list in memory: slow, obvious, and written from the contract alone.

It shares the words of the model (commands, statuses, jobs) with the store, and none of its rules.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import msgspec

from zq.model.batch import HostPlace, StalePlan
from zq.model.commands import (
    AnyCommand,
    CancelJob,
    CancelSlice,
    Claim,
    Clear,
    Deadlines,
    DeleteJob,
    DeleteSlice,
    Due,
    Enqueue,
    EnqueueResult,
    Extend,
    Fail,
    PatchJob,
    PatchSlice,
    Release,
    RetainJob,
    Return,
    Revive,
    ReviveSlice,
    SetQueue,
    Settled,
    Succeed,
    Tick,
    Undone,
    UndoSlice,
)
from zq.model.effects import Traffic
from zq.model.errors import (
    DeadLetterCycle,
    JobNotFound,
    NotCancellable,
    NotDead,
    NotFinished,
    NotInFlight,
    QueueFull,
    Unprocessable,
)
from zq.model.events import EventType
from zq.model.failures import cause_of
from zq.model.filters import Filter
from zq.model.job import (
    ErrorRecord,
    Extras,
    JobRecord,
    JobSettings,
    NewJob,
    Retention,
    batch_of,
)
from zq.model.lifecycle import Status
from zq.model.outcome import Completion
from zq.model.patching import UNSET, Patch
from zq.model.settings import QueueSettings, SettingsPatch
from zq.model.settling import Policy
from zq.model.unique import KeySpace, OnConflict, Scope

from .naive_row import Ended, Row, matches

SCHEDULED, READY, IN_FLIGHT, COMPLETED, DEAD, CANCELLED, EXPIRED = Status
CLAIM_ROUNDS = 4

CHANGES = (
    *(PatchJob, PatchSlice, DeleteJob, DeleteSlice, Clear),
    *(CancelJob, CancelSlice, UndoSlice, RetainJob, Revive, ReviveSlice, SetQueue),
)

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
    buried: dict[int, str] = field(default_factory=dict)
    claimed: list[list[JobRecord]] = field(default_factory=list)
    gained: set[str] = field(default_factory=set)
    news: list[Told] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)


class NaiveQueue:
    """All jobs and who owns which unique key."""

    changes: tuple[type, ...] = CHANGES

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.now = 0
        self.rows: dict[int, Row] = {}
        self.owners: dict[str, int] = {}
        self.settings: dict[str, QueueSettings] = {}
        self.names: dict[tuple[str, str, str], tuple[int, int]] = {}
        self.outcome = Answers()
        self.history: list[Ended] = []
        self.workers: Mapping[int, str] = {}
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
            Due.PROMOTION: [row.ready_at for row in self.rows.values() if row.status is SCHEDULED],
            Due.PURGE: [row.purge_at for row in self.rows.values() if row.purge_at is not None],
            Due.NAMES: [until for _, until in self.names.values()],
        }
        return {due: min(waiting) for due, waiting in times.items() if waiting}

    def keys(self, *statuses: Status) -> list[int]:
        """Keys of the jobs in these states (none given: in any)."""
        return [row.key for row in self.rows.values() if not statuses or row.status in statuses]

    # What happens.

    def tick(self, tick: Tick) -> Answers:
        """Phase by phase: settlements, returns, changes, enqueues, what is due, claims."""
        self.now = tick.now
        self.workers = tick.workers
        self.outcome = Answers()
        replies: dict[int, object] = {}
        for kinds in (Succeed, Fail, Extend, Release, Return, self.changes, Enqueue):
            chosen = {i: c for i, c in enumerate(tick.commands) if isinstance(c, kinds)}
            replies |= {i: self._apply(command) for i, command in chosen.items()}
            self._restore_locks()
        self.outcome.replies = [replies[i] for i in range(len(tick.commands))]
        if Due.LEASE in tick.due:
            self._lapse()
        if Due.EXPIRY in tick.due:
            for row in list(self.rows.values()):
                if row.lapsed(self.now):
                    self._expire(row)
        if Due.PROMOTION in tick.due:
            for row in self.rows.values():
                if row.status is SCHEDULED and row.ready_at <= self.now:
                    self._to(row, READY)
        if Due.PURGE in tick.due:
            for key in [row.key for row in self.rows.values() if row.expired(self.now)]:
                self._remove(key)
        if Due.NAMES in tick.due:
            self.names = {n: (k, until) for n, (k, until) in self.names.items() if until > self.now}
        self._open_heads()
        self.outcome.claimed = [self._claim(claim) for claim in tick.claims]
        return self.outcome

    def restart(self) -> int:
        """No stream outlives the server: jobs in flight go back. How many did."""
        held = self._left_behind()
        for row in held:
            self._wait_again(row, READY)
        self._restore_locks()
        self._open_heads()
        return len(held)

    def _left_behind(self) -> list[Row]:
        return [self.rows[key] for key in self.keys(IN_FLIGHT)]

    def _apply(self, command: AnyCommand) -> object:
        match command:
            case Succeed(keys):
                said = command.said or {}
                stale = frozenset(key for key in keys if self._is_stale(key, said))
                rest = set(keys) - stale
                missing = [key for key in rest if not self._succeed(key, said.get(key))]
                return Settled(frozenset(missing), stale)
            case Fail():
                return self._fail(command)
            case PatchJob(key, text_id, patch):
                return self._change(key, text_id, patch)
            case PatchSlice(keys, filter, patch):
                rows = [row for row in self._among(keys, filter) if row.purge_at is None]
                rows = [row for row in rows if not self._is_tied(row, patch)]
                for row in rows:
                    self._patch(row, patch)
                self._restore_locks()
                return len(rows)
            case DeleteJob(key):
                return None if self._remove(key) else JobNotFound()
            case DeleteSlice(keys, filter):
                return sum(self._remove(row.key) for row in self._among(keys, filter))
            case CancelJob():
                return self._cancel_one(command)
            case CancelSlice(keys, filter, force):
                rows = [row for row in self._among(keys, filter) if self._can_cancel(row, force)]
                for row in rows:
                    self._cancel(row)
                    row.swept = None if command.mark is None else command.mark.id
                return len(rows)
            case UndoSlice(keys, filter):
                return self._undo(sorted(set(keys)), filter)
            case RetainJob():
                return self._retain(command)
            case Revive():
                return self._retry(command)
            case ReviveSlice(keys, filter):
                rows = [row for row in self._among(keys, filter) if not self._cannot_return(row)]
                for row in rows:
                    self._revive(row, row.origin or row.queue)
                    row.origin = row.reason = row.died_at = None
                self._restore_locks()
                return len(rows)
            case SetQueue():
                return self._set(command)
            case Clear(settings):
                self.names.clear()
                if settings:
                    self.settings.clear()
                return sum(self._remove(key) for key in list(self.rows))
            case Enqueue():
                return self._enqueue(command)
            case _:
                raise AssertionError(f"{command} is about leases")

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

    def host(self, key: str) -> Row | None:
        """The open host of a batch."""
        for row in self.rows.values():
            if row.revision is not None and row.batch == key and not row.lapsed(self.now):
                return row
        return None

    def copies(self, command: Enqueue) -> frozenset[int]:
        """Those of its jobs with a batch that are copies by name."""
        seen: set[tuple[str, str, str]] = set()
        found: set[int] = set()
        for index, new in enumerate(command.jobs):
            if new.dedupe is None:
                continue
            _, until = self.names.get(_name(new), (0, 0))
            if (until > self.now or _name(new) in seen) and batch_of(new) is not None:
                found.add(index)
            seen.add(_name(new))
        return frozenset(found)

    def _stale(self, command: Enqueue) -> StalePlan | None:
        """What is said where the batches are not as its plan has them."""
        if command.plan is None:
            return None
        for key, place in command.plan.places.items():
            row = self.host(key)
            if place != (None if row is None else HostPlace(row.key, row.revision or 0)):
                return StalePlan()
        copies = self.copies(command)
        return None if copies == command.plan.copies else StalePlan(copies)

    def _host_more(self, command: Enqueue, new: list[Row]) -> None:
        """What a plan brings beside new jobs: hosts that are new, and what was folded into them."""
        plan = command.plan
        if plan is None:
            return
        for row in new:
            if row.batch is not None and row.status is READY and not row.lapsed(self.now):
                for other in self.rows.values():
                    if other.batch == row.batch:
                        other.revision = None
                row.revision = 0
        for place in plan.places.values():
            host = None if place is None else self.rows[place.host]
            if host is not None and host.key in plan.payloads and host.revision is not None:
                host.revision += 1
        for key, folded in plan.payloads.items():
            self.rows[key].payload = folded.payload

    def _enqueue(self, command: Enqueue) -> EnqueueResult | QueueFull | StalePlan | Unprocessable:
        if (stale := self._stale(command)) is not None:
            return stale
        folds = {} if command.plan is None else command.plan.folds
        folded: dict[int, JobRecord] = {}
        added: list[Row] = []
        if (refusal := self._refusal(command) or self._full(command)) is not None:
            return refusal
        self._prepare(command)
        duplicates: dict[int, JobRecord] = {}
        expiries: dict[int, int] = {}
        replaced: set[int] = set()
        gone: dict[int, int] = {}
        for index, (key, new) in enumerate(zip(command.keys, command.jobs, strict=True)):
            if index in folds:
                folded[index] = self.rows[folds[index]].job()
                self._learn_name(new, folds[index])
                continue
            first, until = self.names.get(_name(new), (0, 0))
            if until > self.now:
                row = self.rows.get(first)
                if row is None or row.expired(self.now):
                    gone[index] = first
                else:
                    duplicates[index] = row.job()
                continue
            owner = self._blocker(new)
            dead = owner is not None and owner.status is DEAD
            if owner is None or (dead and new.on_conflict is OnConflict.REPLACE_DEAD):
                row = self._add(key, new, command.now)
                added.append(row)
                self._learn_name(new, key)
                if row.expires_at is not None:
                    expiries[index] = row.expires_at
                continue
            self._learn_name(new, owner.key)
            waits = owner.status in (SCHEDULED, READY)
            content = new.on_conflict is OnConflict.REPLACE_CONTENT
            if waits and (content or new.on_conflict is OnConflict.REPLACE_PAYLOAD):
                owner.payload = new.payload
                if content:
                    latest = new.extras or Extras()
                    owner.extras = msgspec.structs.replace(
                        owner.extras or Extras(),
                        meta=latest.meta,
                        content_type=latest.content_type,
                        traceparent=latest.traceparent,
                    )
                replaced.add(index)
            duplicates[index] = owner.job()
        self._host_more(command, added)
        return EnqueueResult(duplicates, set(replaced), gone, expiries, folded)

    def _full(self, command: Enqueue) -> QueueFull | None:
        """The first queue, in the order of names, that has no room for its part of the jobs."""
        news: list[NewJob] = []
        names: set[tuple[str, str, str]] = set()
        folds = () if command.plan is None else command.plan.folds
        for index, new in enumerate(command.jobs):
            if index in folds:
                continue
            if new.dedupe is not None:
                _, until = self.names.get(_name(new), (0, 0))
                if until > self.now or _name(new) in names:
                    continue
                names.add(_name(new))
            owner = self._blocker(new)
            replaces = owner is not None and owner.status is DEAD
            free = owner is None or (replaces and new.on_conflict is OnConflict.REPLACE_DEAD)
            again = new.lock is not None and any(new.lock == other.lock for other in news)
            if free and not again:
                news.append(new)
        for queue in sorted({new.queue for new in news}):
            most = self._set_for(queue).max_depth
            waiting = [
                row
                for row in self.rows.values()
                if row.queue == queue and row.status in (SCHEDULED, READY, IN_FLIGHT)
            ]
            coming = [new for new in news if new.queue == queue]
            if most is not None and len(waiting) + len(coming) > most:
                return QueueFull(queue, most)
        return None

    def _set_for(self, queue: str) -> QueueSettings:
        return self.settings.get(queue, QueueSettings())

    def _learn_name(self, new: NewJob, key: int) -> None:
        if new.dedupe is not None:
            self.names[_name(new)] = (key, self.now + new.dedupe.window_ms)

    def _blocker(self, new: NewJob) -> Row | None:
        """The job that makes this one a duplicate: the incoming scope decides."""
        owner = self.rows.get(self.owners.get(new.lock or "", -1))
        if owner is None or new.unique_while is None or owner.expired(self.now):
            return None
        if owner.lapsed(self.now):
            return None
        return owner if owner.status in SPAN[new.unique_while] else None

    def _add(self, key: int, new: NewJob, now: int) -> Row:
        options = new.options or JobSettings()
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
            lease_ms=options.lease_ms,
            dead_letter=options.dead_letter,
            dead_letter_after=options.dead_letter_after,
            draws=options.budgets or (),
            completed_ms=retention.completed_ms,
            dead_ms=retention.dead_ms,
            unique_key=new.unique_key,
            scope=new.unique_while,
            space=new.unique_in,
            extras=new.extras,
            group=new.group,
            held=new.group is not None,
        )
        ttl_ms = self._set_for(new.queue).ttl_ms if new.ttl_ms is None else new.ttl_ms
        if ttl_ms is not None:
            row.expires_at = max(now, ready_at) + ttl_ms
        if ready_at <= now:
            self._to(row, READY)
        if new.lock is not None:
            self.owners[new.lock] = key
        return row

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
        self._record(row, "completed")
        self._tell(EventType.COMPLETED, row)
        self.outcome.traffic.completed[row.queue] += 1
        told = told or Completion()
        said = (told.retention or Retention()).completed_ms
        keep_ms = self._keep_ms(row, "completed_ms", said)
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
        settings = self._set_for(row.queue)
        limits = (row.retry_limit, settings.retry_limit, self.policy.retry_limit)
        limit = next(limit for limit in limits if limit is not None)
        attempts = row.attempts + 1 - row.forgiven
        grave, after = self._grave(row)
        enough = grave is not None and (grave == row.queue or bool(after and attempts >= after))
        dies = failure.kill or (failure.retry_at is None and (attempts > limit or enough))
        self._record(row, "dead" if dies else "failed", failure.error_type, failure.message)
        row.attempts += 1
        row.failed_at = self.now
        self.outcome.traffic.failed[row.queue] += 1
        texts = (failure.message, failure.error_type, failure.backtrace)
        signature = cause_of(failure.error_type, failure.message).signature
        worker = row.claimant or self.workers.get(row.holder or 0)
        record = ErrorRecord(row.attempts, *texts, row.dequeued_at, self.now, signature, worker)
        row.errors.append(record)
        if dies:
            return self._bury(row, "killed" if failure.kill else "exhausted")
        backoff = row.backoff or settings.backoff or self.policy.backoff
        delay = int(attempts**backoff.exponent * 1000 + backoff.base_ms)
        if failure.at_once:
            delay = 0
        row.ready_at = self.now + delay if failure.retry_at is None else failure.retry_at
        self._tell(EventType.RETRYING, row)
        self._wait_again(row, SCHEDULED)
        return row.job()

    def _bury(self, row: Row, reason: str) -> JobRecord:
        self._tell(EventType.FAILED, row)
        row.reason = reason
        grave, after = self._grave(row)
        too_soon = reason == "exhausted" and row.attempts - row.forgiven < (after or 0)
        if grave is not None and grave != row.queue and after != 0 and not too_soon:
            row.origin = row.origin or row.queue
            row.died_at = self.now
            self._revive(row, grave)
            return row.job()
        keep_ms = self._keep_ms(row, "dead_ms")
        row.purge_at = self.now + keep_ms if keep_ms else None
        self._to(row, DEAD)
        row.finished_at = self.now
        reply = row.job()
        if not keep_ms:
            self._remove(row.key)
        return reply

    def _grave(self, row: Row) -> tuple[str | None, int | None]:
        """The dead-letter queue of a job, and after how many failures it moves there."""
        if row.dead_letter is not None:
            return row.dead_letter, row.dead_letter_after
        settings = self._set_for(row.queue)
        return settings.dead_letter, settings.dead_letter_after

    def _cancel_one(self, command: CancelJob) -> object:
        key = command.key
        if key is None:
            key = self.owners.get(command.lock or "", -1)
        row = self.rows.get(key)
        if row is None or row.expired(self.now):
            return JobNotFound()
        if not self._can_cancel(row, command.force):
            return NotCancellable(row.status.name.lower())
        return self._cancel(row)

    def _can_cancel(self, row: Row, force: bool) -> bool:
        return row.status in (SCHEDULED, READY) or (force and row.status is IN_FLIGHT)

    def _cancel(self, row: Row) -> JobRecord:
        self._record(row, "cancelled")
        keep_ms = self._keep_ms(row, "dead_ms")
        row.finished_at, row.purge_at = self.now, self.now + keep_ms if keep_ms else None
        self._to(row, CANCELLED)
        self._tell(EventType.CANCELLED, row)
        reply = row.job()
        if not keep_ms:
            self._remove(row.key)
        return reply

    def _undo(self, keys: list[int], filter: Filter) -> Undone:
        kept: Counter[str] = Counter()
        changed = 0
        for row in self._among(keys, filter):
            if row.expired(self.now):
                continue
            if row.lock in self.owners:
                kept["key_taken"] += 1
            elif row.expires_at is not None and row.expires_at <= self.now:
                kept["expired"] += 1
            elif self._cannot_return(row):
                kept["budget_gone"] += 1
            else:
                changed += 1
                row.finished_at = row.purge_at = row.swept = None
                self._to(row, SCHEDULED if row.ready_at > self.now else READY)
                if row.lock is not None:
                    self.owners[row.lock] = row.key
                self._tell(EventType.ENQUEUED, row)
        return Undone(changed, dict(kept))

    def _retain(self, command: RetainJob) -> object:
        row = self.rows.get(command.key)
        if row is None or row.expired(self.now):
            return JobNotFound()
        if row.purge_at is None:
            return NotFinished(row.status.name.lower())
        name = "completed_ms" if row.status is COMPLETED else "dead_ms"
        keep_ms = self._keep_ms(row, name, getattr(command.retention, name))
        row.purge_at = self.now + keep_ms if keep_ms else None
        reply = row.job()
        if not keep_ms:
            self._remove(row.key)
        return reply

    def _keep_ms(self, row: Row, name: str, said: int | None = None) -> int:
        """What is said now, else what the job, its queue, or the server has set."""
        queue = getattr(self._set_for(row.queue).retention or Retention(), name)
        choices = (said, getattr(row, name), queue, getattr(self.policy, name))
        chosen: int = next(ms for ms in choices if ms is not None)
        return chosen

    def _expire(self, row: Row) -> None:
        self._record(row, "expired")
        keep_ms = self._keep_ms(row, "dead_ms")
        row.finished_at, row.purge_at = self.now, self.now + keep_ms if keep_ms else None
        self._to(row, EXPIRED)
        self._tell(EventType.EXPIRED, row)
        if not keep_ms:
            self._remove(row.key)

    def _retry(self, command: Revive) -> object:
        row = self.rows.get(command.key)
        if row is None or row.expired(self.now):
            return JobNotFound()
        target = row.origin if command.home else row.queue
        waits = command.home and row.status in (SCHEDULED, READY)
        if target is None or not (waits or row.status is DEAD):
            return NotDead(row.status.name.lower())
        if (refusal := self._cannot_return(row)) is not None:
            return refusal
        row.reason = None
        if command.home:
            row.origin = row.died_at = None
        self._revive(row, target)
        self._restore_locks()
        return row.job()

    def _revive(self, row: Row, queue: str) -> None:
        self._move(row, queue)
        row.ready_at = self.now
        row.finished_at = row.purge_at = None
        row.forgiven, row.stalls = row.attempts, 0
        ttl_ms = self._set_for(queue).ttl_ms
        row.expires_at = None if ttl_ms is None else self.now + ttl_ms
        self._to(row, READY)
        self._tell(EventType.ENQUEUED, row)
        self._revived.append(row)

    def _set(self, command: SetQueue) -> object:
        old, queue = self._set_for(command.queue), command.queue
        new = command.settings
        if isinstance(new, SettingsPatch):
            given = {f: v for f in new.__struct_fields__ if (v := getattr(new, f)) is not UNSET}
            new = msgspec.structs.replace(old, **given)
        path = [queue]
        target = new.dead_letter
        while target is not None:
            path.append(target)
            if target == queue:
                return DeadLetterCycle(path)
            target = self._set_for(target).dead_letter
        self.settings[queue] = new
        self.outcome.gained.add(queue)
        return new

    def _change(self, key: int, text_id: str, patch: Patch) -> object:
        row = self.rows.get(key)
        if row is None or row.expired(self.now):
            return JobNotFound()
        if row.status in (COMPLETED, DEAD, CANCELLED, EXPIRED):
            name = row.status.name.lower()
            return Unprocessable(f"cannot patch job {text_id} in {name} status")
        if self._is_tied(row, patch):
            return Unprocessable(
                f"cannot move job {text_id} to another queue while it is in flight, because"
                f" it belongs to group {row.group!r}: try again when it waits"
            )
        self._patch(row, patch)
        self._restore_locks()
        return row.job()

    def _is_tied(self, row: Row, patch: Patch) -> bool:
        """A job of a group stays where it is while it is in flight."""
        moves = patch.queue is not UNSET and patch.queue != row.queue
        return moves and row.group is not None and row.status is IN_FLIGHT

    def _patch(self, row: Row, patch: Patch) -> None:
        if patch.queue is not UNSET:
            self._move(row, patch.queue)
        if patch.priority is not UNSET:
            row.priority = patch.priority
        if patch.retry_limit is not UNSET:
            row.retry_limit = patch.retry_limit
        if patch.backoff is not UNSET:
            row.backoff = patch.backoff
        if patch.lease_ms is not UNSET:
            row.lease_ms = patch.lease_ms
        if patch.retention is None:
            row.completed_ms = row.dead_ms = None
        elif patch.retention is not UNSET:
            if patch.retention.completed_ms is not UNSET:
                row.completed_ms = patch.retention.completed_ms
            if patch.retention.dead_ms is not UNSET:
                row.dead_ms = patch.retention.dead_ms
        self._reschedule(row, patch.ready_at)
        if row.space is KeySpace.QUEUE and (row.status <= READY or row.scope is not Scope.QUEUED):
            self._revived.append(row)
        if row.status is READY:
            self.outcome.gained.add(row.queue)

    def _reschedule(self, row: Row, ready_at: Any) -> None:
        if ready_at is UNSET or (ready_at is None and row.status is not SCHEDULED):
            return
        row.ready_at = self.now if ready_at is None else ready_at
        if row.status is not IN_FLIGHT:
            self._to(row, SCHEDULED if row.ready_at > self.now else READY)

    def _claim(self, claim: Claim) -> list[JobRecord]:
        left = dict(claim.credits)
        turns = cycle(left)
        taken = self._heads(claim, sum(left.values()))
        for _ in range(CLAIM_ROUNDS):
            lapsed = [row for row in taken if row.lapsed(self.now)]
            if not lapsed:
                break
            for row in lapsed:
                self._expire(row)
            self._open_heads()
            taken = self._heads(claim, sum(left.values()))
        taken = [row for row in taken if not row.lapsed(self.now)]
        for row in taken:
            holder = next(turn for turn in turns if left[turn])
            left[holder] -= 1
            row.holder = holder
            row.deliveries += 1
            self.outcome.traffic.delivered[row.queue] += 1
            row.dequeued_at = self.now
            self._to(row, IN_FLIGHT)
        return [row.job() for row in taken]

    def _heads(self, claim: Claim, limit: int) -> list[Row]:
        """The jobs that the claim would get.

        Each queue gives as many as its gates let through, and each budget as far as it can pay.
        """
        ready = [
            row
            for row in self.rows.values()
            if row.status is READY
            and not row.held
            and (claim.queues is None or row.queue in claim.queues)
        ]
        through: Counter[str] = Counter(
            r.queue for r in self.rows.values() if r.status is IN_FLIGHT
        )
        spent: Counter[str] = Counter()
        heads: list[Row] = []
        for row in sorted(ready, key=lambda row: (row.priority, row.key)):
            settings = self._set_for(row.queue)
            most = settings.concurrency
            if settings.paused or (most is not None and through[row.queue] >= most):
                continue
            if len(heads) == limit or not self._pays(row, spent):
                continue
            through[row.queue] += 1
            heads.append(row)
        return heads

    def _open_heads(self) -> None:
        """Hold back every job of a group but the one in flight, or else the oldest unfinished."""
        groups: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in self.rows.values():
            if row.group is not None and row.status in (SCHEDULED, READY, IN_FLIGHT):
                groups[row.queue, row.group].append(row)
        for members in groups.values():
            head = min(members, key=lambda row: (row.status is not IN_FLIGHT, row.key))
            for row in members:
                if row.held and row is head and row.status is READY:
                    self.outcome.gained.add(row.queue)
                row.held = row is not head

    # Small change.

    def _record(self, row: Row, outcome: str, *error: str | None) -> None:
        worker = row.claimant or self.workers.get(row.holder or 0)
        self.history.append(row.attempt(self.now, outcome, worker, *error))

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
            if row.lock is not None:
                self.owners.setdefault(row.lock, row.key)
        for row in sorted(self._waits_again, key=lambda row: row.key):
            if row.lock is not None and row.scope is Scope.QUEUED:
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


def _name(new: NewJob) -> tuple[str, str, str]:
    return new.queue, new.group or "", new.dedupe.id if new.dedupe else ""
