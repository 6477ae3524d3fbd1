"""Hooks: what rooms do in a tick besides their phases.

`zq.tick` has the life of a job, and knows no room. At fixed places it calls what rooms have put
there. A room has a function `hooks` in its module `tick`, which gives its `Hooks`. The runner calls
it once, and puts those of all rooms into one `HookTable`. A place where no room has a hook costs a
tick one look into an empty tuple.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from zq.model.commands import Due, Enqueue, SliceMark
from zq.model.errors import Unprocessable, ZqError
from zq.model.job import Brief, JobRecord, NewJob
from zq.model.lifecycle import Move, Status
from zq.model.queue_patterns import NO_QUEUES, QueuePatterns
from zq.model.reach import BudgetMaker, Reach
from zq.model.settling import Failure
from zq.store.api import Line, Sliced, Transaction
from zq.tick.lines import LineHold, Lines

W = TypeVar("W")
"""The unit of work: `zq.tick.work.UnitOfWork`. It has a table of hooks itself."""

W_contra = TypeVar("W_contra", contravariant=True)

H = TypeVar("H")

K = TypeVar("K")

Options = Mapping[str, Any]
"""Settings of the server by their names, as the hooks of rooms get them at the start."""

Jobs = Sequence[Brief | JobRecord]


class FailedAttempt(NamedTuple):
    """An attempt that has failed, and whether the job dies of it. It still has its holder."""

    job: JobRecord
    died: bool
    failure: Failure


class KnownNames(Protocol):
    """The names by which copies of new jobs are recognised."""

    def find(self, new: NewJob, reach: Reach) -> JobRecord | int | None:
        """The job of which a new one is a copy, or its key."""


class FoldTable(Protocol):
    """The jobs of one tick into which new jobs fold, by the plans that their commands bring."""

    def refusal(self, command: Enqueue, names: KnownNames) -> object | None:
        """Why a command cannot be done as it was planned; None if it can."""

    def may_host(self, job: NewJob) -> bool:
        """True if others may fold into a new job that is ready."""

    def host(self, key: int) -> JobRecord:
        """The job of this key, into which a plan folds another one."""

    def open(self, new: JobRecord) -> None:
        """Let others fold into a new job from now on."""

    def note_folds(self, command: Enqueue) -> None:
        """Note that the folds of a command are done."""

    def write(self) -> None:
        """Store what has changed."""


class BoundTable(Protocol):
    """How much may wait in some queues, for the new jobs of one phase."""

    def refusal(self, command: Enqueue) -> Sliced[ZqError | None]:
        """Why the jobs of a command cannot be stored. Otherwise they have room from now on."""

    def stored(self, jobs: Iterable[tuple[str, int]], *, sure: bool) -> Sliced[None]:
        """Count jobs that are stored, as queues and bytes, and have others make room for them.

        `sure` is False if payloads of stored jobs were replaced: the bytes that wait are then
        unknown.
        """


class PayloadRules(Protocol):
    """What some queues ask of the payloads that come to them."""

    steps: int
    """The steps that comparisons have taken so far: one takes about 250 ns."""

    def refusal(self, payload: str, queues: Iterable[str]) -> Sliced[ZqError | None]:
        """Why a payload, in JSON, may not come to all of these queues."""


class FanOut(NamedTuple, Generic[W]):
    """What becomes of jobs that come to a queue with targets."""

    enqueue: Callable[[W, Sequence[Enqueue]], Sliced[list[object]]]
    """Stores new jobs while some queues have targets."""
    store_twins: Callable[[W, str, Sequence[JobRecord]], None]
    """Stores jobs like these stored ones in a further target."""
    refusal: Callable[[W, Sequence[NewJob], str], Sliced[ZqError | None]]
    """Why new jobs may not come to all targets of their queues. An error names the place of one."""


class Allowance(Protocol):
    """What a room has, in one calculation, for the jobs of a line and of all others alike to it."""

    def refuses(self) -> tuple[str, int] | None:
        """What cannot pay for the next job of the line, and the cost; None if it can be paid.

        A line that is refused is shut, until the room opens what waits for this.
        """

    def pay(self) -> None:
        """Pay for one job of the line."""


class Turn(Protocol):
    """Where a line stands among those that share a queue. `place` moves by what is paid."""

    @property
    def place(self) -> float:
        """The line with the least place is next."""


class Allowances(Protocol):
    """One calculation of what a claim may take from lines, with what a room has at that time."""

    def learn(self, lines: Sequence[Line]) -> None:
        """Look up together what allowances of lines that share a queue need."""

    def of(self, line: Line) -> Allowance | None:
        """What there is for a line; None if the room has nothing to do with its jobs."""

    def turn(self, line: Line) -> Turn | None:
        """Where a line stands; None if the room gives it no turns."""


class Hold(LineHold, Protocol[W_contra]):
    """Keeps waiting jobs in lines (`zq.tick.lines`), and says from which of them claims may take.

    A hold remembers between transactions what it needs. A transaction begins it, and then commits
    it or rolls it back. Moves of jobs are only noted, and written by `flush` before the claims of
    the transaction. While a hold is not used, moves, groups and claims pass it by.
    """

    is_retimed: bool
    """True if it has a deadline that was not known before this transaction."""

    def learn(self, tx: Transaction) -> None:
        """Read the store, before the first transaction."""

    def begin(self, tx: Transaction, now: int) -> None:
        """Serve a transaction at a steady time in milliseconds."""

    def serve(self, tx: Transaction) -> None:
        """Continue in a part of the transaction, or after a part that was kept."""

    def commit(self) -> None:
        """Note that the transaction is committed."""

    def roll_back(self) -> None:
        """Note that the transaction has failed."""

    def forget(self) -> None:
        """Forget everything: the next transaction reads it again."""

    def recall(self) -> None:
        """Read again what an undone part may have changed."""

    def refuse_new(
        self, jobs: Sequence[NewJob], maker: BudgetMaker | None, place: str
    ) -> Unprocessable | None:
        """Why new jobs cannot be stored. A message names one of several by its `place`."""

    def admit_new(self, work: W_contra, jobs: Sequence[NewJob], maker: BudgetMaker | None) -> None:
        """Create what new jobs bring along for themselves."""

    def refuse_return(self, jobs: Sequence[JobRecord | NewJob]) -> Unprocessable | None:
        """Why finished jobs cannot come back."""

    def bring(self, job: NewJob, status: Status) -> None:
        """Note a new job that it holds."""

    def spend(self, job: Brief, used: Mapping[str, int]) -> None:
        """Note what a job that has succeeded has used, by name, instead of what it was given."""

    def review(self, queue: str) -> None:
        """Note that a queue has other settings, so that lines may open that it has shut."""

    def mend(self) -> None:
        """Note that jobs were set aside of which nothing is known."""

    def flush(self) -> set[str]:
        """Open lines for what was noted. Return the queues with jobs that claims may have now."""

    def store(self) -> None:
        """Write what has changed, once for all claims of the transaction."""

    def pass_on(self) -> bool:
        """Open other lines in the place of those that have just been shut for another reason.

        Return whether there are any.
        """

    def allowances(self, work: W_contra) -> Allowances:
        """Begin to calculate what a claim may take."""


class Hooks(msgspec.Struct, Generic[W], frozen=True):
    """The hooks of one room. It leaves out what it does not need."""

    moves: Mapping[Move, Callable[[W, Jobs, Jobs | None], None]] = {}
    """Called with all jobs of a move, before their rows change or are deleted. If they come to
    different queues or states, the last argument has them as they are then."""
    moves_with_extras: Mapping[Move, Callable[[W, Jobs, Jobs | None], None]] = {}
    """Called in the same way, with those jobs that came with extras. Most jobs have none."""
    failed: Callable[[W, Sequence[FailedAttempt]], None] | None = None
    """Called with attempts that have failed, before the rows of their jobs change."""
    signature: Callable[[Failure], str] | None = None
    """Names the group of a failure. One room may have it."""
    removed: Callable[[W, Sequence[Brief]], None] | None = None
    """Called with jobs that are deleted and have a payload, a batch or a group."""
    lost: Callable[[W, Sequence[int]], None] | None = None
    """Called with the keys of jobs that were set aside because they cannot be read."""
    cleared: Callable[[W, bool], None] | None = None
    """Called when all jobs are deleted. The flag is True if all settings are deleted with them."""
    sliced: Callable[[W, SliceMark, int], None] | None = None
    """Called with the mark of a slice, and how many jobs it has changed."""
    due: Mapping[Due, Callable[[W], None]] = {}
    """Called when a deadline of the room's own is over."""
    fan_out: FanOut[W] | None = None
    """Stores the jobs of queues with targets. One room may have it."""
    hold: Hold[W] | None = None
    """Keeps waiting jobs in lines."""
    keyed: Callable[[W, Enqueue], Sliced[Enqueue]] | None = None
    """Gives new jobs the fair keys that their queues take from a field. One room may have it."""
    payload_rules: Callable[[W, Collection[str]], PayloadRules | None] | None = None
    """The rules of some queues for payloads; None if they have none. One room may have it."""
    admits: Callable[[W, Enqueue], ZqError | None] | None = None
    """Called with new jobs of which some have options. Says why they cannot be stored, if so."""
    leaving: Callable[[Transaction], QueuePatterns] | None = None
    """Reads which queues leave for other servers. One room may have it."""
    bounds: Callable[[W], BoundTable | None] | None = None
    """Makes the bounds on what waits, if there are some and queues leave. One room may have it."""
    folds: Callable[[W, Sequence[Enqueue]], FoldTable] | None = None
    """Makes the table of folds if some of a tick's commands have plans. One room may have it."""
    undone: Callable[[], None] | None = None
    """Called when a transaction, or a part of it, is not kept."""


class HookTable(Generic[W]):
    """The hooks of all rooms, each kind in the order of the list of rooms."""

    def __init__(self, rooms: Iterable[Hooks[W]]) -> None:
        """Raises ValueError if two rooms have a hook that only one may have."""
        some = list(rooms)
        self.moves = _by_kind(Move, (room.moves for room in some))
        self.moves_with_extras = _by_kind(Move, (room.moves_with_extras for room in some))
        self.failed = _present(room.failed for room in some)
        self.removed = _present(room.removed for room in some)
        self.lost = _present(room.lost for room in some)
        self.cleared = _present(room.cleared for room in some)
        self.sliced = _present(room.sliced for room in some)
        self.due = _by_kind(Due, (room.due for room in some))
        self.holds = _present(room.hold for room in some)
        self.lines = Lines(self.holds)
        self.signature = _only(room.signature for room in some)
        self.fan_out = _only(room.fan_out for room in some)
        self.keyed = _only(room.keyed for room in some)
        self.folds = _only(room.folds for room in some)
        self.bounds = _only(room.bounds for room in some)
        self.undone = _present(room.undone for room in some)
        self.payload_rules = _only(room.payload_rules for room in some)
        self.admits = _present(room.admits for room in some)
        self._leaving = _only(room.leaving for room in some)

    def leaving(self, tx: Transaction) -> QueuePatterns:
        """The queues that leave for other servers, as the store has them."""
        return NO_QUEUES if self._leaving is None else self._leaving(tx)


def _present(hooks: Iterable[H | None]) -> tuple[H, ...]:
    return tuple([hook for hook in hooks if hook is not None])


def _by_kind(kinds: Iterable[K], rooms: Iterable[Mapping[K, H]]) -> dict[K, tuple[H, ...]]:
    found: dict[K, list[H]] = {kind: [] for kind in kinds}
    for hooks in rooms:
        for kind, hook in hooks.items():
            found[kind].append(hook)
    return {kind: tuple(hooks) for kind, hooks in found.items()}


def _only(hooks: Iterable[H | None]) -> H | None:
    found = _present(hooks)
    if len(found) > 1:
        raise ValueError(f"two rooms have one hook: {found}")
    return found[0] if found else None
