"""How the commands on the data directory of a stopped server begin and end."""

from pathlib import Path
from typing import NoReturn

import click

from zq.cli.terminal import one_line, say

EX_DATABASE = 74  # sysexits.h, EX_IOERR
EX_IN_USE = 75
EX_CONFIG = 78


def require_directory(directory: Path) -> None:
    """Raise a usage error if this is the address of a database of PostgreSQL."""
    if str(directory).startswith(("postgresql:/", "postgres:/")):
        raise click.UsageError(
            "this command is for data directories. PostgreSQL has tools of its own: pg_dump and"
            " pg_restore for backups, pg_amcheck for damage"
        )


def require_database(directory: Path) -> Path:
    """The path of a directory's database. Raises a usage error if there is none."""
    from zq.instance import database_of

    require_directory(directory)
    file = database_of(directory)
    if directory.is_file():
        raise click.UsageError(f"{directory} is a file: name the directory of the data")
    if not file.exists():
        raise click.UsageError(f"{file} does not exist: name the directory of the data")
    return file


def end(ctx: click.Context, text: str, code: int) -> NoReturn:
    """Say in one line why a command ends, and end it with an exit code."""
    say(one_line(text), err=True)
    ctx.exit(code)
