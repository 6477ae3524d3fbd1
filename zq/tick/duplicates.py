"""Recognises duplicates of new jobs: by unique keys, and by the names that copies share.

A unique key has one owner at a time. A name is recognised for a while, whatever happens to the job.
It belongs to its queue and group, or to the queue alone if the job has no group.
"""

from collections.abc import Sequence

from zq.model.commands import Enqueue
from zq.model.job import MAX_TIME, CopyName, JobRecord, NewJob, is_over, name_of
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.model.unique import COVERS, OnConflict, Scope
from zq.tick.work import UnitOfWork, first_visible


class KeyTable:
    """The owners of the unique keys among this tick's new jobs. It changes with each new owner."""

    def __init__(self, work: UnitOfWork, commands: Sequence[Enqueue]) -> None:
        locks = {job.lock for command in commands for job in command.jobs}
        locks.discard(None)
        found = work.tx.owners(sorted(filter(None, locks))) if locks else []
        self._owners = {job.lock: job for job in found}
        self._former: list[int] = []
        self._stored = {job.key for job in found}
        self._work = work

    def claim(self, job: JobRecord, on_conflict: OnConflict) -> JobRecord | None:
        """Make a new job the owner of its key. If it is a duplicate, return the owner instead."""
        lock = job.lock
        owner = self._owners.get(lock)
        if owner is not None:
            if self._keeps(owner, job.unique_while, on_conflict):
                return owner
            if owner.key in self._stored:
                self._former.append(owner.key)
        self._owners[lock] = job
        return None

    def follow(self, owner: JobRecord) -> None:
        """Use an owner's new state from now on."""
        self._owners[owner.lock] = owner

    def hides_an_owner(self, command: Enqueue) -> bool:
        """True if a job of the command duplicates a job that is out of its reach.

        Only the first use of a key matters: after that, the key's owner is the command's own job or
        one that the command has seen.
        """
        first = {job.lock: job for job in reversed(command.jobs)}
        return any(
            (owner := self._owners.get(name)) is not None
            and self._blocks(owner, job.unique_while)
            and not command.reach.covers(owner.queue)
            for name, job in first.items()
        )

    def is_new(self, job: NewJob) -> bool:
        """True if a job would be stored now, since it is no duplicate."""
        owner = self._owners.get(job.lock)
        return owner is None or not self._keeps(owner, job.unique_while, job.on_conflict)

    def owning(self) -> set[int]:
        """The jobs that own their keys once all jobs are stored."""
        return {owner.key for owner in self._owners.values()}

    def release_former_owners(self) -> None:
        """Take the keys from stored jobs that have lost them to new ones."""
        if self._former:
            self._work.tx.write("release_locks", keys=self._former)

    def _keeps(self, owner: JobRecord, scope: Scope | None, on_conflict: OnConflict) -> bool:
        """True if a key stays with its owner although another job brings it."""
        gives_way = owner.status is Status.DEAD and on_conflict is OnConflict.REPLACE_DEAD
        return self._blocks(owner, scope) and not gives_way

    def _blocks(self, owner: JobRecord, scope: Scope | None) -> bool:
        covers = scope is not None and owner.status in COVERS[scope]
        return covers and not is_over(owner, self._work.steady)


class NameTable:
    """The names of this tick's new jobs: those that are known, and those that are new."""

    def __init__(self, work: UnitOfWork, commands: Sequence[Enqueue]) -> None:
        brought = {
            name_of(job) for command in commands for job in command.jobs if job.dedupe is not None
        }
        self._work = work
        self._keys: dict[CopyName, int] = {}
        self._jobs: dict[int, JobRecord] = {}
        self._new: list[tuple[object, ...]] = []
        if brought:
            self._read(brought)

    def find(self, new: NewJob, reach: Reach) -> JobRecord | int | None:
        """The job of which a new one is a copy; only its key if the request may not see the job."""
        key = None if new.dedupe is None else self._keys.get(name_of(new))
        if key is None:
            return None
        job = self._jobs.get(key)
        return key if job is None else first_visible(self._work, [job], reach) or key

    def learn(self, new: NewJob, accepted: JobRecord) -> None:
        """From now on, recognise copies of a new job as the job that was accepted."""
        if new.dedupe is None:
            return
        name = name_of(new)
        until = min(self._work.steady + new.dedupe.window_ms, MAX_TIME)
        self._keys[name] = accepted.key
        self._jobs[accepted.key] = accepted
        self._new.append((*name, accepted.key, until))

    def follow(self, job: JobRecord) -> None:
        """Use a job's new state from now on."""
        if job.key in self._jobs:
            self._jobs[job.key] = job

    def write(self) -> None:
        """Store the new names."""
        if self._new:
            self._work.tx.write("write_names", names=self._new)
            self._work.retimed = True

    def _read(self, names: set[CopyName]) -> None:
        known = self._work.tx.table("read_names", names=list(names), now=self._work.steady)
        self._keys = {(queue, group, name): key for queue, group, name, key in known}
        if known:
            found = self._work.tx.jobs("read_jobs", keys=[*self._keys.values()])
            self._jobs = {job.key: job for job in found}
