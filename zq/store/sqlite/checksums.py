"""Finds the rows whose texts are not the ones that were stored, for checks and salvages."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from zq.model.checksums import checksum, checksum_of_all, job_checksum, record_checksum
from zq.model.job import Extras, JobSettings
from zq.rooms import parts
from zq.store.sqlite.queries import load

QUERIES = load(__name__)

UnfitRow = tuple[str, Any]
"""The source and the key of a row, as `quarantine.set_aside` takes them."""


class CheckedTable(NamedTuple):
    """A table whose rows have checksums. A room has its one as `CHECKED` of `sqlite_quarantine`."""

    source: str
    """The name under which a row is set aside that does not fit."""
    sql: str
    """Finds the first columns of each row, then its texts, then its checksum."""
    checksum: Callable[..., int]
    columns: int = 1
    """How many columns come before the texts."""
    key: int = 1
    """How many of these are the key of what is set aside."""


def unfit_rows(connection: sqlite3.Connection) -> Iterator[UnfitRow]:
    """Visit every row that has a checksum, and yield those that it does not fit."""
    for table in (*_OWN, *parts("sqlite_quarantine", "CHECKED", CheckedTable)):
        for row in connection.execute(table.sql):
            *texts, stored = row[table.columns :]
            if not _is_sound(table.checksum, texts, stored):
                yield table.source, row[: table.key] if table.key > 1 else row[0]


def _is_sound(checksum_of: Callable[..., int], texts: list[bytes | None], stored: int) -> bool:
    try:
        return checksum_of(*[None if text is None else text.decode() for text in texts]) == stored
    except (UnicodeDecodeError, msgspec.MsgspecError):
        return False


def _of_job(type: str, payload: str | None, extras: str | None, options: str | None) -> int:
    carried = None if extras is None else msgspec.json.decode(extras, type=Extras)
    own = None if options is None else msgspec.json.decode(options, type=JobSettings)
    return job_checksum(type, payload, carried, own)


_OWN = (
    CheckedTable("jobs", QUERIES["jobs"], _of_job),
    CheckedTable("jobs", QUERIES["ended"], checksum),
    CheckedTable("jobs", QUERIES["payloads"], checksum),
    CheckedTable("jobs", QUERIES["results"], checksum),
    CheckedTable("queue_settings", QUERIES["settings"], checksum),
    CheckedTable("log_batches", QUERIES["log_batches"], record_checksum, columns=2, key=2),
    # All errors of a job are looked at together.
    CheckedTable("errors", QUERIES["errors"], checksum_of_all, columns=2),
)
