"""The tick's phase of new jobs."""

from collections.abc import Mapping, Sequence

from zq.model.commands import Enqueue, Enqueued
from zq.model.errors import KeyConflict
from zq.model.job import INLINE_PAYLOAD, MAX_TIME, Job, NewJob
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.model.unique import COVERS, OnConflict, Scope
from zq.store.dedupe import NameTable
from zq.store.depth import Depths
from zq.store.work import BYTES_A_ROW, LARGEST_INSERT, QUERIES, Work, as_json

HELD_BY_GROUP = 1
"""The bit of `held` that is shut for all jobs of a group but its head."""

_PLAIN = "id, queue, type, priority, status, ready_at, payload_size, payload"
_FULL = _PLAIN + ", options, unique_key, unique_while, owns_key, group_id, held, extras, expires_at"


def enqueue(work: Work, commands: Sequence[Enqueue]) -> list[object]:
    """Store jobs in order; a duplicate is answered with the job that it is one of."""
    keys = _KeyTable(work, commands)
    names = NameTable(work, commands)
    depths = Depths(work, commands)
    timed = work.rulebook.timed
    plain: list[tuple[object, ...]] = []
    full: list[tuple[tuple[object, ...], int, NewJob, int | None]] = []
    replaced: dict[int, NewJob] = {}
    payloads: list[tuple[int, NewJob]] = []
    replies: list[object] = []
    stored: list[tuple[str, Status]] = []
    for command in commands:
        if command.reach is not EVERYWHERE and keys.hides_an_owner(command):
            replies.append(KeyConflict())
            continue
        if (refusal := depths.refusal(command, names, keys.is_new)) is not None:
            replies.append(refusal)
            continue
        owners: dict[int, Job] = {}
        expiries: dict[int, int] = {}
        updates: set[int] = set()
        gone: dict[int, int] = {}
        for index, (key, job) in enumerate(zip(command.keys, command.jobs, strict=True)):
            ready_at = command.now if job.ready_at is None else job.ready_at
            status = Status.READY if ready_at <= command.now else Status.SCHEDULED
            expires_at: int | None = None
            if job.ttl_ms is not None or job.queue in timed:
                expires_at = _expiry(work, job, max(ready_at, command.now))
            head = (key, job.queue, job.type, job.priority, status, ready_at)
            if (
                job.unique_key is not None
                or job.options is not None
                or job.group is not None
                or job.dedupe is not None
                or job.extras is not None
                or expires_at is not None
            ):
                known = names.find(job, command.reach)
                if known is None and (job.unique_key is not None or job.dedupe is not None):
                    new = _stored(key, job, status, ready_at, expires_at)
                    if job.unique_key is not None:
                        known = keys.claim(new, job.on_conflict)
                        if known is not None and _takes_payload(known, job):
                            updates.add(index)
                            replaced[known.key] = job
                    names.learn(job, known or new)
                if isinstance(known, Job):
                    owners[index] = known
                    continue
                if known is not None:
                    gone[index] = known
                    continue
                if expires_at is not None:
                    expiries[index] = expires_at
                full.append((head, key, job, expires_at))
            elif job.payload_size > INLINE_PAYLOAD:
                plain.append((*head, job.payload_size, None))
                payloads.append((key, job))
            else:
                plain.append((*head, job.payload_size, job.payload))
            stored.append((job.queue, status))
        replies.append(Enqueued(owners, frozenset(updates), gone, expiries))
        work.tally.duplicates += len(owners) + len(gone)
        work.retimed |= bool(expiries)
        if command.keys:
            work.highest_key = max(work.highest_key, command.keys[-1])
    work.counts.update(stored)
    work.tally.stored += len(stored)
    work.woken.update({queue for queue, status in set(stored) if status is Status.READY})
    work.open_groups([job for _, _, job, _ in full])
    keys.release_former_owners()
    names.write()
    work.insert("jobs", _PLAIN, plain)
    payloads += _insert_full(work, keys, full, replaced)
    payloads += _replace_payloads(work, replaced)
    work.insert("payloads", "job_id, body", [(key, job.payload) for key, job in payloads])
    work.rows += sum(job.payload_size // BYTES_A_ROW for _, job in payloads)
    return replies


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


def _insert_full(
    work: Work,
    keys: _KeyTable,
    jobs: Sequence[tuple[tuple[object, ...], int, NewJob, int | None]],
    replaced: dict[int, NewJob],
) -> list[tuple[int, NewJob]]:
    """Insert jobs that set something unusual; those whose payload is to lie beside.

    Jobs whose payload is replaced already leave `replaced`, stored with the new one.
    """
    rows: list[tuple[object, ...]] = []
    beside: list[tuple[int, NewJob]] = []
    for head, key, job, expires_at in jobs:
        latest = replaced.pop(key, job)
        rows.append((*head, *_payload(latest), *_rest(job, keys.owns(key, job)), expires_at))
        if latest.payload_size > INLINE_PAYLOAD:
            beside.append((key, latest))
    work.insert("jobs", _FULL, rows)
    return beside


def _expiry(work: Work, job: NewJob, start: int) -> int:
    """When a job expires that may be taken from `start` on: by its own time, or its queue's."""
    ttl_ms = work.settings_of(job.queue).ttl_ms if job.ttl_ms is None else job.ttl_ms
    assert ttl_ms is not None
    return min(start + ttl_ms, MAX_TIME)


def _takes_payload(owner: Job, job: NewJob) -> bool:
    return job.on_conflict is OnConflict.REPLACE_PAYLOAD and owner.status in COVERS[Scope.QUEUED]


def _replace_payloads(work: Work, jobs: Mapping[int, NewJob]) -> list[tuple[int, NewJob]]:
    """Give stored jobs the payloads of others; those that are to lie beside are left to insert."""
    if jobs:
        work.run("delete_payloads", keys=as_json(list(jobs)))
        rows = [(key, *_payload(job)) for key, job in jobs.items()]
        work.run("replace_payloads", payloads=as_json(rows))
    return [(key, job) for key, job in jobs.items() if job.payload_size > INLINE_PAYLOAD]


def _payload(job: NewJob) -> tuple[int, str | None]:
    """The columns of a payload, which lies beside where it is large."""
    return job.payload_size, job.payload if job.payload_size <= INLINE_PAYLOAD else None


def _owners(work: Work, names: Sequence[str]) -> list[Job]:
    found: list[Job] = []
    for start in range(0, len(names), LARGEST_INSERT):
        part = names[start : start + LARGEST_INSERT]
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
