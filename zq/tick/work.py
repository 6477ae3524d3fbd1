"""One transaction under way: its rules, its effects, and the jobs that commands may see."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from random import Random
from typing import TypeVar

from zq.model.commands import Claim, Extend, Release, Settled, SliceMark, Succeed, TickResult
from zq.model.errors import Unprocessable
from zq.model.filters import Filter
from zq.model.ids import Mint
from zq.model.job import Brief, JobRecord, JobSettings, NewJob
from zq.model.leasing import Holder
from zq.model.lifecycle import TERMINAL, Status
from zq.model.reach import BudgetMaker, Reach
from zq.model.settings import QueueSettings
from zq.model.settling import Policy
from zq.store.api import Sliced, Transaction
from zq.tick.hooks import HookTable
from zq.tick.rulebook import Rulebook

NOBODY: Mapping[int, Holder] = {}

SLICE_NOTES = 512
"""The most queues, groups and lines that are written while the event loop waits: 2 to 8 ms."""

H = TypeVar("H")

_OPTIONS = attrgetter("options")

_TIMED = TERMINAL | {Status.SCHEDULED}
"""States in which a job may wait for a time."""


class UnitOfWork:
    """A transaction of the tick, or a part of it that is kept or dropped as a whole."""

    def __init__(
        self,
        tx: Transaction,
        now: int,
        steady: int,
        rulebook: Rulebook,
        random: Random,
        hooks: "HookTable[UnitOfWork]",
        workers: Mapping[int, Holder] = NOBODY,
        mint: Mint | None = None,
        claim: Callable[["UnitOfWork", Claim], list[JobRecord]] | None = None,
    ) -> None:
        """Begin a unit at a wall time `now` and a steady time `steady`, both in milliseconds.

        `workers` has workers by their numbers as holders. `mint` makes the keys of jobs that the
        tick itself brings. `claim` takes jobs for a phase.
        """
        self.tx = tx
        self.now = now
        self.steady = steady
        self.rulebook = rulebook
        self.random = random
        self.hooks = hooks
        self.holds = hooks.holds
        self.lines = hooks.lines
        self.workers = workers
        self._mint = mint
        self._claim = claim
        self.effects = TickResult()
        self.counts: defaultdict[tuple[str, Status], int] = defaultdict(int)
        """The changes of the kept counts."""
        self.groups: dict[tuple[str, str], bool] = {}
        """Groups whose heads must be checked, as (queue, group). True: an open job may have to be
        shut."""
        self.regaining: list[int] = []
        """Jobs with a unique key that wait again since the phase began."""
        self.retimed = False
        """True if a deadline may have changed."""
        self.wanted: set[str] = set()
        """The statements whose values rooms have to learn after the commit."""
        self.highest_key = 0
        self.has_lines = self._may_have_lines()
        """True if waiting jobs may be in lines. What brings the first such job sets it."""

    def part(self) -> "UnitOfWork":
        """A part of this transaction, to keep or to drop."""
        tx = self.tx.part()
        self._serve(tx)
        return UnitOfWork(
            tx,
            self.now,
            self.steady,
            self.rulebook,
            self.random,
            self.hooks,
            self.workers,
            self._mint,
            self._claim,
        )

    def keep(self, part: "UnitOfWork") -> None:
        """Take over a part that has ended."""
        self.tx.keep()
        self._serve(self.tx)
        self.tx.rows += part.tx.rows
        self.tx.misfits += part.tx.misfits
        self.rulebook = part.rulebook
        self.retimed |= part.retimed
        self.wanted |= part.wanted
        self.highest_key = max(self.highest_key, part.highest_key)
        self.effects.merge(part.effects)
        self.has_lines |= part.has_lines

    def drop(self) -> None:
        """Undo a part that has failed."""
        self.tx.undo()
        self._serve(self.tx)
        self.lines.forget()
        for hold in self.holds:
            hold.recall()
        for forget in self.hooks.undone:
            forget()
        self.has_lines = self._may_have_lines()

    @property
    def is_long(self) -> bool:
        """True if writing what follows from moves of jobs would hold the event loop for long."""
        return len(self.counts) + len(self.groups) + self.lines.noted > SLICE_NOTES

    def finish(self) -> TickResult:
        """Write everything that follows from the moves of jobs. Return the result for memory."""
        self.open_heads()
        for hold in self.holds:
            if hold.is_used:
                hold.store()
                self.retimed |= hold.is_retimed
        if self.counts:
            self.write_counts()
        self.effects.rows = self.tx.rows
        self.effects.misfits = self.tx.misfits
        return self.effects

    def claim(self, wanted: Claim) -> list[JobRecord]:
        """Take jobs for a phase of a late stage, as claims do at the end of the tick."""
        assert self._claim is not None, "the tick came without claims"
        self.open_heads()
        return self._claim(self, wanted)

    def new_keys(self, count: int) -> Sequence[int]:
        """Keys for jobs that the tick itself brings, in rising order."""
        assert self._mint is not None, "the tick came without a mint"
        keys = self._mint.take(count, self.now)
        if keys:
            self.highest_key = max(self.highest_key, keys[-1])
        return keys

    def matching(self, keys: Sequence[int], filter: Filter) -> list[int]:
        """Return the keys of those jobs that match a filter now."""
        return self.tx.matching(keys, filter.dated(self.steady - self.now))

    def settings_of(self, queue: str) -> QueueSettings:
        return self.rulebook.of(queue)

    def policy_of(self, queue: str) -> Policy:
        """The rules for jobs of a queue that set nothing themselves."""
        return self.rulebook.policy(queue)

    def regain_keys(self, most: int) -> Sliced[None]:
        """Give jobs that wait again their unique keys, unless others have them; the oldest first.

        This comes at the end of a phase, so that the order of its jobs, and slices of `most`, make
        no difference: by then every job that ends in it has released its key.
        """
        keys, self.regaining = sorted(self.regaining), []
        for start in range(0, len(keys), most):
            self.tx.write("restore_locks", keys=keys[start : start + most])
            yield None

    def open_heads(self) -> None:
        """Open the heads of the groups that this transaction has touched, and shut the others.

        In a (queue, group) one job at a time is open to claims: its head. That is the job in flight
        if there is one, otherwise the unfinished job with the lowest id, whether it is ready or
        waits for its time. So a job that will be tried again keeps its group shut. All other jobs
        have the bit of their group in `held`. A change that ends, moves or brings a job of a group
        only notes the group. This call comes before the claims of the same transaction, so a crash
        cannot come in between.
        """
        if self.tx.removed:
            self._note_removed()
        if self.groups:
            mixed = [group for group, is_mixed in self.groups.items() if is_mixed]
            if self.has_lines:
                self._open_heads_in_lines(mixed)
            else:
                if mixed:
                    self.tx.write("shut_groups", groups=mixed)
                self.tx.write("open_groups", groups=list(self.groups))
            self.effects.woken.update([queue for queue, _ in self.groups])
            self.groups.clear()
        if self.has_lines:
            self.lines.flush(self.tx, self.now, self.steady - self.now)
        for hold in self.holds:
            if hold.is_used:
                self.effects.woken.update(hold.flush())
                self.retimed |= hold.is_retimed

    def write_counts(self) -> None:
        """Write the changes of the kept counts."""
        deltas = []
        for (queue, status), n in self.counts.items():
            if n:
                deltas.append((queue, status, n))
                self.effects.counted.add(queue)
            if status in _TIMED:
                self.retimed = True
        self.tx.count(deltas)
        if not self.rulebook.is_empty and (limited := self.rulebook.limited):
            freed = [q for q, s, n in deltas if s is Status.IN_FLIGHT and n < 0 and q in limited]
            self.effects.woken.update(freed)
        self.counts.clear()

    def _may_have_lines(self) -> bool:
        if self.lines.agings:
            return True
        for hold in self.holds:  # noqa: SIM110 - a generator costs more than the rest of a look
            if hold.is_used:
                return True
        return False

    def _serve(self, tx: Transaction) -> None:
        for hold in self.holds:
            hold.serve(tx)

    def _open_heads_in_lines(self, mixed: Sequence[tuple[str, str]]) -> None:
        """Open and shut groups of which some jobs may wait in lines."""
        shut = [key for (key,) in self.tx.rows_of("shut_groups_telling", groups=mixed)]
        opened = [
            key for (key,) in self.tx.rows_of("open_groups_telling", groups=list(self.groups))
        ]
        if shut or opened:
            self.lines.regroup(self.tx, [*shut, *opened])

    def _note_removed(self) -> None:
        """Note the consequences of jobs that were set aside because they cannot be read."""
        if not self.tx.removed:
            return
        for lost in self.hooks.lost:
            lost(self, [key for key, _, _ in self.tx.removed])
        self.lines.mend(self.tx)
        for hold in self.holds:
            hold.mend()
        for key, holder, group in self.tx.removed:
            self.retimed = True
            if holder is not None:
                self.effects.ended.append((holder, key))
                self.effects.revoked.append(key)
            if group is not None:
                self.groups[group] = True
        self.tx.removed.clear()


def note_slice(work: UnitOfWork, mark: SliceMark | None, changed: int) -> None:
    """Tell rooms how many jobs a slice of a long change has changed. Nothing without a mark."""
    if mark is not None and changed:
        for hook in work.hooks.sliced:
            hook(work, mark, changed)


def visible_job(work: UnitOfWork, key: int, reach: Reach) -> JobRecord | None:
    """A job that a request may see: within reach, and its retention is not over."""
    return first_visible(work, work.tx.jobs("read_jobs", keys=[key]), reach)


def first_visible(work: UnitOfWork, jobs: Sequence[JobRecord], reach: Reach) -> JobRecord | None:
    """The first of the jobs that a request may see."""
    for job in jobs:
        if (job.purge_at is None or job.purge_at > work.steady) and reach.covers(job.queue):
            return job
    return None


def options_of(jobs: Iterable[Brief | JobRecord]) -> Iterable[JobSettings]:
    """The options of the jobs that have any.

    Claims and completions ask for those of every job. No Python runs for jobs without options.
    """
    return filter(None, map(_OPTIONS, jobs))


def within_reach(jobs: Sequence[Brief], reaches: Mapping[int, Reach]) -> list[Brief]:
    """The jobs within the reach of their settlements. A tick has one settlement a job."""
    return [job for job in jobs if reaches[job.key].covers(job.queue)]


def stale_deliveries(
    work: UnitOfWork, leases: Mapping[int, int], reaches: Mapping[int, Reach]
) -> frozenset[int]:
    """The jobs within reach whose named delivery has ended."""
    if not leases:
        return frozenset()
    found = work.tx.pairs("read_stale", leases=leases, now=work.steady)
    return frozenset(key for key, queue in found if reaches[key].covers(queue))


def unsettled(
    commands: Sequence[Succeed] | Sequence[Extend] | Sequence[Release],
    held: Sequence[Brief],
    stale: frozenset[int],
) -> list[Settled]:
    """The replies to commands of which only the jobs that were held are settled."""
    done = {job.key for job in held} | stale
    return [
        Settled(frozenset(command.keys) - done, stale.intersection(command.keys))
        for command in commands
    ]


def hold_of(work: UnitOfWork, kind: type[H]) -> H:
    """The hold of a transaction that is of this kind. Raises `LookupError` if no room has one."""
    for hold in work.holds:
        if isinstance(hold, kind):
            return hold
    raise LookupError(f"this tick has no {kind.__name__}")


def refuse_new(
    work: UnitOfWork, jobs: Sequence[NewJob], maker: BudgetMaker | None, place: str = "jobs"
) -> Unprocessable | None:
    """Why new jobs cannot be stored. If there are several, the message names one by its `place`."""
    for hold in work.holds:
        if (refusal := hold.refuse_new(jobs, maker, place)) is not None:
            return refusal
    return None


def admit_new(work: UnitOfWork, jobs: Sequence[NewJob], maker: BudgetMaker | None) -> None:
    """Create what new jobs bring along for themselves."""
    for hold in work.holds:
        hold.admit_new(work, jobs, maker)


def refuse_return(work: UnitOfWork, jobs: Sequence[JobRecord | NewJob]) -> Unprocessable | None:
    """Why finished jobs, or copies of them, cannot come back."""
    for hold in work.holds:
        if (refusal := hold.refuse_return(jobs)) is not None:
            return refusal
    return None


def kept_by(work: UnitOfWork, job: JobRecord | NewJob) -> str | None:
    """The code by which those are counted that cannot come back as `refuse_return` says."""
    return "budget_gone" if refuse_return(work, [job]) else None


def is_held(work: UnitOfWork, job: JobRecord) -> bool:
    """True if a hold keeps a job from claims each time that it waits."""
    return any(hold.holds(job.options) for hold in work.holds)
