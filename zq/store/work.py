"""What one transaction has in hand while it runs: the connection, the time, and its findings."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, TypeVar

import msgspec

from zq.model.commands import Deadlines, Due, Tally, Traffic
from zq.model.damage import Misfit
from zq.model.events import EventType, News, Subject
from zq.model.job import INLINE_PAYLOAD, Job, NewJob, Options
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.model.settings import QueueSettings
from zq.model.settling import Policy
from zq.model.unique import Scope
from zq.store.frontier import Frontier
from zq.store.quarantine import is_unreadable, keys_query, set_aside, set_aside_jobs
from zq.store.queries import load
from zq.store.rulebook import Rulebook
from zq.store.slices import Sliced, exhaust

QUERIES = load("tick.sql")

LARGEST_INSERT = 512
"""Rows in one INSERT: 500 rows of 12 columns stay far below SQLite's 32,766 parameters."""

LARGEST_BYTES = 512 * 1024
"""Bytes of large texts in one INSERT. A statement that stays prepared keeps what it was given last,
also when the rows are long gone; by this and by few sizes, that is little."""

FEW_COUNTS = 4
"""Counts that are written one by one: for so few, it costs a third of what JSON does."""

NOBODY: Mapping[int, str] = {}

BYTES_A_ROW = 1024
"""Bytes that lie beside which count as one row changed, where checkpoints are planned by rows."""


class Brief(msgspec.Struct, array_like=True, gc=False):
    """The few columns of a job that ending or returning it needs."""

    key: int
    queue: str
    holder: int | None
    status: Status = Status.IN_FLIGHT
    attempts: int = 0
    options: Options | None = None
    unique_while: Scope | None = None
    payload_size: int = 0
    result_size: int | None = None
    group: str | None = None
    unique_key: str | None = None


_briefs = msgspec.json.Decoder(list[Brief])
_jobs = msgspec.json.Decoder(list[Job])
_pairs = msgspec.json.Decoder(list[tuple[int, str]])
_keys = msgspec.json.Decoder(list[int])

T = TypeVar("T")


class Work:
    """One transaction under way. The phases of the tick write here what memory must learn."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        now: int,
        steady: int,
        rulebook: Rulebook,
        random: Random,
        device: str | None = None,
        workers: Mapping[int, str] = NOBODY,
    ) -> None:
        """`device` is whose history is kept, None where none is; `workers` are by their holders."""
        self.now = now
        self.steady = steady
        self.rulebook = rulebook
        self.random = random
        self.counts: Counter[tuple[str, Status]] = Counter()
        self.moved: set[Status] = set()
        self.ended: list[tuple[int, int]] = []
        self.cancelled: list[int] = []
        self.revoked: list[int] = []
        self.lapsed: list[int] = []
        self.buried: dict[int, str] = {}
        self.expired: list[int] = []
        self.woken: set[str] = set()
        self.left: set[str] = set()
        """Queues of which claims have left jobs that they found: they took enough bytes."""
        self.device = device
        self.workers = workers
        self.logged = 0
        self.groups: set[tuple[str, str]] = set()
        self.retimed = False
        """Whether a lease or a job may fall due now sooner than was known."""
        self.frontiers: dict[Reach, Frontier] = {}
        self.spent: Counter[str] = Counter()
        self.mixed_groups: set[tuple[str, str]] = set()
        self.moves_deadlines = False
        """Whether something is to fall due that the moves of jobs do not tell of."""
        self.rows = 0
        self.highest_key = 0
        self.tally = Tally()
        self._traffic: Traffic | None = None
        self.news: list[News] = []
        self.misfits: list[Misfit] = []
        """Rows that were set aside, for they cannot be read."""
        self._connection = connection

    def absorb(self, other: "Work") -> None:
        """Take over the findings of a part of this transaction that was kept and counted."""
        self.rulebook = other.rulebook
        self.moved |= other.moved
        self.ended += other.ended
        self.cancelled += other.cancelled
        self.revoked += other.revoked
        self.lapsed += other.lapsed
        self.buried |= other.buried
        self.expired += other.expired
        self.retimed |= other.retimed
        self.woken |= other.woken
        self.logged = max(self.logged, other.logged)
        self.groups |= other.groups
        self.mixed_groups |= other.mixed_groups
        self.moves_deadlines |= other.moves_deadlines
        self.rows += other.rows
        self.tally.add(other.tally)
        if other._traffic is not None:
            self.traffic.add(other._traffic)
        self.news += other.news
        self.misfits += other.misfits
        self.highest_key = max(self.highest_key, other.highest_key)

    @property
    def traffic(self) -> Traffic:
        """What goes through queues. A transaction that only stores jobs has none."""
        if self._traffic is None:
            self._traffic = Traffic()
        return self._traffic

    @property
    def traffic_seen(self) -> Traffic | None:
        """The same, None where there is none."""
        return self._traffic

    def part(self) -> "Work":
        """A fresh record over the same transaction, to absorb or to drop."""
        return Work(
            self._connection,
            self.now,
            self.steady,
            self.rulebook,
            self.random,
            self.device,
            self.workers,
        )

    def settings_of(self, queue: str) -> QueueSettings:
        """What is set for a queue."""
        return self.rulebook.of(queue)

    def policy_of(self, queue: str) -> Policy:
        """What holds for jobs of a queue that set nothing themselves."""
        return self.rulebook.policy(queue)

    def execute(self, sql: str, parameters: dict[str, object] | Sequence[object] = ()) -> int:
        """Run a statement that answers nothing; the number of rows it changed."""
        changed = self._connection.execute(sql, parameters).rowcount
        self.rows += max(changed, 0)
        return changed

    def run(self, name: str, **parameters: object) -> int:
        """Run a named query that answers nothing; the number of rows it changed."""
        return self.execute(QUERIES[name], parameters)

    def value(self, sql: str, parameters: dict[str, object]) -> object:
        """The one value that a query answers."""
        row = self._connection.execute(sql, parameters).fetchone()
        return row[0] if row else None

    def rows_of(self, sql: str, parameters: dict[str, object]) -> list[tuple[Any, ...]]:
        """All rows that a statement answers; they are to be few."""
        return self._connection.execute(sql, parameters).fetchall()

    def briefs(self, name: str, keys: Iterable[int]) -> list[Brief]:
        """The briefs that a named query finds among the keys."""
        return self._readable(_briefs, QUERIES[name], {"keys": as_json(list(keys))})

    def jobs(self, sql: str, **parameters: object) -> list[Job]:
        """The jobs that a query finds, as one JSON value."""
        return self._readable(_jobs, sql, parameters)

    def keys(self, sql: str, **parameters: object) -> list[int]:
        """The keys that a query finds, as one JSON value."""
        return _keys.decode(self._text(sql, parameters))

    def names(self, sql: str, **parameters: object) -> list[str]:
        """The names that a query finds, as one JSON value."""
        return msgspec.json.decode(self._text(sql, parameters), type=list[str])

    def pairs(self, sql: str, **parameters: object) -> list[tuple[int, str]]:
        """The (key, queue) pairs that a query finds, as one JSON value."""
        return self._readable(_pairs, sql, parameters)

    def known_names(self, names: str) -> list[tuple[str, str, str, int]]:
        """The (queue, group, name, key) of those names of copies that are known."""
        text = self._text(QUERIES["read_names"], {"names": names, "now": self.now})
        return msgspec.json.decode(text, type=list[tuple[str, str, str, int]])

    def insert(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows by a few statements of many rows each.

        Bound values beat one JSON parameter (2.7 against 4.4 µs a row of 8 columns, no escaping)
        and `executemany` (one hand-over of the GIL a statement, not a row).
        """
        exhaust(self.insert_by_slices(table, columns, rows))

    def insert_by_slices(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]]
    ) -> Sliced[None]:
        """The same, with a pause after each statement of many rows."""
        start = 0
        while start < len(rows):
            size = batch_size(len(rows) - start)
            values = [value for row in rows[start : start + size] for value in row]
            self.execute(_insert_sql(table, columns, size), values)
            start += size
            if size == LARGEST_INSERT:
                yield None

    def insert_large(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows that may hold large texts, in one go."""
        exhaust(self.insert_large_by_slices(table, columns, rows))

    def insert_large_by_slices(
        self, table: str, columns: str, rows: Sequence[tuple[object, ...]]
    ) -> Sliced[None]:
        """The same: as many rows at a time as make `LARGEST_BYTES`, then a pause."""
        start = 0
        while start < len(rows):
            size = _large_size(rows, start)
            self.insert(table, columns, rows[start : start + size])
            start += size
            yield None

    def touch_group(self, queue: str, group: str | None) -> None:
        """Say that a job of a group (None: of none) has come to a queue, left it, or ended.

        Whatever changes which job is the group's head has to say so: see `zq.store.groups`.
        """
        if group is not None:
            self.groups.add((queue, group))
            self.mixed_groups.add((queue, group))

    def touch_groups(self, jobs: Iterable[Brief | Job]) -> None:
        """The same of many jobs, each in its queue."""
        for job in jobs:
            self.touch_group(job.queue, job.group)

    def open_groups(self, jobs: Iterable[Brief | Job | NewJob]) -> None:
        """The same where jobs have only ended, or come behind all others: no head gives way."""
        self.groups.update([(job.queue, job.group) for job in jobs if job.group is not None])

    def remove(self, briefs: Sequence[Brief]) -> Counter[tuple[str, Status]]:
        """Delete jobs with all that belongs to them; how many of each queue and status."""
        if not briefs:
            return Counter()
        self.run("delete_jobs", keys=as_json([job.key for job in briefs]))
        # A usual job in flight was told without this: nothing lies beside it.
        unusual = [job for job in briefs if job.payload_size]
        if beside := [job.key for job in unusual if job.payload_size > INLINE_PAYLOAD]:
            self.run("delete_payloads", keys=as_json(beside))
        if results := [job.key for job in unusual if (job.result_size or 0) > INLINE_PAYLOAD]:
            self.run("delete_results", keys=as_json(results))
        if failed := [job.key for job in unusual if job.attempts]:
            self.run("delete_errors", keys=as_json(failed))
        self.open_groups(unusual)
        removed = Counter([(job.queue, job.status) for job in briefs])
        for (queue, status), n in removed.items():
            self.counts[queue, status] -= n
        self.end(briefs)
        return removed

    def end(self, jobs: Iterable[Brief | Job]) -> None:
        """Note that nobody holds these jobs any more."""
        self.ended += [(job.holder, job.key) for job in jobs if job.holder is not None]

    def revoke(self, jobs: Iterable[Brief | Job]) -> None:
        """Note that jobs were taken from those who hold them; `end` says it too."""
        self.revoked += [job.key for job in jobs if job.holder is not None]

    def move(self, queues: Sequence[str], old: Status, new: Status) -> Counter[str]:
        """Count jobs, each by its queue, that changed their status; how many of each queue."""
        moved = Counter(queues)
        for queue, n in moved.items():
            self.counts[queue, old] -= n
            self.counts[queue, new] += n
        return moved

    def tell(self, type: EventType, jobs: Sequence[Subject]) -> None:
        """Let listeners know what has happened to jobs; no `attempts` may change afterwards."""
        if jobs:
            self.news.append((type, jobs))

    def deadlines(self) -> Deadlines:
        """When something falls due next."""
        return read_deadlines(self._connection)

    def write_counts(self) -> None:
        """Bring `queue_counts` up to date, and note which states jobs have come to or left."""
        deltas = [(queue, status, n) for (queue, status), n in self.counts.items() if n]
        if len(deltas) > FEW_COUNTS:
            self.run("count", deltas=as_json(deltas))
        else:
            for queue, status, n in deltas:
                row: dict[str, object] = {"queue": queue, "status": int(status), "n": n}
                if not self.execute(QUERIES["count_more"], row):
                    self.execute(QUERIES["count_first"], row)
        if limited := self.rulebook.limited:
            freed = [q for q, s, n in deltas if s is Status.IN_FLIGHT and n < 0 and q in limited]
            self.woken.update(freed)
        self.moved.update([status for _, status in self.counts])
        self.counts.clear()

    def set_aside(self, source: str, keys: Iterable[Any]) -> None:
        """Set those of the rows of a table aside that cannot be read."""
        if source != "jobs":
            self.misfits += set_aside(self._connection, source, keys, self.now)
            return
        for gone in set_aside_jobs(self._connection, keys, self.now):
            self.misfits.append(gone.misfit)
            self.rows += 2
            self.moves_deadlines = True
            if gone.holder is not None:
                self.ended.append((gone.holder, gone.key))
                self.revoked.append(gone.key)
            if gone.group is not None:
                self.touch_group(*gone.group)

    def _readable(
        self, decoder: msgspec.json.Decoder[T], sql: str, parameters: dict[str, object]
    ) -> T:
        """What a query about jobs finds; where some cannot be read, what it finds without them."""
        while True:
            try:
                return decoder.decode(self._text(sql, parameters))
            except Exception as error:
                known = len(self.misfits)
                if is_unreadable(error):
                    self.set_aside("jobs", self.keys(keys_query(sql), **parameters))
                if len(self.misfits) == known:
                    raise

    def _text(self, sql: str, parameters: dict[str, object]) -> str:
        text = self.value(sql, parameters)
        assert isinstance(text, str)
        return text


def read_deadlines(connection: sqlite3.Connection) -> Deadlines:
    """When something falls due next."""
    times = connection.execute(QUERIES["deadlines"]).fetchone()
    return {due: time for due, time in zip(Due, times, strict=True) if time is not None}


def brief_of(job: Job) -> Brief:
    """What ending a job needs to know of it."""
    return Brief(
        key=job.key,
        queue=job.queue,
        status=job.status,
        attempts=job.attempts,
        holder=job.holder,
        options=job.options,
        unique_while=job.unique_while,
        payload_size=job.payload_size,
        result_size=job.result_size,
        group=job.group,
        unique_key=job.unique_key,
    )


def as_json(value: object) -> str:
    """A value as the text that `json_each` reads."""
    return msgspec.json.encode(value).decode()


def batch_size(left: int) -> int:
    """How many of those that are left one statement takes."""
    # Whole powers of two above 64, any size below: few statements, few texts to prepare and cache.
    if left <= 64:
        return left
    return min(1 << (left.bit_length() - 1), LARGEST_INSERT)


def _large_size(rows: Sequence[tuple[object, ...]], start: int) -> int:
    """How many rows go together from `start` on; one however large."""
    weight = size = 0
    for row in rows[start : start + LARGEST_INSERT]:
        weight += sum([len(value) for value in row if isinstance(value, str)])
        if weight > LARGEST_BYTES:
            break
        size += 1
    return batch_size(max(size, 1))


@lru_cache(maxsize=512)
def _insert_sql(table: str, columns: str, size: int) -> str:
    row = "(" + ",".join("?" * (columns.count(",") + 1)) + ")"
    return f"INSERT INTO {table} ({columns}) VALUES " + ",".join([row] * size)
