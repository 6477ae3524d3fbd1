"""`zq check`: look for damage in a data directory whose server is stopped."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import click

from zq.cli.terminal import say
from zq.config import Settings

EX_DATABASE = 74  # sysexits.h, EX_IOERR
EX_IN_USE = 75
EX_CONFIG = 78


class _Report(NamedTuple):
    """What is to be said: of damage on standard error, of anything else on standard output."""

    code: int
    said: list[str]
    damage: list[str]


@click.command(
    epilog="""\b
Examples:
  zq check --root-dir /var/lib/zq

A start makes the same check by itself where the database has at most 64 MiB. It takes about 7 ms a
MiB. Damage inside a payload goes unnoticed as long as it stays text. Rows that a server could not
read are kept in the table `quarantine` of the database, each as the statement that would put it
back; the rest goes on without them.
"""
)
@click.option(
    "--root-dir",
    type=click.Path(path_type=Path),
    default=Settings.root_dir,
    show_default=True,
    help="Directory of the data.",
)
@click.pass_context
def check(ctx: click.Context, root_dir: Path) -> None:
    """Check the database for damage, and say what is in it.

    Ends with 0 where there is none, 74 where there is some or rows were set aside, 75 while a
    server runs, 78 where the database is of a newer zq or none of zq's.
    """
    from zq.store.damage import refuse_damaged_log
    from zq.store.files import FILE_NAME, WAL_NAME
    from zq.store.lock import DirectoryInUse, DirectoryLock

    file = root_dir / FILE_NAME
    if not file.exists():
        raise click.UsageError(f"{file} does not exist: name the directory of the data")
    try:
        lock = DirectoryLock(root_dir)
    except DirectoryInUse as error:
        say(str(error), err=True)
        ctx.exit(EX_IN_USE)
    try:
        refuse_damaged_log(root_dir / WAL_NAME)
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            report = _examine(connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        report = _Report(EX_DATABASE, [], [str(error)])
    finally:
        lock.release()
    for text in report.said:
        say(f"{file}: {text}")
    for text in report.damage:
        say(f"{file}: {text}", err=True)
    ctx.exit(report.code)


def _examine(connection: sqlite3.Connection) -> _Report:
    from zq.store.damage import find_damage
    from zq.store.migrate import (
        DatabaseTooNew,
        ForeignDatabase,
        latest_version,
        refuse_foreign,
        refuse_newer,
    )

    try:
        refuse_foreign(connection)
        version = refuse_newer(connection)
    except (ForeignDatabase, DatabaseTooNew) as error:
        return _Report(EX_CONFIG, [], [str(error)])
    if version == 0:
        return _Report(0, ["it is empty: no server has stored anything in it yet"], [])
    if damage := find_damage(connection):
        return _Report(EX_DATABASE, [], damage)
    said = [f"no damage found in {_contents(connection)}"]
    if version < latest_version():
        said.append(f"its schema is version {version}: a start makes it {latest_version()}")
        return _Report(0, said, [])
    set_aside = _set_aside(connection)
    return _Report(EX_DATABASE if set_aside else 0, said, set_aside)


def _contents(connection: sqlite3.Connection) -> str:
    jobs, queues = connection.execute(
        "SELECT cast(total(n) AS INTEGER), count(DISTINCT queue) FROM queue_counts WHERE n > 0"
    ).fetchone()
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return f"{jobs:,} jobs of {queues:,} queues, {pages * page_size / 2**20:,.1f} MiB"


def _set_aside(connection: sqlite3.Connection) -> list[str]:
    """The rows in quarantine, and how many there are besides those that are named."""
    from zq.model.ids import IdCodec
    from zq.store.quarantine import read_quarantine

    found = read_quarantine(connection)
    suffix = connection.execute("SELECT value FROM meta WHERE name = 'id_suffix'").fetchone()[0]
    ids = IdCodec(suffix)
    lines = [
        f"set aside: {row.source} {ids.text(int(row.key)) if row.source == 'jobs' else row.key}"
        f" ({row.reason})"
        for row in found.latest
    ]
    if found.rows > len(lines):
        lines.append(f"set aside: {found.rows - len(lines):,} more; see the table quarantine")
    return lines
