"""The open batches of a tick's jobs: the host of each, and the plans made for it.

The plan whether a job folds into a host, and with which result, was made before the tick from the
host of that time (`zq.features.batches`). The tick applies it only if the batch still has this host
at this revision; otherwise it refuses the plan, and a new one is made. So every fold has read the
payload that it replaces, and a command is done as a whole or not at all.
"""

from collections.abc import Sequence

from zq.features.batches.model_jobs import BatchPlan, HostPlace, StalePlan, batch_of
from zq.model.commands import Enqueue
from zq.model.errors import KeyConflict
from zq.model.job import Brief, CopyName, JobRecord, NewJob, is_open, name_of
from zq.model.lifecycle import Move, Status
from zq.tick.hooks import Hooks, Jobs, KnownNames, Options
from zq.tick.work import UnitOfWork

_CLOSING = (Move.PATCH, Move.TAKE, Move.RESUME, Move.EXPIRE, Move.CANCEL, Move.FORCE)
"""The moves by which a host may cease to be ready."""


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """Hosts of batches: how new jobs fold into them, and when they cease to be hosts."""
    return Hooks(
        moves_with_extras=dict.fromkeys(_CLOSING, _close),
        removed=_close,
        lost=_close_all,
        cleared=_clear,
        folds=HostTable,
    )


def _clear(work: UnitOfWork, settings: bool) -> None:
    work.tx.write("clear_batches")


def _close_all(work: UnitOfWork, keys: Sequence[int]) -> None:
    work.tx.write("close_batches", keys=keys)


def _close(work: UnitOfWork, jobs: Jobs, after: Jobs | None = None) -> None:
    """Close the batches of these hosts, except of those that are still ready.

    A batch does not open again, whatever happens to its host.
    """
    hosts = [job.key for job in jobs if _may_be_host(job)]
    if hosts and after is not None:
        ready = {job.key for job in after if job.status is Status.READY}
        hosts = [key for key in hosts if key not in ready]
    if hosts:
        _close_all(work, hosts)


def _may_be_host(job: Brief | JobRecord) -> bool:
    """True if a job may host a batch: it waits, and came with one."""
    if job.status is not Status.READY:
        return False
    if isinstance(job, Brief):
        return bool(job.batched)
    return batch_of(job) is not None


class HostTable:
    """The open batches that this tick's plans name. It changes as jobs fold and become hosts."""

    def __init__(self, work: UnitOfWork, commands: Sequence[Enqueue]) -> None:
        """Read the hosts that the plans of these commands name."""
        self._work = work
        self._places: dict[str, HostPlace] = {}
        self._jobs: dict[int, JobRecord] = {}
        self._former: list[int] = []
        """Jobs whose rows in the table of batches are replaced or deleted."""
        plans = [plan for command in commands if (plan := _plan_of(command)) is not None]
        self._touched: set[str] = set()
        if plans:
            self._read({key for plan in plans for key in plan.places})

    def refusal(self, command: Enqueue, names: KnownNames) -> StalePlan | KeyConflict | None:
        """Why a command cannot be done as planned; None if it can."""
        plan = _plan_of(command)
        if plan is None:
            return None
        for key, place in plan.places.items():
            if self._places.get(key) != place:
                return StalePlan()
            if place is not None and not command.reach.covers(self._jobs[place.host].queue):
                return KeyConflict("hosts the same batch")
        copies = _copies(command, names)
        return None if copies == plan.copies else StalePlan(copies)

    def may_host(self, job: NewJob) -> bool:
        """True if a new job came with a batch."""
        return batch_of(job) is not None

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
        plan = _plan_of(command)
        assert plan is not None
        for key, place in plan.places.items():
            if place is None or place.host not in plan.payloads:
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
        tx.write("close_batches", keys=[*self._former, *(host for host, _, _ in rows)])
        tx.insert("open_batches", "job_id, key, revision", rows)

    def _put(self, key: str, place: HostPlace) -> None:
        former = self._places.get(key)
        if former is not None:
            self._former.append(former.host)
        self._places[key] = place
        self._touched.add(key)

    def _read(self, keys: set[str]) -> None:
        tx, names = self._work.tx, sorted(keys)
        revisions: dict[int, int] = dict(tx.table_of("read_hosts", names))
        jobs = tx.jobs_of("read_host_jobs", names)
        for job in jobs:
            rule = batch_of(job)
            if rule is not None and is_open(job, self._work.steady):
                self._places[rule.key] = HostPlace(job.key, revisions.pop(job.key))
                self._jobs[job.key] = job
        # The rest are no longer hosts.
        self._former += revisions


def _plan_of(command: Enqueue) -> BatchPlan | None:
    plan = command.plan
    assert plan is None or isinstance(plan, BatchPlan)
    return plan


def _copies(command: Enqueue, names: KnownNames) -> frozenset[int]:
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
