"""The tick's phase of new jobs."""

from collections.abc import Mapping, Sequence

from zq.model.commands import Enqueue, Enqueued
from zq.model.errors import KeyConflict
from zq.model.job import INLINE_PAYLOAD, Job, NewJob
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.model.unique import COVERS, OnConflict, Scope
from zq.store.work import BYTES_A_ROW, LARGEST_INSERT, QUERIES, Work, as_json

_PLAIN = "id, queue, type, priority, status, ready_at, payload_size, payload"
_FULL = _PLAIN + ", options, unique_key, unique_while, owns_key, extras"


def enqueue(work: Work, commands: Sequence[Enqueue]) -> list[object]:
    """Store jobs in order; a duplicate of a unique key is answered with the key's owner."""
    keys = _KeyTable(work, commands)
    plain: list[tuple[object, ...]] = []
    full: list[tuple[tuple[object, ...], int, NewJob]] = []
    replaced: dict[int, NewJob] = {}
    payloads: list[tuple[int, NewJob]] = []
    replies: list[object] = []
    stored: list[tuple[str, Status]] = []
    for command in commands:
        if command.reach is not EVERYWHERE and keys.hides_an_owner(command):
            replies.append(KeyConflict())
            continue
        owners: dict[int, Job] = {}
        updates: set[int] = set()
        for index, (key, job) in enumerate(zip(command.keys, command.jobs, strict=True)):
            ready_at = command.now if job.ready_at is None else job.ready_at
            status = Status.READY if ready_at <= command.now else Status.SCHEDULED
            if job.unique_key is not None:
                owner = keys.claim(_stored(key, job, status, ready_at), job.on_conflict)
                if owner is not None:
                    owners[index] = owner
                    if _takes_payload(owner, job):
                        updates.add(index)
                        replaced[owner.key] = job
                    work.tally.duplicates += 1
                    continue
            head = (key, job.queue, job.type, job.priority, status, ready_at)
            if job.unique_key is not None or job.options is not None or job.extras is not None:
                full.append((head, key, job))
            elif job.payload_size > INLINE_PAYLOAD:
                plain.append((*head, job.payload_size, None))
                payloads.append((key, job))
            else:
                plain.append((*head, job.payload_size, job.payload))
            stored.append((job.queue, status))
        replies.append(Enqueued(owners, frozenset(updates)))
        if command.keys:
            work.highest_key = max(work.highest_key, command.keys[-1])
    work.counts.update(stored)
    work.tally.stored += len(stored)
    work.woken.update({queue for queue, status in set(stored) if status is Status.READY})
    keys.release_former_owners()
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
        if owner is not None and self._blocks(owner, job.unique_while):
            replaceable = owner.status is Status.DEAD and on_conflict is OnConflict.REPLACE_DEAD
            if not replaceable:
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

    def owns(self, key: int, job: NewJob) -> bool:
        owner = self._owners.get(job.unique_key)
        return owner is not None and owner.key == key

    def release_former_owners(self) -> None:
        if self._former:
            self._work.run("release_locks", keys=as_json(self._former))

    def _blocks(self, owner: Job, scope: Scope | None) -> bool:
        purged = owner.purge_at is not None and owner.purge_at <= self._work.now
        return scope is not None and owner.status in COVERS[scope] and not purged


def _insert_full(
    work: Work,
    keys: _KeyTable,
    jobs: Sequence[tuple[tuple[object, ...], int, NewJob]],
    replaced: dict[int, NewJob],
) -> list[tuple[int, NewJob]]:
    """Insert jobs that set something unusual; those whose payload is to lie beside.

    Jobs whose payload is replaced already leave `replaced`, stored with the new one.
    """
    rows: list[tuple[object, ...]] = []
    beside: list[tuple[int, NewJob]] = []
    for head, key, job in jobs:
        latest = replaced.pop(key, job)
        rows.append((*head, *_payload(latest), *_rest(job, keys.owns(key, job))))
        if latest.payload_size > INLINE_PAYLOAD:
            beside.append((key, latest))
    work.insert("jobs", _FULL, rows)
    return beside


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


def _stored(key: int, job: NewJob, status: Status, ready_at: int) -> Job:
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
        extras=job.extras,
        payload_size=job.payload_size,
        payload=None,
    )


def _rest(job: NewJob, owns_key: bool) -> tuple[object, ...]:
    options = None if job.options is None else as_json(job.options)
    extras = None if job.extras is None else as_json(job.extras)
    return options, job.unique_key, job.unique_while, owns_key, extras
