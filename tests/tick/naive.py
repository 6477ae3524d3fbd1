"""The queue as a plain list in memory: slow, obvious, and written from the contract alone.

It shares the words of the model (commands, statuses, jobs) with the store, and none of its rules.
"""

from collections import Counter

from zq.features.sweeps.model import UndoSlice
from zq.model.commands import (
    AnyCommand,
    CancelJob,
    CancelSlice,
    Clear,
    DeleteJob,
    DeleteSlice,
    Due,
    Enqueue,
    Entered,
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
)
from zq.model.errors import JobNotFound

from .naive_changing import Changing
from .naive_claiming import Claiming
from .naive_enqueuing import Enqueuing
from .naive_jobs import IN_FLIGHT, READY, SCHEDULED, Answers
from .naive_row import Row
from .naive_settling import Settling

SETTLEMENTS = (Succeed, Fail, Extend, Release, Return)
CHANGES = (
    *(PatchJob, PatchSlice, DeleteJob, DeleteSlice, Clear),
    *(CancelJob, CancelSlice, RetainJob, Revive, ReviveSlice, SetQueue),
)


class NaiveQueue(Enqueuing, Settling, Changing, Claiming):
    """All that happens to jobs, phase by phase."""

    budget_changes: tuple[type, ...] = ()

    def tick(self, tick: Tick) -> Answers:
        """Phase by phase: settlements, returns, changes, enqueues, what is due, claims."""
        self.now = tick.now
        self.workers = tick.workers
        self.outcome = Answers()
        replies: dict[int, object] = {}
        for kinds in (*SETTLEMENTS, CHANGES, self.budget_changes, UndoSlice, Enqueue):
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
                due_at = row.ready_at if row.due_at is None else row.due_at
                if row.status is SCHEDULED and due_at <= self.now:
                    row.begin_life()
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
                changed, kept = 0, Counter[str]()
                for row in rows:
                    if (refusal := self._stops(row, patch)) is not None:
                        kept[refusal.code] += 1
                    else:
                        self._patch(row, patch)
                        changed += 1
                self._restore_locks()
                return Entered(changed, dict(kept))
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
                changed, kept = 0, Counter[str]()
                for row in self._among(keys, filter):
                    home = row.origin or row.queue
                    if self._cannot_return(row):
                        kept["budget_gone"] += 1
                        continue
                    if (refusal := self._keeps_out(row, home)) is not None:
                        kept[refusal.code] += 1
                        continue
                    row.origin = row.reason = row.died_at = None
                    self._revive(row, home)
                    changed += 1
                self._restore_locks()
                return Entered(changed, dict(kept))
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
