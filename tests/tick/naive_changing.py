"""How jobs and queues of the naive queue are changed from outside."""

from collections import Counter
from typing import Any

import msgspec

from zq.model.commands import CancelJob, Entered, RetainJob, Revive, SetQueue
from zq.model.errors import (
    DeadLetterCycle,
    JobNotFound,
    NotCancellable,
    NotDead,
    NotFinished,
    Unprocessable,
    ZqError,
)
from zq.model.events import EventType
from zq.model.filters import Filter
from zq.model.job import JobRecord
from zq.model.patching import UNSET, Patch
from zq.model.settings import SettingsPatch
from zq.model.unique import KeySpace, Scope

from .naive_jobs import (
    CANCELLED,
    COMPLETED,
    DEAD,
    EXPIRED,
    IN_FLIGHT,
    READY,
    SCHEDULED,
    SPAN,
    NaiveJobs,
)
from .naive_row import Row


class Changing(NaiveJobs):
    """Patches, cancels, keeps and revives jobs, and sets queues."""

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
        if row.status is not SCHEDULED:
            row.due_at = self.now
        self._to(row, CANCELLED)
        self._tell(EventType.CANCELLED, row)
        reply = row.job()
        if not keep_ms:
            self._remove(row.key)
        return reply

    def _undo(self, keys: list[int], filter: Filter) -> Entered:
        kept: Counter[str] = Counter()
        changed = 0
        for row in self._among(keys, filter):
            if row.expired(self.now):
                continue
            if (expires_at := row.job().expires_at) is not None and expires_at <= self.now:
                kept["expired"] += 1
            elif self._cannot_return(row):
                kept["budget_gone"] += 1
            elif (refusal := self._keeps_out(row, row.queue, keyless=bool(row.origin))) is not None:
                kept[refusal.code] += 1
            else:
                changed += 1
                row.finished_at = row.purge_at = row.swept = None
                waits = (row.ready_at if row.due_at is None else row.due_at) > self.now
                if not waits:
                    row.begin_life()
                self._to(row, SCHEDULED if waits else READY)
                self._tell(EventType.ENQUEUED, row)
        return Entered(changed, dict(kept))

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
        letter = bool(row.origin) and not command.home
        if (full := self._keeps_out(row, target, keyless=letter)) is not None:
            return full
        row.reason = None
        if command.home:
            row.origin = row.died_at = None
        self._revive(row, target)
        self._restore_locks()
        return row.job()

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
        if (refusal := self._stops(row, patch)) is not None:
            return refusal
        self._patch(row, patch)
        self._restore_locks()
        return row.job()

    def _stops(self, row: Row, patch: Patch) -> ZqError | None:
        """Why a job may not enter the queue to which a patch moves it."""
        if patch.queue is UNSET or patch.queue == row.queue:
            return None
        is_over = row.scope is not None and row.status not in SPAN[row.scope]
        stays = row.space is KeySpace.ALL or is_over
        return self._keeps_out(row, patch.queue, keyless=bool(stays or row.origin))

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
        row.due_at = None
        if row.ready_at <= self.now and row.life_ms is not None:
            row.expires_at, row.life_ms = self.now + row.life_ms, None
        if row.ready_at > self.now and row.expires_at is not None and row.status is not IN_FLIGHT:
            row.expires_at, row.life_ms = None, self._lasts_ms(row)
        if row.status is not IN_FLIGHT:
            self._to(row, SCHEDULED if row.ready_at > self.now else READY)
