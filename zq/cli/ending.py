"""How the commands on the data directory of a stopped server begin and end."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

from zq.cli.terminal import one_line, say
from zq.config import Settings

EX_DATABASE = os.EX_IOERR
EX_IN_USE = os.EX_TEMPFAIL
EX_CONFIG = os.EX_CONFIG

Command = TypeVar("Command", bound=Callable[..., Any])

_INSTEAD = {
    "check": "pg_amcheck looks for damage in its tables and indexes, pg_checksums in the pages of a"
    " PostgreSQL that is stopped, and pg_verifybackup in a copy by pg_basebackup",
    "restore": "pg_restore puts a dump of pg_dump into an empty database, while no server runs on"
    " it. A backup of zq is restored into a directory, and `zq move` takes that to a database",
    **dict.fromkeys(
        ("init", "ca", "server-cert", "client-cert"),
        "name the directory of the server's certificates by --out-dir",
    ),
    "salvage": "restore a backup. Where there is none, copy what pg_dump can still read",
}
"""What PostgreSQL has for each command that is for data directories alone."""


def _refuse_store(ctx: click.Context, _option: click.Parameter, address: str | None) -> None:
    if address is None:
        return
    by_variable = ctx.get_parameter_source("store") is ParameterSource.ENVIRONMENT
    by_words = ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP
    if not by_variable or ctx.get_parameter_source("root_dir") not in by_words:
        raise _for_directories(ctx, by_variable=by_variable)


_refuses_store = click.option(
    "--store", envvar="ZQ_STORE", hidden=True, expose_value=False, callback=_refuse_store
)


def of_directory(help: str, **allows: bool) -> Callable[[Command], Command]:
    """The option `--root-dir` of a command. `allows` goes to `click.Path`.

    Where somebody gives the address of a PostgreSQL as to `zq serve`, the command says what
    PostgreSQL has instead. A directory on the command line counts more than an address in the
    environment.
    """
    root_dir = click.option(
        "--root-dir",
        type=click.Path(path_type=Path, **allows),
        envvar=["ZQ_ROOT_DIR", "ZIZQ_ROOT_DIR"],
        default=Settings.root_dir,
        show_default=True,
        help=help,
    )
    # An option that stands below another is read after it.
    return lambda command: root_dir(_refuses_store(command))


def require_directory(directory: Path) -> None:
    """Raise a usage error if this is the address of a database of PostgreSQL."""
    # A path has lost one of the two slashes.
    if str(directory).startswith(("postgresql:/", "postgres:/")):
        raise _for_directories(click.get_current_context())


def _for_directories(ctx: click.Context, *, by_variable: bool = False) -> click.UsageError:
    instead = _INSTEAD.get(ctx.info_name or "", "its address begins with postgresql://")
    where = ", which ZQ_STORE names" if by_variable else ""
    more = ". Name a directory with --root-dir to use that" if by_variable else ""
    return click.UsageError(
        f"this is for data directories, not for PostgreSQL{where}: {instead}{more}"
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
