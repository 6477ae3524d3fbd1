"""The tick's phase of new jobs."""

from collections.abc import Sequence
from typing import NamedTuple

from zq.model.commands import Enqueue, Enqueued
from zq.model.errors import KeyConflict, QueueFull
from zq.model.job import INLINE_PAYLOAD, MAX_TIME, Job, NewJob
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.model.unique import COVERS, OnConflict, Scope
from zq.store.dedupe import NameTable
from zq.store.depth import Depths
from zq.store.slices import Sliced
from zq.store.work import BYTES_A_ROW, LARGEST_INSERT, QUERIES, Work, as_json, batch_size

HELD_BY_GROUP = 1
"""The bit of `held` that is shut for all jobs of a group but its head."""

_PLAIN = "id, queue, type, priority, status, ready_at, payload_size, payload"
_TUNED = _PLAIN + ", options"
_FULL = _TUNED + ", unique_key, unique_while, owns_key, group_id, held, extras, expires_at"

_Head = tuple[int, str, str, int, int, int]
"""Key, queue, type, priority, status, ready_at."""

ALL_STORED = Enqueued({})
"""The reply to most commands, which bring new jobs only."""


class _Full(NamedTuple):
    """A job that sets something unusual, so that it has a longer row."""

    head: _Head
    job: NewJob
    expires_at: int | None


def enqueue(work: Work, commands: Sequence[Enqueue]) -> Sliced[list[object]]:
    """Store jobs in order; a duplicate is answered with the job that it is one of."""
    intake = _Intake(work, commands)
    replies: list[object] = []
    for command in commands:
        reply = yield from intake.take(command)
        replies.append(reply)
    yield from intake.store()
    return replies


class _Intake:
    """This tick's new jobs: decided on one after the other, then written together."""

    def __init__(self, work: Work, commands: Sequence[Enqueue]) -> None:
        self._work = work
        self._keys = _KeyTable(work, commands)
        self._names = NameTable(work, commands)
        self._depths = Depths(work, commands)
        self._timed = work.rulebook.timed
        self._plain: list[tuple[object, ...]] = []
        self._tuned: list[tuple[object, ...]] = []
        self._full: list[_Full] = []
        self._replaced: dict[int, NewJob] = {}
        self._beside: list[tuple[int, NewJob]] = []
        self._stored: list[tuple[str, Status]] = []

    def take(self, command: Enqueue) -> Sliced[Enqueued | KeyConflict | QueueFull]:
        """Decide on a command's jobs, all or none."""
        if command.reach is not EVERYWHERE and self._keys.hides_an_owner(command):
            return KeyConflict()
        refusal = self._depths.refusal(command, self._names, self._keys.is_new)
        if refusal is not None:
            return refusal
        if command.keys:
            self._work.highest_key = max(self._work.highest_key, command.keys[-1])
        now, timed, reply = command.now, self._timed, ALL_STORED
        for index, (key, job) in enumerate(zip(command.keys, command.jobs, strict=True), 1):
            if not index % LARGEST_INSERT:
                yield None
            ready_at = now if job.ready_at is None else job.ready_at
            status = Status.READY if ready_at <= now else Status.SCHEDULED
            # A plain int: what SQLite has to be told how to take costs more than the rest of a row.
            head = (key, job.queue, job.type, job.priority, int(status), ready_at)
            if (
                job.unique_key is not None
                or job.group is not None
                or job.dedupe is not None
                or job.extras is not None
                or job.ttl_ms is not None
                or job.queue in timed
            ):
                if reply is ALL_STORED:
                    reply = Enqueued({}, set(), {}, {})
                if not self._take_unusual(head, job, command, index - 1, reply):
                    continue
            else:
                # What libraries send: rows of few columns are half the work of full ones.
                if job.options is None:
                    self._plain.append((*head, *_payload(job)))
                else:
                    self._tuned.append((*head, *_payload(job), as_json(job.options)))
                if job.payload_size > INLINE_PAYLOAD:
                    self._beside.append((key, job))
            self._stored.append((job.queue, status))
        return reply

    def _take_unusual(
        self, head: _Head, job: NewJob, command: Enqueue, index: int, reply: Enqueued
    ) -> bool:
        """Decide on a job that sets something, and note in `reply` what is said: is it stored?"""
        key, _, _, _, status, ready_at = head
        expires_at: int | None = None
        if job.ttl_ms is not None or job.queue in self._timed:
            expires_at = _expiry(self._work, job, max(ready_at, command.now))
        known = self._names.find(job, command.reach)
        if known is None and (job.unique_key is not None or job.dedupe is not None):
            new = _stored(key, job, Status(status), ready_at, expires_at)
            if job.unique_key is not None:
                known = self._keys.claim(new, job.on_conflict)
                if known is not None and _takes_payload(known, job):
                    reply.replaced.add(index)
                    self._replaced[known.key] = job
            self._names.learn(job, known or new)
        if known is not None:
            self._work.tally.duplicates += 1
            if isinstance(known, Job):
                reply.owners[index] = known
            else:
                reply.gone[index] = known
            return False
        if expires_at is not None:
            reply.expiries[index] = expires_at
            self._work.retimed = True
        self._full.append(_Full(head, job, expires_at))
        return True

    def store(self) -> Sliced[None]:
        """Write what was decided."""
        work = self._work
        work.counts.update(self._stored)
        work.tally.stored += len(self._stored)
        work.woken.update([queue for queue, status in set(self._stored) if status is Status.READY])
        work.open_groups([new.job for new in self._full])
        self._keys.release_former_owners()
        self._names.write()
        if self._plain:
            yield from work.insert_by_slices("jobs", _PLAIN, self._plain)
        if self._tuned:
            yield from work.insert_by_slices("jobs", _TUNED, self._tuned)
        if self._full:
            full = [self._full_row(new) for new in self._full]
            yield from work.insert_by_slices("jobs", _FULL, full)
        self._replace_payloads()
        if self._beside:
            yield from self._store_payloads()

    def _store_payloads(self) -> Sliced[None]:
        """Write the payloads that lie beside their jobs."""
        work = self._work
        beside = [(key, job.payload) for key, job in self._beside]
        yield from work.insert_large_by_slices("payloads", "job_id, body", beside)
        work.rows += sum(job.payload_size // BYTES_A_ROW for _, job in self._beside)

    def _full_row(self, new: _Full) -> tuple[object, ...]:
        """The row of a job, with the payload that has replaced its own already, if one has."""
        key = new.head[0]
        latest = self._replaced.pop(key, new.job)
        if latest.payload_size > INLINE_PAYLOAD:
            self._beside.append((key, latest))
        rest = _rest(new.job, self._keys.owns(key, new.job))
        return (*new.head, *_payload(latest), *rest, new.expires_at)

    def _replace_payloads(self) -> None:
        """Give stored jobs the payloads of others."""
        jobs = self._replaced
        if jobs:
            self._work.run("delete_payloads", keys=as_json(list(jobs)))
            rows = [(key, *_payload(job)) for key, job in jobs.items()]
            self._work.run("replace_payloads", payloads=as_json(rows))
            beside = jobs.items()
            self._beside += [(k, job) for k, job in beside if job.payload_size > INLINE_PAYLOAD]


class _KeyTable:
    """The owners of the unique keys that this tick's new jobs name, kept as they change hands."""

    def __init__(self, work: Work, commands: Sequence[Enqueue]) -> None:
        names = {
            job.unique_key
            for command in commands
            for job in command.jobs
            if job.unique_key is not None
        }
        found = _owners(work, sorted(names))
        self._owners = {job.unique_key: job for job in found}
        self._former: list[int] = []
        self._stored = {job.key for job in found}
        self._work = work

    def claim(self, job: Job, on_conflict: OnConflict) -> Job | None:
        """Make a new job the owner of its key, or answer the owner of which it is a duplicate."""
        owner = self._owners.get(job.unique_key)
        if owner is not None and self._keeps(owner, job.unique_while, on_conflict):
            return owner
        if owner is not None and owner.key in self._stored:
            self._former.append(owner.key)
        self._owners[job.unique_key] = job
        return None

    def hides_an_owner(self, command: Enqueue) -> bool:
        """Whether a job of the command is a duplicate of one that is out of its reach.

        Only the first use of a key tells: from then on its owner is the command's own, or one that
        it has been shown.
        """
        first = {job.unique_key: job for job in reversed(command.jobs)}
        return any(
            (owner := self._owners.get(name)) is not None
            and self._blocks(owner, job.unique_while)
            and not command.reach.covers(owner.queue)
            for name, job in first.items()
        )

    def is_new(self, job: NewJob) -> bool:
        """Whether a job would be stored now, as no duplicate."""
        owner = self._owners.get(job.unique_key)
        return owner is None or not self._keeps(owner, job.unique_while, job.on_conflict)

    def owns(self, key: int, job: NewJob) -> bool:
        owner = self._owners.get(job.unique_key)
        return owner is not None and owner.key == key

    def release_former_owners(self) -> None:
        if self._former:
            self._work.run("release_locks", keys=as_json(self._former))

    def _keeps(self, owner: Job, scope: Scope | None, on_conflict: OnConflict) -> bool:
        """Whether a key stays with its owner, although another job comes with it."""
        gives_way = owner.status is Status.DEAD and on_conflict is OnConflict.REPLACE_DEAD
        return self._blocks(owner, scope) and not gives_way

    def _blocks(self, owner: Job, scope: Scope | None) -> bool:
        purged = owner.purge_at is not None and owner.purge_at <= self._work.now
        return scope is not None and owner.status in COVERS[scope] and not purged


def _expiry(work: Work, job: NewJob, start: int) -> int:
    """When a job expires that may be taken from `start` on: by its own time, or its queue's."""
    ttl_ms = work.settings_of(job.queue).ttl_ms if job.ttl_ms is None else job.ttl_ms
    assert ttl_ms is not None
    return min(start + ttl_ms, MAX_TIME)


def _takes_payload(owner: Job, job: NewJob) -> bool:
    return job.on_conflict is OnConflict.REPLACE_PAYLOAD and owner.status in COVERS[Scope.QUEUED]


def _payload(job: NewJob) -> tuple[int, str | None]:
    """The columns of a payload, which lies beside where it is large."""
    return job.payload_size, job.payload if job.payload_size <= INLINE_PAYLOAD else None


def _owners(work: Work, names: Sequence[str]) -> list[Job]:
    found: list[Job] = []
    start = 0
    while start < len(names):
        part = names[start : start + batch_size(len(names) - start)]
        start += len(part)
        parameters = {f"n{index}": name for index, name in enumerate(part)}
        sql = QUERIES["read_owners"].replace("NAMES", ", ".join(f":{name}" for name in parameters))
        found += work.jobs(sql, **parameters)
    return found


def _stored(key: int, job: NewJob, status: Status, ready_at: int, expires_at: int | None) -> Job:
    return Job(
        key=key,
        queue=job.queue,
        type=job.type,
        priority=job.priority,
        status=status,
        ready_at=ready_at,
        options=job.options,
        unique_key=job.unique_key,
        unique_while=job.unique_while,
        group=job.group,
        expires_at=expires_at,
        extras=job.extras,
        payload_size=job.payload_size,
        payload=None,
    )


def _rest(job: NewJob, owns_key: bool) -> tuple[object, ...]:
    options = None if job.options is None else as_json(job.options)
    extras = None if job.extras is None else as_json(job.extras)
    # A job of a group waits behind the others, unless it turns out to be their head.
    held = HELD_BY_GROUP if job.group is not None else 0
    key = (job.unique_key, job.unique_while, owns_key)
    return options, *key, job.group, held, extras
