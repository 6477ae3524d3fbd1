"""Finds rows that cannot be read, and sets them aside so that everything else goes on.

The file was edited by hand, or the disk has changed it. A reader that meets such a row names the
rows among which it must be. The writer checks these one by one in a transaction, and moves each
unreadable row whole to the table `quarantine`. The other parts of a job (its payload, its errors)
stay in their tables.
"""

import sqlite3
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from zq.model.checksums import (
    ChecksumMismatch,
    check_jobs,
    check_text,
    error_checksum,
)
from zq.model.effects import Misfit, Quarantined
from zq.model.job import INLINE_PAYLOAD, ErrorRecord, JobRecord
from zq.model.settings import QueueSettings
from zq.rooms import parts
from zq.store.sqlite.connection import is_corrupt
from zq.store.sqlite.queries import BRIEF_ROW, JOB_ROW, LINED_ROW, load

QUERIES = load(__name__)

ON_PAGE = "page of "
"""Before the name of a table: its rows lie on a page that cannot be read.

A reader finds out which rows these are. A writer must not look: once it has met such a page, SQLite
refuses all further writes of its transaction.
"""

_ON_BAD_PAGE = "lies on a page that cannot be read"

OF_JOBS = {
    "jobs": None,
    f"{ON_PAGE}payloads": f"its payload {_ON_BAD_PAGE}",
    f"{ON_PAGE}results": f"its result {_ON_BAD_PAGE}",
}
"""The sources for which whole jobs are set aside, each with the reason that is known then."""

MOST_NAMED = 10
"""How many rows are named in a listing of the quarantine, the latest first."""

_NO_JSON = "malformed JSON"
_NO_TEXT = "Could not decode to UTF-8"


class UnreadableRows(Exception):
    """At least one of these rows of a table cannot be read."""

    def __init__(self, source: str, keys: Iterable[object]) -> None:
        super().__init__(f"a row of {source} cannot be read")
        self.source = source
        self.keys = tuple(keys)


class Removed(NamedTuple):
    """The facts about a job that the transaction needs after the job was set aside."""

    misfit: Misfit
    key: int
    holder: int | None
    group: tuple[str, str] | None


def is_unreadable(error: Exception) -> bool:
    """True if an error means that zq cannot have written what was read."""
    if isinstance(error, sqlite3.DatabaseError):
        return is_corrupt(error) or str(error).startswith((_NO_JSON, _NO_TEXT))
    return isinstance(error, msgspec.MsgspecError | UnicodeDecodeError | ChecksumMismatch)


def keys_query(sql: str) -> str:
    """The query for the keys of the jobs that another query finds."""
    for row in (JOB_ROW, LINED_ROW, BRIEF_ROW, "json_array(id, queue, NULL, status)"):
        sql = sql.replace(f"json_group_array({row})", "json_group_array(id)", 1)
    return sql.replace("json_group_array(json_array(jobs.id, queue))", "json_group_array(jobs.id)")


def read_quarantine(connection: sqlite3.Connection) -> Quarantined:
    """The rows that were set aside so far."""
    rows = connection.execute(QUERIES["latest"], {"limit": MOST_NAMED}).fetchall()
    count: int = connection.execute(QUERIES["count"]).fetchone()[0]
    return Quarantined(count, [Misfit(*row) for row in rows])


def set_aside_jobs(
    connection: sqlite3.Connection, keys: Iterable[int], now: int, known: str | None = None
) -> Iterator[Removed]:
    """Set aside the unreadable jobs among these. Call it inside a transaction.

    With a `known` reason it is all of them, and nothing beside them is read.
    """
    for key in keys:
        reason = known or _fault_of_job(connection, key)
        if reason is None or connection.execute(QUERIES["holder"], {"key": key}).fetchone() is None:
            continue
        holder = connection.execute(QUERIES["holder"], {"key": key}).fetchone()[0]
        group = _group(connection, key)
        connection.execute(QUERIES["uncount"], {"key": key})
        yield Removed(move(connection, "jobs", {"id": key}, reason, now), key, holder, group)


def set_aside(
    connection: sqlite3.Connection, source: str, keys: Iterable[Any], now: int
) -> Iterator[Misfit]:
    """Do the same for rows of another table. Call it inside a transaction.

    Rows on a page that cannot be read stay there, and are only named.
    """
    for key in keys:
        if source.startswith(ON_PAGE):
            yield from _name(connection, source.removeprefix(ON_PAGE), key, now)
        else:
            yield from _asides()[source](connection, key, now)


def set_aside_at_start(connection: sqlite3.Connection, now: int, *, jobs: bool) -> list[Misfit]:
    """Set aside unreadable settings and, with `jobs`, the jobs that break a CHECK.

    The start does this before it reads anything else.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        queues = [queue for (queue,) in connection.execute(QUERIES["queues"])]
        found = [*set_aside(connection, "queue_settings", queues, now)]
        if jobs:
            refused = [key for (key,) in connection.execute(QUERIES["refused"])]
            found += [gone.misfit for gone in set_aside_jobs(connection, refused, now)]
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
    return found


def _fault_of_job(connection: sqlite3.Connection, key: int) -> str | None:
    """Why a job cannot be read; None if it can, or if it does not exist."""

    try:
        row = connection.execute(QUERIES["job"], {"key": key}).fetchone()
        if row is None:
            return None
        job = msgspec.json.decode(row[0], type=JobRecord)
        check_jobs([job])
    except Exception as error:
        return reason_of("its row", error)
    parts: list[tuple[str, str | None]] = [
        ("its payload", "payload" if job.payload_size > INLINE_PAYLOAD else None),
        ("its result", "result" if job.result_beside else None),
    ]
    inline = {"its payload": job.payload, "its result": job.result}
    if job.extras is not None:
        parts.append(("its meta", None))
        inline["its meta"] = job.extras.meta
    for part, beside in parts:
        try:
            text, stored = inline.get(part), None
            if beside is not None:
                row = connection.execute(QUERIES[beside], {"key": key}).fetchone()
                if row is None:
                    return f"{part} is missing"
                text, stored = row
            if text is not None:
                check_text(part, text, stored)
                msgspec.json.decode(text)
        except Exception as error:
            return reason_of(part, error)
    return None


def _errors_of(connection: sqlite3.Connection, job: int, now: int) -> Iterator[Misfit]:
    attempts = connection.execute(QUERIES["attempts"], {"key": job}).fetchall()
    for (attempt,) in attempts:
        place = {"job_id": job, "attempt": attempt}
        try:
            row, stored = connection.execute(QUERIES["error"], place).fetchone()
            record = msgspec.json.decode(row, type=ErrorRecord)
            if stored not in (None, error_checksum(record)):
                raise ChecksumMismatch("the record")
        except Exception as error:
            yield move(connection, "errors", place, reason_of("the record", error), now)


def _batch(connection: sqlite3.Connection, key: tuple[int, int], now: int) -> Iterator[Misfit]:
    """Set aside the batch with this record. Its readers know what it should hold."""
    log, seq = key
    found = connection.execute(QUERIES["batch"], {"log": log, "seq": seq}).fetchone()
    if found is not None:
        last_seq, size = found
        place = {"log": log, "last_seq": last_seq}
        connection.execute(QUERIES["shorten_log"], {"log": log, "bytes": size})
        yield move(
            connection, "log_batches", place, "its records are not those that were stored", now
        )


def _settings(connection: sqlite3.Connection, queue: str, now: int) -> Iterator[Misfit]:
    place: dict[str, object] = {"queue": queue}
    try:
        for text, stored, check in connection.execute(QUERIES["settings"], place):
            msgspec.json.decode(text, type=QueueSettings)
            check_text("the row", stored, check)
    except Exception as error:
        yield move(connection, "queue_settings", place, reason_of("the row", error), now)


def _note(connection: sqlite3.Connection, name: str, now: int) -> Iterator[Misfit]:
    """Set aside a note. Its readers know what it should hold."""
    place: dict[str, object] = {"name": f"note:{name}"}
    yield move(connection, "meta", place, "the note holds something else than it should", now)


Aside = Callable[[sqlite3.Connection, Any, int], Iterator[Misfit]]
"""Sets aside what cannot be read of the rows of a table with this key, at this time."""

_ASIDE: dict[str, Aside] = {
    "errors": _errors_of,
    "log_batches": _batch,
    "queue_settings": _settings,
    "notes": _note,
}


@cache
def _asides() -> Mapping[str, Aside]:
    """How rows of each table are set aside. Rooms have theirs in `sqlite_quarantine.py`."""
    return ChainMap(_ASIDE, *parts("sqlite_quarantine", "ASIDE", dict))


def _name(connection: sqlite3.Connection, source: str, key: object, now: int) -> Iterator[Misfit]:
    """Note a row that cannot be moved, unless it is noted already."""
    misfit = Misfit(source, name_of(key), f"the row {_ON_BAD_PAGE}", now)
    if connection.execute(QUERIES["note"], misfit._asdict()).rowcount > 0:
        yield misfit


def note_again(connection: sqlite3.Connection, misfit: Misfit) -> Misfit:
    """Note a row that was corrected in its place, also if that was done before."""
    connection.execute(QUERIES["note_again"], misfit._asdict())
    return misfit


def name_of(key: object) -> str:
    """The key of a row as it is named: its columns with slashes in between."""
    return "/".join(map(str, key if isinstance(key, tuple | list) else (key,)))


def place_of(place: Mapping[str, object]) -> str:
    """A row as it is named, by the values of its key. Bytes stand for texts."""
    return name_of(
        [v.decode(errors="replace") if isinstance(v, bytes) else v for v in place.values()]
    )


def keys_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """The columns of the primary key of a table, in their order there."""
    found = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return [name for _, name in sorted((row[5], row[1]) for row in found if row[5])]


def _group(connection: sqlite3.Connection, key: int) -> tuple[str, str] | None:
    try:
        queue, group = connection.execute(QUERIES["group"], {"key": key}).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_unreadable(error):
            raise
        return None
    return None if group is None else (queue, group)


def reason_of(part: str, error: Exception) -> str:
    """The reason, without any content of the row: that may be secret, or not text."""
    if not is_unreadable(error):
        raise error
    if isinstance(error, ChecksumMismatch):
        return f"{error} does not have the checksum that was stored with it"
    if isinstance(error, msgspec.ValidationError):
        return f"{part} holds something else than it should: {error}"
    if isinstance(error, sqlite3.DatabaseError) and is_corrupt(error):
        return f"{part} {_ON_BAD_PAGE}"
    if isinstance(error, msgspec.DecodeError) or str(error).startswith(_NO_JSON):
        return f"{part} holds malformed JSON"
    return f"{part} holds text that is no UTF-8"


def move(
    connection: sqlite3.Connection, source: str, place: dict[str, object], reason: str, now: int
) -> Misfit:
    """Move a row of a table whole to the quarantine. Bytes in its place stand for texts."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({source})")]
    values = " || ', ' || ".join(f"quote({column})" for column in columns)
    head = f"INSERT INTO {source} ({', '.join(columns)}) VALUES ("
    where = " AND ".join(
        f"CAST({column} AS BLOB) = :{column}"
        if isinstance(value, bytes)
        else f"{column} = :{column}"
        for column, value in place.items()
    )
    misfit = Misfit(source, place_of(place), reason, now)
    connection.execute(
        "INSERT OR REPLACE INTO quarantine (source, key, at, reason, row)"
        f" SELECT :_source, :_key, :_at, :_reason, CAST('{head}' || {values} || ')' AS BLOB)"
        f" FROM {source} WHERE {where}",
        {**place, "_source": source, "_key": misfit.key, "_at": now, "_reason": reason},
    )
    connection.execute(f"DELETE FROM {source} WHERE {where}", place)
    return misfit
