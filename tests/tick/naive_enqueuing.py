"""How jobs come into the naive queue: duplicates, copies by name, batches, and full queues."""

import msgspec

from zq.features.batches.model_jobs import BatchPlan, HostPlace, StalePlan, batch_of
from zq.features.budgets.model_jobs import draws_in
from zq.model.commands import Enqueue, EnqueueResult
from zq.model.errors import QueueFull, Unprocessable
from zq.model.job import Extras, JobRecord, JobSettings, NewJob, Retention
from zq.model.unique import OnConflict

from .naive_jobs import DEAD, IN_FLIGHT, READY, SCHEDULED, SPAN, NaiveJobs
from .naive_row import Row


class Enqueuing(NaiveJobs):
    """Stores new jobs, folds them, or finds the jobs that they repeat."""

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
        plan = command.plan
        if plan is None:
            return None
        assert isinstance(plan, BatchPlan)
        for key, place in plan.places.items():
            row = self.host(key)
            if place != (None if row is None else HostPlace(row.key, row.revision or 0)):
                return StalePlan()
        copies = self.copies(command)
        return None if copies == plan.copies else StalePlan(copies)

    def _host_more(self, command: Enqueue, new: list[Row]) -> None:
        """What a plan brings beside new jobs: hosts that are new, and what was folded into them."""
        plan = command.plan
        if plan is None:
            return
        assert isinstance(plan, BatchPlan)
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
                if (expires_at := row.job().expires_at) is not None:
                    expiries[index] = expires_at
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
            stall_limit=options.stall_limit,
            draws=draws_in(options) or (),
            completed_ms=retention.completed_ms,
            dead_ms=retention.dead_ms,
            unique_key=new.unique_key,
            scope=new.unique_while,
            space=new.unique_in,
            extras=new.extras,
            group=new.group,
            held=new.group is not None,
            ttl_ms=new.ttl_ms,
        )
        ttl_ms = self._set_for(new.queue).ttl_ms if new.ttl_ms is None else new.ttl_ms
        if ready_at <= now:
            row.expires_at = None if ttl_ms is None else self.now + ttl_ms
        else:
            row.life_ms = ttl_ms
        if ready_at <= now:
            self._to(row, READY)
        if new.lock is not None:
            self.owners[new.lock] = key
        return row


def _name(new: NewJob) -> tuple[str, str, str]:
    return new.queue, new.group or "", new.dedupe.id if new.dedupe else ""
