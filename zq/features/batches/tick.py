"""The open batches of a tick's new jobs: the host of each, and the plans made for it.

The plan whether a job folds into a host, and with which result, was made before the tick from the
host of that time (`zq.features.batches`). The tick applies it only if the batch still has this host
at this revision; otherwise it refuses the plan, and a new one is made. So every fold has read the
payload that it replaces, and a command is done as a whole or not at all.
"""

from collections.abc import Mapping, Sequence

from zq.features.batches.model import HostPlace, StalePlan
from zq.model.commands import Enqueue
from zq.model.errors import KeyConflict
from zq.model.job import CopyName, JobRecord, batch_of, is_open, name_of
from zq.tick.duplicates import NameTable
from zq.tick.work import UnitOfWork

_NO_FOLDS: Mapping[int, int] = {}


class HostTable:
    """The open batches that this tick's plans name. It changes as jobs fold and become hosts."""

    def __init__(self, work: UnitOfWork, commands: Sequence[Enqueue]) -> None:
        self._work = work
        self._places: dict[str, HostPlace] = {}
        self._jobs: dict[int, JobRecord] = {}
        self._former: list[int] = []
        """Jobs whose rows in the table of batches are replaced or deleted."""
        plans = [command.plan for command in commands if command.plan is not None]
        self._touched: set[str] = set()
        if plans:
            self._read({key for plan in plans for key in plan.places})

    def refusal(self, command: Enqueue, names: NameTable) -> StalePlan | KeyConflict | None:
        """Why a command cannot be done as planned; None if it can."""
        plan = command.plan
        if plan is None:
            return None
        for key, place in plan.places.items():
            if self._places.get(key) != place:
                return StalePlan()
            if place is not None and not command.reach.covers(self._jobs[place.host].queue):
                return KeyConflict("hosts the same batch")
        copies = _copies(command, names)
        return None if copies == plan.copies else StalePlan(copies)

    def folds(self, command: Enqueue) -> Mapping[int, int]:
        """The hosts that a command's jobs fold into, by index."""
        return _NO_FOLDS if command.plan is None else command.plan.folds

    def host(self, key: int) -> JobRecord:
        """A host of this tick, by its key."""
        return self._jobs[key]

    def open(self, new: JobRecord) -> None:
        """Make a new job the host of its batch."""
        rule = batch_of(new)
        assert rule is not None
        self._jobs[new.key] = new
        # Its time may have been over before this tick.
        if is_open(new, self._work.steady):
            self._put(rule.key, HostPlace(new.key, 0))

    def note_folds(self, command: Enqueue) -> None:
        """Raise the revisions of older hosts into which a command's jobs have folded."""
        assert command.plan is not None
        for key, place in command.plan.places.items():
            if place is None or place.host not in command.plan.payloads:
                continue
            # If there is a new host since, it keeps its place.
            if self._places[key] == place:
                self._put(key, HostPlace(place.host, place.revision + 1))

    def write(self) -> None:
        """Store the hosts of batches."""
        if not self._touched:
            return
        tx = self._work.tx
        rows = [
            (place.host, key, place.revision)
            for key, place in self._places.items()
            if key in self._touched
        ]
        tx.run("close_batches", keys=[*self._former, *(host for host, _, _ in rows)])
        tx.insert("open_batches", "job_id, key, revision", rows)

    def _put(self, key: str, place: HostPlace) -> None:
        former = self._places.get(key)
        if former is not None:
            self._former.append(former.host)
        self._places[key] = place
        self._touched.add(key)

    def _read(self, keys: set[str]) -> None:
        revisions, jobs = self._work.tx.hosts(sorted(keys))
        for job in jobs:
            rule = batch_of(job)
            if rule is not None and is_open(job, self._work.steady):
                self._places[rule.key] = HostPlace(job.key, revisions.pop(job.key))
                self._jobs[job.key] = job
        # The rest are no longer hosts.
        self._former += revisions


def _copies(command: Enqueue, names: NameTable) -> frozenset[int]:
    """The indexes of the jobs in batches that are copies by name of others."""
    brought: set[CopyName] = set()
    copies: set[int] = set()
    for index, job in enumerate(command.jobs):
        if job.dedupe is None:
            continue
        name = name_of(job)
        is_copy = name in brought or names.find(job, command.reach) is not None
        brought.add(name)
        if is_copy and batch_of(job) is not None:
            copies.add(index)
    return frozenset(copies)
