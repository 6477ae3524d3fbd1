"""What one transaction has in hand while it runs: the connection, the time, and its findings."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from random import Random

import msgspec

from zq.model.commands import Deadlines, Due, Tally
from zq.model.job import INLINE_PAYLOAD, Job, Options
from zq.model.lifecycle import Status
from zq.model.settling import Policy
from zq.model.unique import Scope
from zq.store.queries import load

QUERIES = load("tick.sql")

LARGEST_INSERT = 512
"""Rows in one INSERT: 500 rows of 12 columns stay far below SQLite's 32,766 parameters."""


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


_briefs = msgspec.json.Decoder(list[Brief])
_jobs = msgspec.json.Decoder(list[Job])
_keys = msgspec.json.Decoder(list[int])


class Work:
    """One transaction under way. The phases of the tick write here what memory must learn."""

    def __init__(
        self, connection: sqlite3.Connection, now: int, policy: Policy, random: Random
    ) -> None:
        self.now = now
        self.policy = policy
        self.random = random
        self.counts: Counter[tuple[str, Status]] = Counter()
        self.moved: set[Status] = set()
        self.ended: list[tuple[int, int]] = []
        self.cancelled: list[int] = []
        self.woken: set[str] = set()
        self.rows = 0
        self.highest_key = 0
        self.tally = Tally()
        self._connection = connection

    def absorb(self, other: "Work") -> None:
        """Take over the findings of a part of this transaction that was kept and counted."""
        self.moved |= other.moved
        self.ended += other.ended
        self.cancelled += other.cancelled
        self.woken |= other.woken
        self.rows += other.rows
        self.tally.add(other.tally)
        self.highest_key = max(self.highest_key, other.highest_key)

    def part(self) -> "Work":
        """A fresh record over the same transaction, to absorb or to drop."""
        return Work(self._connection, self.now, self.policy, self.random)

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

    def briefs(self, name: str, keys: Iterable[int]) -> list[Brief]:
        """The briefs that a named query finds among the keys."""
        return _briefs.decode(self._text(QUERIES[name], {"keys": as_json(list(keys))}))

    def jobs(self, sql: str, **parameters: object) -> list[Job]:
        """The jobs that a query finds, as one JSON value."""
        return _jobs.decode(self._text(sql, parameters))

    def keys(self, sql: str, **parameters: object) -> list[int]:
        """The keys that a query finds, as one JSON value."""
        return _keys.decode(self._text(sql, parameters))

    def names(self, sql: str, **parameters: object) -> list[str]:
        """The names that a query finds, as one JSON value."""
        return msgspec.json.decode(self._text(sql, parameters), type=list[str])

    def pairs(self, sql: str, **parameters: object) -> list[tuple[int, str]]:
        """The (key, queue) pairs that a query finds, as one JSON value."""
        return msgspec.json.decode(self._text(sql, parameters), type=list[tuple[int, str]])

    def insert(self, table: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert rows by a few statements of many rows each.

        Bound values beat one JSON parameter (2.7 against 4.4 µs a row of 8 columns, no escaping)
        and `executemany` (one hand-over of the GIL a statement, not a row).
        """
        start = 0
        while start < len(rows):
            size = _insert_size(len(rows) - start)
            values = [value for row in rows[start : start + size] for value in row]
            self.execute(_insert_sql(table, columns, size), values)
            start += size

    def remove(self, briefs: Sequence[Brief]) -> None:
        """Delete jobs with their payloads, results and errors."""
        if not briefs:
            return
        self.run("delete_jobs", keys=as_json([job.key for job in briefs]))
        if beside := [job.key for job in briefs if job.payload_size > INLINE_PAYLOAD]:
            self.run("delete_payloads", keys=as_json(beside))
        if results := [job.key for job in briefs if (job.result_size or 0) > INLINE_PAYLOAD]:
            self.run("delete_results", keys=as_json(results))
        if failed := [job.key for job in briefs if job.attempts]:
            self.run("delete_errors", keys=as_json(failed))
        for (queue, status), n in Counter([(job.queue, job.status) for job in briefs]).items():
            self.counts[queue, status] -= n
        self.ended += [(job.holder, job.key) for job in briefs if job.holder is not None]

    def move(self, queues: Sequence[str], old: Status, new: Status) -> None:
        """Count jobs, each by its queue, that changed their status."""
        for queue, n in Counter(queues).items():
            self.counts[queue, old] -= n
            self.counts[queue, new] += n

    def deadlines(self) -> Deadlines:
        """When something falls due next."""
        return read_deadlines(self._connection)

    def write_counts(self) -> None:
        """Bring `queue_counts` up to date, and note which states jobs have come to or left."""
        deltas = [(queue, status, n) for (queue, status), n in self.counts.items() if n]
        if deltas:
            self.run("count", deltas=as_json(deltas))
        self.moved.update([status for _, status in self.counts])
        self.counts.clear()

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
    )


def as_json(value: object) -> str:
    """A value as the text that `json_each` reads."""
    return msgspec.json.encode(value).decode()


def _insert_size(left: int) -> int:
    # Whole powers of two above 64, any size below: few statements, few texts to prepare and cache.
    if left <= 64:
        return left
    return min(1 << (left.bit_length() - 1), LARGEST_INSERT)


@lru_cache(maxsize=512)
def _insert_sql(table: str, columns: str, size: int) -> str:
    row = "(" + ",".join("?" * (columns.count(",") + 1)) + ")"
    return f"INSERT INTO {table} ({columns}) VALUES " + ",".join([row] * size)
