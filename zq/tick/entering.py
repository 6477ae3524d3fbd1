"""How a stored job enters a queue: the rules that new jobs meet there hold for it too.

A job enters a queue when a patch moves it, when it is revived or goes home, when its cancellation
is undone, and when it dies and becomes a dead letter. `zq.tick.intake` has the same rules for new
jobs.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from zq.model.commands import Entered
from zq.model.errors import KeyTaken, NotCompared, QueueFull, ZqError
from zq.model.job import NO_EXTRAS, JobRecord, is_dead_letter, is_over
from zq.model.lifecycle import TERMINAL
from zq.model.unique import COVERS, KeySpace, lock_of
from zq.store.api import Sliced
from zq.tick.depths import Room
from zq.tick.fitting import Arrival, misfits
from zq.tick.work import UnitOfWork


def entering(
    work: UnitOfWork,
    arrivals: Sequence[Arrival],
    keyless: Collection[int] = (),
    *,
    all_now: bool = False,
) -> "Sliced[QueueEntry]":
    """Compare the payloads of arrivals with the rules of their queues, and begin their entry.

    Where jobs enter a queue with targets, the rules of those that get them count too. The jobs
    whose keys are in `keyless` are dead letters there: they have no unique key. With `all_now` no
    job is left to another transaction, however long its payload takes.
    """
    places = _places(work, arrivals)
    compared = [(job, tuple(dict.fromkeys((queue, *places[job.key])))) for job, queue in arrivals]
    unfit = yield from misfits(work, compared, all_now=all_now)
    return QueueEntry(work, arrivals, places, keyless, unfit)


def _places(work: UnitOfWork, arrivals: Sequence[Arrival]) -> dict[int, tuple[str, ...]]:
    """The queues that get each job, by its key: the one that it enters, or the targets of that.

    A job that comes back to a queue which is its own target stays there. The other targets had
    their twins of it when it was new.
    """
    fanning = {} if work.hooks.fan_out is None else work.rulebook.fanning
    places: dict[int, tuple[str, ...]] = {}
    for job, queue in arrivals:
        targets = fanning.get(queue, (queue,))
        comes_back = job.queue == queue or (job.extras or NO_EXTRAS).origin == queue
        places[job.key] = (queue,) if comes_back and queue in targets else targets
    return places


class QueueEntry:
    """Decides which jobs may enter queues in a transaction, and in which queue each then lies.

    `entering` makes it. Call `refusal`, or `admits` for one of a slice, for each job in turn: what
    it admits takes room, and its unique key. Then move the jobs to the queues that `place` names,
    and call `entered` with the objects of their rows.
    """

    def __init__(
        self,
        work: UnitOfWork,
        arrivals: Sequence[Arrival],
        places: Mapping[int, Sequence[str]],
        keyless: Collection[int],
        unfit: Mapping[int, ZqError],
    ) -> None:
        self._work = work
        self._fan_out = work.hooks.fan_out
        self._fanning = {} if self._fan_out is None else work.rulebook.fanning
        self._places = places
        self._keyless = keyless
        self._kept: Counter[str] = Counter()
        self._rest: list[int] = []
        self._unfit = unfit
        self._room = Room(work, {self._place(job) for job, _ in arrivals})
        self._owners: dict[str, JobRecord] = {}
        self._twins: dict[str, list[int]] = {}
        self._in_targets = set[int]()
        if locks := {lock for arrival in arrivals if (lock := self._wanted(*arrival)) is not None}:
            owners = work.tx.owners(sorted(locks))
            self._owners = {owner.lock: owner for owner in owners if owner.lock is not None}

    def admits(self, job: JobRecord, queue: str, obstacle: str | None = None) -> bool:
        """True if a job may enter a queue. Otherwise `report` tells why, or leaves it to the rest.

        An `obstacle` is the code of a reason that is known already.
        """
        if obstacle is None:
            why = self.refusal(job, queue)
            if why is None:
                return True
            if isinstance(why, NotCompared):
                self._rest.append(job.key)
                return False
            obstacle = why.code
        self._kept[obstacle] += 1
        return False

    def report(self, changed: int) -> Entered:
        """What became of the slice, of whose jobs so many have changed."""
        return Entered(changed, dict(self._kept), tuple(self._rest))

    def refusal(self, job: JobRecord, queue: str) -> ZqError | None:
        """Why a job may not enter a queue. If it may, its key and its room are taken."""
        if (misfit := self._unfit.get(job.key)) is not None:
            return misfit
        lock = self._wanted(job, queue)
        owner = None if lock is None else self._owners.get(lock)
        if owner is not None and owner.key != job.key:
            if not is_over(owner, self._work.steady):
                assert job.unique_key is not None
                return KeyTaken(job.unique_key)
            self._work.tx.write("release_locks", keys=[owner.key])
        place = self._place(job)
        if job.queue != place or job.status in TERMINAL:
            if not self._room.take(place):
                return QueueFull(place, self._room.bound(place))
            self.leaves(job)
        if lock is not None:
            self._owners[lock] = job
        return None

    def leaves(self, job: JobRecord) -> None:
        """Count a job that ends, or moves elsewhere, no longer where it was."""
        if job.status not in TERMINAL:
            self._room.free(job.queue)

    def place(self, job: JobRecord, queue: str) -> str:
        """The queue in which an admitted job lies: the first of the targets that get it."""
        if queue in self._fanning:
            self._in_targets.add(job.key)
            for other in self._places[job.key][1:]:
                self._twins.setdefault(other, []).append(job.key)
        return self._place(job)

    def entered(self, jobs: Sequence[JobRecord]) -> None:
        """Give jobs that have moved to targets their keys there, and store their twins."""
        known = {job.key: job for job in jobs if job.key in self._in_targets}
        if self._fan_out is None or not known:
            return
        narrow_keys(self._work, list(known.values()))
        for target, keys in self._twins.items():
            self._fan_out.store_twins(self._work, target, [self._model(known[key]) for key in keys])

    def _place(self, job: JobRecord) -> str:
        """Where a job lies that enters: the rules of this queue are those that it meets."""
        return self._places[job.key][0]

    def _model(self, job: JobRecord) -> JobRecord:
        if job.key not in self._keyless:
            return job
        return msgspec.structs.replace(job, unique_key=None, unique_while=None)

    def _wanted(self, job: JobRecord, queue: str) -> str | None:
        """The lock that a job takes when it enters a queue; None if it takes none."""
        if job.unique_key is None or job.unique_while is None or job.key in self._keyless:
            return None
        space = KeySpace.QUEUE if queue in self._fanning else job.unique_in
        lock = lock_of(self._place(job), job.unique_key, space)
        if job.status in TERMINAL or is_dead_letter(job):
            return lock
        keeps = lock == job.lock or job.status not in COVERS[job.unique_while]
        return None if keeps else lock


def narrow_keys(work: UnitOfWork, jobs: Sequence[JobRecord]) -> None:
    """Have the unique keys of jobs that came to a target count there alone, as new ones do."""
    wide = _with_wide_keys(jobs)
    _narrow(work, wide, wide)


def narrow_keys_in_place(work: UnitOfWork, jobs: Sequence[JobRecord]) -> None:
    """Do the same for jobs that stay in their queue. Those that own their keys go on to do so."""
    wide = _with_wide_keys(jobs)
    owners = {job.key for job in work.tx.owners(sorted({job.lock for job in wide if job.lock}))}
    _narrow(work, wide, [job for job in wide if job.key in owners])


def _with_wide_keys(jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """The jobs whose keys count in all queues."""
    return [
        job
        for job in jobs
        if job.unique_key is not None
        and job.unique_in is not KeySpace.QUEUE
        and not is_dead_letter(job)
    ]


def _narrow(work: UnitOfWork, wide: Sequence[JobRecord], owning: Sequence[JobRecord]) -> None:
    """Have keys count in the queues of their jobs. Some own them there unless others do."""
    if wide:
        work.tx.write("narrow_locks", keys=[job.key for job in wide])
        work.tx.write("restore_moved_locks", keys=[job.key for job in owning])
    for job in wide:
        job.unique_in = KeySpace.QUEUE


def letters_among(jobs: Sequence[JobRecord]) -> set[int]:
    """The keys of the dead letters among jobs."""
    return {job.key for job in jobs if is_dead_letter(job)}
