"""`zq check`: look for damage in a data directory whose server is stopped."""

import sqlite3
from contextlib import closing
from pathlib import Path

import click

from zq.cli.terminal import say
from zq.config import Settings

EX_IOERR = 74  # sysexits.h


@click.command(
    epilog="""\b
Examples:
  zq check --root-dir /var/lib/zq

A start makes the same check by itself where the database has at most 64 MiB. It takes about 7 ms a
MiB. Damage inside a payload goes unnoticed as long as it stays text.
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
    """Check the database for damage.

    Ends with 0 where there is none, 74 where there is some, 75 while a server runs.
    """
    from zq.store.damage import find_damage, refuse_damaged_log
    from zq.store.lock import DirectoryInUse, DirectoryLock
    from zq.store.store import FILE_NAME, WAL_NAME

    file = root_dir / FILE_NAME
    if not file.exists():
        raise click.UsageError(f"{file} does not exist: name the directory of the data")
    try:
        lock = DirectoryLock(root_dir)
    except DirectoryInUse as error:
        say(str(error), err=True)
        ctx.exit(75)
    try:
        refuse_damaged_log(root_dir / WAL_NAME)
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            found = find_damage(connection)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        found = [str(error)]
    finally:
        lock.release()
    for text in found:
        say(f"{file}: {text}", err=True)
    ctx.exit(EX_IOERR if found else 0)
