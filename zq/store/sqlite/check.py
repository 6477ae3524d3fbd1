"""Checks the data directory of a stopped server for damage, for `zq check`."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from zq.store.errors import DatabaseTooNew, ForeignDatabase
from zq.store.sqlite.damage import find_damage, refuse_damaged_log
from zq.store.sqlite.files import FILE_NAME, WAL_NAME
from zq.store.sqlite.identity import codec_in
from zq.store.sqlite.lock import DirectoryLock
from zq.store.sqlite.migrate import latest_version, refuse_foreign, refuse_newer
from zq.store.sqlite.quarantine import read_quarantine


class Report(NamedTuple):
    """The result of a check: what is stored, and what is wrong with it."""

    said: list[str]
    damage: list[str]
    is_known: bool = True
    """False if the database is of a newer zq or not zq's. `damage` says which."""


def examine(directory: Path) -> Report:
    """Check the database of a directory. Raises `DirectoryInUse` or `OSError`."""
    lock = DirectoryLock(directory)
    try:
        refuse_damaged_log(directory / WAL_NAME)
        with closing(sqlite3.connect(directory / FILE_NAME, isolation_level=None)) as connection:
            return _examine(connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return Report([], [str(error)])
    finally:
        lock.release()


def _examine(connection: sqlite3.Connection) -> Report:
    try:
        refuse_foreign(connection)
        version = refuse_newer(connection)
    except (ForeignDatabase, DatabaseTooNew) as error:
        return Report([], [str(error)], is_known=False)
    if version == 0:
        return Report(["it is empty: no server has stored anything in it yet"], [])
    if damage := find_damage(connection):
        return Report([], damage)
    said = [f"no damage found in {_contents(connection)}"]
    if version < latest_version():
        said.append(f"its schema is version {version}: a start makes it {latest_version()}")
        return Report(said, [])
    return Report(said, _set_aside(connection))


def _contents(connection: sqlite3.Connection) -> str:
    jobs, queues = connection.execute(
        "SELECT cast(total(n) AS INTEGER), count(DISTINCT queue) FROM queue_counts WHERE n > 0"
    ).fetchone()
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    size = f"{pages * page_size / 2**20:,.1f} MiB"
    many = f"{jobs:,} {'job' if jobs == 1 else 'jobs'}"
    return f"{many} of {queues:,} {'queue' if queues == 1 else 'queues'}, {size}"


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
