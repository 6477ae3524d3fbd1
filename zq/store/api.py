"""What a store can do, whichever it is: the tick and what stands above it know no more of one."""

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

import msgspec

from zq.model.budgets import BudgetState
from zq.model.commands import Deadlines, Tick, TickResult
from zq.model.damage import Misfit, Quarantined
from zq.model.filters import Filter
from zq.model.ids import FormerSuffix
from zq.model.job import Brief, ErrorRecord, JobRecord
from zq.model.lifecycle import Status
from zq.model.outcome import Ending
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.model.windows import FoundJob, JobSearch, ListsView, Sight
from zq.store.cron import CronReads

T = TypeVar("T")

PAGE_BYTES = 16 * 1024 * 1024
"""Bytes of payloads and results in one page of a listing, which may end before its limit and then
has a `next`."""


BYTES_A_ROW = 1024
"""Bytes that lie beside which count as one row changed, where checkpoints are planned by rows."""


Sliced = Generator[Callable[[], Any] | None, Any, T]
"""A transaction in slices. It yields None where others may have a turn, or a function that takes
long and cannot be cut: that runs in the connection's thread, and its result is sent back."""


class LongCommit(partial[object]):
    """What makes a transaction visible, where it takes long."""


def exhaust(sliced: Sliced[T]) -> T:
    """Run all slices in one go; the result."""
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


class Reads(Protocol):
    """What may be read. Each method sees one moment, and nothing that is not on the disk.

    A read that takes long raises `ReadTimeout`; where many long ones wait, the next one raises
    `ReadersBusy`. Rows that cannot be read are set aside, and the rest is answered.
    """

    async def job(self, key: int, reach: Reach, now: int) -> JobRecord | None:
        """One job with its payload and result, if it is within reach and its retention lasts."""

    async def row(self, key: int, reach: Reach, now: int) -> JobRecord | None:
        """The same job without a large payload or result."""

    async def owner(self, lock: str, reach: Reach, now: int) -> JobRecord | None:
        """The job that owns a unique key, named by its lock, with its payload and result."""

    async def open_hosts(
        self, batch_keys: Sequence[str], now: int
    ) -> dict[str, tuple[int, JobRecord] | None]:
        """The revision of each batch and its open host with its payload, or None: there is none.

        Those whose payloads go beyond `PAGE_BYTES` together with the ones before are left out.
        """

    async def ending(self, key: int, reach: Reach, now: int) -> Ending | None:
        """How a job came out, or is doing; None where `job` is None."""

    async def jobs_page(
        self, filter: Filter, after: int, descending: bool, limit: int, now: int, skip: int = 0
    ) -> list[JobRecord]:
        """Up to `limit` jobs beyond `after` with their payloads; fewer beyond `PAGE_BYTES`.

        The first `skip` of them are left out.
        """

    async def count(self, filter: Filter, now: int) -> int:
        """How many jobs match. `counts` is much faster for the filters that it can answer."""

    async def counts(self, now: int) -> Counter[tuple[str, Status]]:
        """How many jobs each queue has in each status, without those whose retention is over."""

    async def oldest_ready(self, queues: Sequence[str]) -> dict[str, int]:
        """When the longest waiting ready job of each queue became ready, where there is one."""

    async def key_range(self) -> tuple[int, int]:
        """The lowest and the highest key of a stored job; 0 where there is none."""

    async def keys(self, filter: Filter, after: int, upto: int, limit: int) -> list[int]:
        """Up to `limit` keys of matching jobs with ``after < key <= upto``, for a sweep.

        Jobs whose retention is over are among them.
        """

    async def swept_jobs(self, filter: Filter, after: int, limit: int) -> list[JobRecord]:
        """Up to `limit` jobs beyond `after` with their payloads, for a sweep.

        Jobs whose retention is over are among them.
        """

    async def sight(self, view: ListsView) -> Sight:
        """What a view of the unfinished jobs shows."""

    async def search(self, wanted: JobSearch) -> FoundJob:
        """The next job of a list that matches, with the window around it."""

    async def settings(self, queue: str) -> QueueSettings:
        """What is set for a queue."""

    async def all_settings(self) -> dict[str, QueueSettings]:
        """What is set for queues, by queue."""

    async def last_errors(self, keys: Sequence[int]) -> dict[int, str]:
        """The message of the latest failure of each job that has one."""

    async def budgets(self, key: str | None, now: int) -> list[BudgetState]:
        """All budgets in the order of their keys, or the one of a key, if it is there."""

    async def payloads(self, keys: Sequence[int]) -> dict[int, str]:
        """Large payloads of jobs that are being delivered; jobs that are gone are missing."""

    async def results(self, keys: Sequence[int]) -> dict[int, str]:
        """Large results by key; jobs that are gone are missing."""

    async def errors_page(
        self, key: int, after: int, descending: bool, limit: int
    ) -> tuple[list[ErrorRecord], bool]:
        """Up to `limit` failures of a job beyond the attempt `after`, and whether more follow.

        It has fewer where their texts are large.
        """

    async def history_page(
        self,
        after: int | None,
        upto: int,
        limit: int,
        decode: Callable[[int, str, list[msgspec.Raw]], list[T]],
    ) -> tuple[int, list[T]]:
        """The oldest number kept, and up to `limit` records with ``after < seq <= upto``.

        After None, they begin with the oldest one. `decode` makes records of one batch: its first
        number, what its records share, and the records. It runs beside the event loop, for a page
        takes a while. Raises `RecordsGone` or `CursorAhead`.
        """


class Store(Protocol):
    """One open store."""

    reads: Reads
    crons: CronReads
    slot: int
    """Which of the servers over one store this one is; ids and holders carry it."""
    id_suffix: str
    """The part of ids that tells this store's from others'."""
    former_suffixes: Sequence[FormerSuffix]
    """Those of the ids from before the store was restored, the oldest first."""
    epoch: str
    """Names the history; it is another one in another data directory."""
    last_key: int
    """The highest key that was ever given out when the store was opened."""
    logged: int
    """The last record of the history when the store was opened."""
    returned: int
    """Jobs that streams had held when the server stopped, which wait again."""
    claimed: int
    """Jobs that claimants held when the store was opened, and hold still."""
    deadlines: Deadlines
    next_firing: int | None
    """When the first of the cron entries is due, in milliseconds, as the store was opened."""
    quarantined: Quarantined
    when_unreadable: Callable[[str, Sequence[object]], Awaitable[object]]
    """Called with a table and the keys of rows among which some cannot be read."""
    uncopied_bytes: int
    """What the last checkpoint had to leave: the database may grow by as much."""
    wants_checkpoint: bool
    """Whether a checkpoint is worth while."""
    wal_is_over: bool
    """Whether the log of changes was over its limit still after the last checkpoint."""

    @property
    def flushed_by(self) -> str:
        """How commits get to the disk."""

    async def tick(self, tick: Tick) -> TickResult:
        """Run one tick and, if it is durable, wait until the disk has it.

        Raises `StoreError` where it came to nothing, and `StoreFailed` where it may be stored
        although nobody is answered.
        """

    def check_files(self) -> None:
        """Raise `FilesMoved` where what was committed lies in a file that has lost its name."""

    async def checkpoint(self, *, shrink: bool = False) -> None:
        """Copy what the log of changes holds into the database; with `shrink`, empty it too."""

    async def tidy(self, *, spare: bool = True) -> bool:
        """Give a slice of free space back. True where there is more to give.

        To `spare` means to keep what the next burst will need.
        """

    async def ping(self) -> None:
        """Until a tick under way is done: the watchdog's sign of life."""

    async def backup(self, least_free: int) -> BinaryIO:
        """A copy of all that is stored at one moment, beside ticks that go on; it has no name.

        It is closed by whoever asked for it, and takes space until then. What a start finds in it
        is what a crash at that moment would have left. Raises `StoreFull` rather than leave less
        than `least_free` bytes, OSError where no file can be made, or `StoreError`.
        """

    def wal_bytes(self) -> int:
        """Size of the log of changes."""

    def database_bytes(self) -> int:
        """Size of the database without the log."""

    def free_bytes(self) -> int:
        """Space left for the store."""

    async def close(self) -> None:
        """Checkpoint, close, and release what others may open then.

        Raises `StoreError` where the disk fails; all is closed then, and what was committed is
        found at the next start. Raises `FilesMoved` where it is not.
        """

    async def abandon(self) -> None:
        """Close without writing anything more: what is left to do after the disk has failed."""


class SetAsideJob(NamedTuple):
    """What a transaction has to know of a job that was set aside, for it cannot be read."""

    key: int
    holder: int | None
    group: tuple[str, str] | None
    """Its queue and its group, where it has one."""


class Transaction(Protocol):
    """One transaction: statements by name, which every store has, and never the text of one.

    Lists, tuples and mappings among the parameters are passed on as JSON. A method raises
    `StoreError` or one of its kinds where the store fails. Jobs that cannot be read are set aside,
    and what is found without them is answered.
    """

    rows: int
    """Rows inserted, updated or deleted so far."""
    misfits: list[Misfit]
    """Rows that were set aside."""
    removed: list[SetAsideJob]
    """The jobs among them."""

    @property
    def is_open(self) -> bool:
        """Whether it has begun and not ended."""

    def begin(self) -> Callable[[], object] | None:
        """Begin; or a function that waits until that can be, for the connection's thread."""

    def commit(self) -> object:
        """Make visible what was done."""

    def roll_back(self) -> None:
        """Undo what was done, unless a failure has ended the transaction already."""

    def part(self) -> "Transaction":
        """Begin a part that is kept or undone on its own, with findings of its own."""

    def keep(self) -> None:
        """End a part, and keep it."""

    def undo(self) -> None:
        """End a part, and undo it."""

    def run(self, name: str, **parameters: object) -> int:
        """Run a statement that answers nothing; the number of rows that it changed."""

    def value(self, name: str, **parameters: object) -> Any:
        """The one value that a statement answers; None where there is none."""

    def rows_of(self, name: str, **parameters: object) -> list[tuple[Any, ...]]:
        """All rows that a statement answers; they are to be few."""

    def table(self, name: str, **parameters: object) -> list[list[Any]]:
        """The rows that a statement answers as one JSON value."""

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
        """The jobs that own some unique keys, named by their locks."""

    def hosts(self, batch_keys: Sequence[str]) -> tuple[dict[int, int], list[JobRecord]]:
        """The revisions of some batches by their hosts, and what is there of these hosts."""

    def matching(self, keys: Sequence[int], filter: Filter) -> list[int]:
        """Those of the keys whose jobs match a filter."""

    def first_of(
        self, free: Sequence[str], bounds: Mapping[str, int], limit: int
    ) -> list[JobRecord]:
        """The first ready jobs of some queues, and of others of which only so many count."""

    def first_in_lines(self, most: Mapping[int, int], limit: int) -> list[JobRecord]:
        """The first jobs of some lines, of each of which only so many count."""

    def insert(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows by a few statements of many rows each."""

    def insert_by_slices(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]]
    ) -> Sliced[None]:
        """The same, with a pause after each statement of many rows."""

    def insert_large(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows that may hold large texts."""

    def insert_large_by_slices(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]]
    ) -> Sliced[None]:
        """The same, with a pause after each statement."""

    def count(self, deltas: Sequence[tuple[str, Status, int]]) -> None:
        """Change the kept counts of jobs by queue and status."""

    def settings(self) -> dict[str, QueueSettings]:
        """What is set for queues. It may be asked for outside of a transaction."""

    def deadlines(self) -> Deadlines:
        """When something falls due next."""

    def version(self) -> int:
        """A number that is another one once another program has changed what is stored."""

    def set_aside(self, source: str, keys: Iterable[Any]) -> None:
        """Set those of the rows of a table aside that cannot be read."""


Transactions = Callable[[int], Transaction]
"""Makes a transaction that is to begin, at a wall time in milliseconds."""

Ticks = Callable[[Tick], Sliced[TickResult]]
"""Runs a tick as one transaction, in slices."""

MakeTicks = Callable[[Transactions, int], Ticks]
"""Makes what runs the ticks of a store, which is given the highest key that it ever gave out."""
