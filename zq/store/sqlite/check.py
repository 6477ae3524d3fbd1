"""Checks the data directory of a stopped server for damage, for `zq check`."""

import sqlite3
from pathlib import Path
from typing import NamedTuple

from zq.store.errors import DatabaseTooNew, ForeignDatabase
from zq.store.sqlite.checksums import unfit_rows
from zq.store.sqlite.damage import damage_of_log, find_damage
from zq.store.sqlite.files import WAL_NAME, opened_unchanged
from zq.store.sqlite.identity import codec_in, lost_in, read_meta
from zq.store.sqlite.lock import locked_unchanged
from zq.store.sqlite.mending import refused_jobs, unreadable_rows, wrong_logs
from zq.store.sqlite.migrate import latest_version, refuse_foreign, refuse_newer
from zq.store.sqlite.quarantine import MOST_NAMED, name_of, place_of, read_quarantine


class Report(NamedTuple):
    """The result of a check: what is stored, and what is wrong with it."""

    said: list[str]
    damage: list[str]
    is_known: bool = True
    """False if the database is of a newer zq or not zq's. `damage` says which."""


def examine(directory: Path) -> Report:
    """Check the database of a directory, and change nothing in it.

    Raises `DirectoryInUse`, `StoreFull` if a copy is needed that has no space, or OSError.
    """
    with locked_unchanged(directory):
        lost = damage_of_log(directory / WAL_NAME)
        log = [str(lost)] if lost else []
        try:
            with opened_unchanged(directory) as connection:
                found = _examine(connection, "a start finds" if log else "no damage found in")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            found = Report([], [str(error)])
    return found._replace(damage=[*log, *found.damage])


def _examine(connection: sqlite3.Connection, finding: str) -> Report:
    try:
        refuse_foreign(connection)
        version = refuse_newer(connection)
    except (ForeignDatabase, DatabaseTooNew) as error:
        return Report([], [str(error)], is_known=False)
    if version == 0:
        return Report(["it is empty: no server has stored anything in it yet"], [])
    if damage := find_damage(connection):
        return Report([], damage)
    said = [f"{finding} {_contents(connection)}"]
    if version < latest_version():
        said.append(f"its schema is version {version}: a start makes it {latest_version()}")
        return Report(said, [])
    if lost := lost_in(read_meta(connection)):
        return Report(said, [lost])
    return Report(said, [*_set_aside(connection), *_unreadable(connection), *_unfit(connection)])


def _contents(connection: sqlite3.Connection) -> str:
    jobs, queues = connection.execute(
        "SELECT cast(total(n) AS INTEGER), count(DISTINCT queue) FROM queue_counts WHERE n > 0"
    ).fetchone()
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    size = f"{pages * page_size / 2**20:,.1f} MiB"
    many = f"{jobs:,} {'job' if jobs == 1 else 'jobs'}"
    return f"{many} of {queues:,} {'queue' if queues == 1 else 'queues'}, {size}"


def _unreadable(connection: sqlite3.Connection) -> list[str]:
    """The rows that a server will set aside once it meets them."""
    ids = codec_in(connection).text
    found = [("jobs", ids(key), reason) for key, reason in refused_jobs(connection)]
    found += [(row.table, place_of(row.place), row.reason) for row in unreadable_rows(connection)]
    found += [("logs", wrong.right.name.decode(), wrong.reason) for wrong in wrong_logs(connection)]
    lines = [f"unreadable: {table} {key} ({reason})" for table, key, reason in found[:MOST_NAMED]]
    more = len(found) - MOST_NAMED
    return lines if more <= 0 else [*lines, f"unreadable: {more:,} more rows"]


def _unfit(connection: sqlite3.Connection) -> list[str]:
    """The rows whose texts are not the ones that were stored; a server sets them aside."""
    ids = codec_in(connection)
    lines = [
        f"changed on the disk: {source} {ids.text(key) if source == 'jobs' else name_of(key)}"
        " (it does not have the checksum that was stored with it)"
        for source, key in dict.fromkeys(unfit_rows(connection))
    ]
    more = len(lines) - MOST_NAMED
    return lines if more <= 0 else [*lines[:MOST_NAMED], f"changed on the disk: {more:,} more rows"]


def _set_aside(connection: sqlite3.Connection) -> list[str]:
    """The rows in quarantine by name, and the number of those that are not named."""
    found = read_quarantine(connection)
    ids = codec_in(connection)
    lines = [
        f"set aside: {row.source} {ids.text(int(row.key)) if row.source == 'jobs' else row.key}"
        f" ({row.reason})"
        for row in found.latest
    ]
    if found.rows > len(lines):
        lines.append(f"set aside: {found.rows - len(lines):,} more; see the table quarantine")
    return lines
