"""The interface of every store. The tick and the layers above it know nothing else of a store."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

import msgspec

from zq.model.clock import SteadyClock
from zq.model.commands import Deadlines, Tick, TickResult
from zq.model.effects import Effects, Misfit, Quarantined
from zq.model.filters import Filter
from zq.model.ids import FormerSuffix
from zq.model.job import Brief, JobRecord
from zq.model.leasing import DiedStream
from zq.model.lifecycle import Status
from zq.model.settings import QueueSettings
from zq.store.errors import StoreBusy
from zq.store.reads import Reads

T = TypeVar("T")


BYTES_A_ROW = 1024
"""Checkpoints are planned by changed rows. So many bytes outside a row count as one row more."""


Sliced = Generator[Callable[[], Any] | None, Any, T]
"""A transaction in slices. It yields None when other tasks may run. It yields a function if a step
is long and cannot be cut: that runs in the connection's thread, and its result is sent back."""

SCARCE = 16
"""Space is scarce if less than so many times the reserve of the disk is free."""


class LongCommit(partial[object]):
    """A function that makes a transaction visible and takes long."""


def exhaust(sliced: Sliced[T]) -> T:
    """Run all slices in one go. Return the result."""
    send, value = sliced.send, None
    try:
        while True:
            long = send(value)
            send, value = sliced.send, None
            if long is not None:
                try:
                    value = long()
                except BaseException as error:
                    send, value = sliced.throw, error
    except StopIteration as end:
        result: T = end.value
        return result


def as_json(value: object) -> str:
    """A value as the text of a column that holds JSON."""
    return msgspec.json.encode(value).decode()


class Bloat(NamedTuple):
    """The old versions of rows in a store that keeps them, and who keeps it from removing them."""

    dead_rows: int = 0
    snapshot_s: float = 0.0
    """The age of the oldest moment at which somebody still reads, in seconds."""
    holder: str = ""
    """Who reads there."""


class OthersNews(msgspec.Struct):
    """What a server learns from time to time of others that share its store.

    Whatever is not named here may have changed as well.
    """

    ended: list[tuple[int, int]] = []
    """Leases of this server that others have ended, as (holder, key)."""
    revoked: list[int] = []
    """The keys of jobs whose leases ended since they were cancelled or deleted."""
    lapsed: list[int] = []
    """The keys of jobs whose leases ended since they were past their deadlines."""
    deadlines: Deadlines | None = None
    """When something falls due next."""
    found: Mapping[str, Any] = {}
    """The findings of rooms, as at a start."""
    woken: Sequence[str] | None = None
    """The queues that may have ready jobs; None if these may be any."""
    logged: int = 0
    """The last record of the history."""
    is_round: bool = False
    """True from time to time, when everybody is to look again who waits for anything."""


class FoundAtStart(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of the moment when a store was opened."""

    epoch: str
    """Names the history. Every data directory has another epoch."""
    id_suffix: str
    """The end of this store's ids, which distinguishes them from those of other stores."""
    former_suffixes: Sequence[FormerSuffix]
    """The suffixes of ids from before the store was restored, the oldest first."""
    last_key: int
    """The highest key that had ever been given out."""
    returned: int
    """How many jobs were returned: streams had held them when the server stopped."""
    claimed: int
    """How many jobs claimants held, under leases that last. They still hold them."""
    died: Sequence[DiedStream]
    """The streams that have died with the last process. The first tick returns their jobs, and
    counts the stalls."""
    last_holder: int
    """The highest of their numbers; new streams get higher ones."""
    deadlines: Deadlines
    logged: int
    """The last record of the history."""
    found: Mapping[str, Any]
    """The findings of rooms, such as the `next_firing` of an entry of cron."""
    steady: SteadyClock


class Store(Protocol):
    """One open store."""

    reads: Reads
    slot: int
    """The slot of this server among the servers over one store. Ids and holders carry it."""
    slots: int
    """How many slots there are: 1 if no other server can have the store at the same time."""
    at_start: FoundAtStart
    logged: int
    """The last record of the history when the store was opened, or when other servers that share it
    were heard of last."""
    steady: SteadyClock
    """The time for durations. It goes on from where it was at the last stop."""
    quarantined: Quarantined
    when_unreadable: Callable[[str, Sequence[object]], Awaitable[object]]
    """Called with a table and the keys of rows. Some of these rows cannot be read."""
    when_others: Callable[[OthersNews], object]
    """Called in the event loop when other servers may have changed something."""
    when_away: Callable[[StoreBusy], bool]
    """Called in the event loop, about once a second, while a tick under way waits for a database
    that does not answer. If it returns True, that tick fails soon."""
    when_rested: Callable[[], object]
    """Called when a connection was closed that nobody has read from lately: memory is free then."""
    uncopied_bytes: int
    """The bytes that the last checkpoint left in the log: the database may grow by as many."""
    wants_checkpoint: bool
    """True if a checkpoint is worth its cost."""
    wal_is_over: bool
    """True if the log of changes was still over its limit after the last checkpoint."""

    @property
    def flushed_by(self) -> str:
        """How commits reach the disk."""

    async def tick(self, tick: Tick) -> TickResult:
        """Run one tick. If it is durable, wait until it is on the disk.

        Raises `StoreError` if the tick failed and changed nothing, such as `StoreBusy` if another
        program holds the lock. Raises `StoreFailed` if its changes may be stored although no
        command gets an answer.
        """

    async def sync(self) -> None:
        """Bring to the disk what ticks have answered before their flush. Raises `StoreFailed`."""

    async def check(self) -> None:
        """See, while nothing else is to be done, if what comes next can be stored.

        Raises `FilesMoved` if committed data is in a file that has lost its name, `Fenced` if
        another server has the store, or `StoreAway`.
        """

    async def checkpoint(self, *, shrink: bool = False) -> None:
        """Copy the log of changes into the database. With `shrink`, empty the log's file too."""

    async def tidy(self, *, spare: bool = True) -> bool:
        """Give a slice of free space back. Return True if more can be given back.

        With `spare`, the space that the next burst will need is kept. Raises `StoreFull`,
        `StoreBusy` if another program holds the lock, or, without `spare`, `NotOnThisStore`.
        """

    async def ping(self) -> None:
        """Return once a tick under way is done: a sign of life for the watchdog."""

    async def backup(self, least_free: int) -> BinaryIO:
        """Copy everything that is stored at one moment, while ticks go on. The file has no name.

        The caller closes it; it takes space until then. A server started on it would find the same
        as after a crash at that moment. Raises `StoreFull` if fewer than `least_free` bytes would
        be left, OSError if no file can be made, or `StoreError`.
        """

    def wal_bytes(self) -> int:
        """The size of the log of changes."""

    def database_bytes(self) -> int:
        """The size of the database without the log."""

    def free_bytes(self) -> int | None:
        """The free space for the store; None if it does not know its disk."""

    def bloat(self) -> Bloat | None:
        """The old versions of rows; None if the store keeps none."""

    @property
    def leads(self) -> bool:
        """True if this server does what one of those that share the store does for all."""

    def servers(self) -> int:
        """How many servers have the store now, as they were seen last: this one is included."""

    async def close(self) -> None:
        """Checkpoint, close, and release the directory.

        Raises `StoreError` if the disk fails: everything is closed then, and the next start finds
        all commits. Raises `FilesMoved` if the next start would not find them.
        """

    async def abandon(self) -> None:
        """Close without another write. Nothing else can be done after the disk has failed."""


class Recovery(NamedTuple):
    """What a store does at a start for a room, by statements of the tick: the room names them.

    A room has it as `RECOVERY` of its `store.py`.
    """

    begin: Sequence[str] = ()
    """Run in the transaction of a start, after jobs were given back."""
    returned: Sequence[str] = ()
    """Run with the `keys` of jobs that were given back, and wait in their lines again."""
    lost: Sequence[str] = ()
    """Run at a wall time `now` when rows were left out, so that what is kept about jobs is made and
    counted again."""
    found: Sequence[str] = ()
    """Their first values are told as what was found."""


class Line(msgspec.Struct, array_like=True, gc=False):
    """An open line: the jobs of a queue that wait, and that nothing tells apart but their ids."""

    id: int
    queue: str
    fair_key: str
    """'=' and the key by which its jobs share the queue, or nothing."""
    draws: str
    """What one of its jobs draws from budgets (JSON text), or nothing."""
    priority: int
    """The priority of its jobs, or what takes its place if they age: see `zq.model.aging`."""
    urgency: int
    """The priority by which it is compared now with jobs of all queues."""
    head: int
    """The key of its first job."""
    place: float = 0.0
    """The order among lines of its kind: by the head, or by the start tag of a share."""
    second: int | None = None
    """The key of its second job. Lines that share a queue have their places and their second jobs
    only where they are read for that."""


class SetAsideJob(NamedTuple):
    """The facts about a job that a transaction needs after the job was set aside as unreadable."""

    key: int
    holder: int | None
    group: tuple[str, str] | None
    """The queue and the group of a job that has a group."""


class Transaction(Protocol):
    """One transaction. It runs statements by name, which every store has, never by their text.

    Lists, tuples and mappings among the parameters are passed as JSON. A method raises `StoreError`
    or a subclass if the store fails. Unreadable jobs are set aside, and the answer has the rest.
    """

    is_alone: bool
    """True if no other server runs ticks over the same store."""
    rows: int
    """How many rows were inserted, updated or deleted so far."""
    misfits: list[Misfit]
    """The rows that were set aside."""
    removed: list[SetAsideJob]
    """The jobs among these rows."""

    @property
    def is_open(self) -> bool:
        """True if the transaction has begun and not ended."""

    def begin(self) -> None:
        """Begin. Raises `StoreBusy` at once if another program holds the lock for writing."""

    def commit(self, durable: bool = True) -> object:
        """Make the changes visible. If they are not `durable`, a later `sync` flushes them."""

    def roll_back(self) -> None:
        """Undo the changes, unless a failure has already ended the transaction."""

    def part(self) -> "Transaction":
        """Begin a part that is kept or undone by itself, with misfits of its own."""

    def keep(self) -> None:
        """End a part, and keep it."""

    def undo(self) -> None:
        """End a part, and undo it."""

    def run(self, name: str, **parameters: object) -> int:
        """Run a statement without an answer. Return the number of rows that it changed."""

    def write(self, name: str, expected: int | None = None, /, **parameters: object) -> None:
        """Run a statement of which nobody needs the answer now.

        If it fails, or changes another number of rows than `expected`, this raises `StoreError`, or
        a later method does, COMMIT at the latest: nothing is kept then.
        """

    def value(self, name: str, **parameters: object) -> Any:
        """The single value that a statement returns; None if it returns no row."""

    def rows_of(self, name: str, **parameters: object) -> list[tuple[Any, ...]]:
        """All rows that a statement returns. There must be few."""

    def table(self, name: str, **parameters: object) -> list[list[Any]]:
        """The rows that a statement returns as one JSON value."""

    def jobs(self, name: str, **parameters: object) -> list[JobRecord]:
        """The jobs that a statement finds."""

    def briefs(self, name: str, **parameters: object) -> list[Brief]:
        """The briefs of the jobs that a statement finds."""

    def pairs(self, name: str, **parameters: object) -> list[tuple[int, str]]:
        """The (key, queue) pairs that a statement finds."""

    def keys(self, name: str, **parameters: object) -> list[int]:
        """The keys that a statement finds."""

    def names(self, name: str, **parameters: object) -> list[str]:
        """The names that a statement finds."""

    def owners(self, locks: Sequence[str]) -> list[JobRecord]:
        """The jobs that own these unique keys. Locks name the keys."""

    def table_of(self, name: str, values: Sequence[str]) -> list[list[Any]]:
        """The rows that a statement finds by one of its NAMES, which stand for these texts."""

    def jobs_of(self, name: str, values: Sequence[str]) -> list[JobRecord]:
        """The jobs that a statement finds by one of its NAMES, which stand for these texts."""

    def matching(self, keys: Sequence[int], filter: Filter) -> list[int]:
        """The keys, among some, whose jobs match a filter."""

    def first_of(
        self, free: Sequence[str], bounds: Mapping[str, int], limit: int
    ) -> list[JobRecord]:
        """The first ready jobs of the `free` queues, and of other queues up to their `bounds`."""

    def open_lines(
        self, queues: Sequence[str] | None, agings: Sequence[int], limit: int, steady: int
    ) -> list[Line]:
        """The first open lines of some queues, or of all, in their order at a steady time.

        `agings` has all times, in milliseconds, by which lines age.
        """

    def replace(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows by a few statements, in the place of those that have their keys."""

    def shared_lines(self, queue: str, priority: int, limit: int) -> list[Line]:
        """The first open lines of a queue that share it, in the order of their places."""

    def insert(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows by a few statements of many rows each."""

    def insert_by_slices(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]]
    ) -> Sliced[None]:
        """Like `insert`, with a pause after each statement."""

    def insert_large(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows that may hold large texts."""

    def insert_large_by_slices(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]]
    ) -> Sliced[None]:
        """Like `insert_large`, with a pause after each statement."""

    def count(self, deltas: Sequence[tuple[str, Status, int]]) -> None:
        """Change the kept counts of jobs by queue and status."""

    def settings(self) -> dict[str, QueueSettings]:
        """The settings of queues. It may be called outside of a transaction."""

    def ask_deadlines(self) -> Callable[[], Deadlines]:
        """Ask when something falls due next after this transaction. COMMIT may come before the
        answer is looked at."""

    def spare(self) -> None:
        """Leave what lies beside deleted jobs: a page of it cannot be read, so none is changed."""

    def version(self) -> int:
        """A number that changes whenever another program has changed the database.

        Over a store that servers share, it changes when another one has noted that: see
        `note_memory`.
        """

    def note_memory(self) -> None:
        """Note that the transaction changes what ticks of other servers remember."""

    def tell(self, effects: Effects) -> None:
        """Tell other servers of the leases of theirs that the transaction has ended."""

    def set_aside(self, source: str, keys: Iterable[Any]) -> None:
        """Set aside the unreadable rows among these rows of a table."""

    def mend(self) -> None:
        """Set aside rows that no command can be served with, and make anew what is kept about jobs.

        It is a transaction of its own, after one that has failed. `misfits` says what it has found.
        """


Transactions = Callable[[int], Transaction]
"""Makes a transaction that begins at a wall time in milliseconds."""

Ticks = Callable[[Tick], Sliced[TickResult]]
"""Runs a tick as one transaction, in slices."""

MakeTicks = Callable[[Transactions, int], Ticks]
"""Makes the function that runs a store's ticks, from the highest key that was ever given out."""
