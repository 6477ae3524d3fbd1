"""`zq check`: looks for damage in the data directory of a stopped server."""

from pathlib import Path

import click

from zq.cli.ending import (
    EX_CONFIG,
    EX_DATABASE,
    EX_IN_USE,
    ROOT_DIR,
    end,
    refuses_store,
    require_database,
)
from zq.cli.terminal import say
from zq.config import Settings

EX_PERMISSION = 77  # sysexits.h


@click.command(
    epilog="""\b
Examples:
  zq check --root-dir /var/lib/zq

The command changes nothing. It says what a start would lose of a damaged log. A start makes the
same check of a database by itself where that has at most 64 MiB. It takes about 7 ms a MiB, and 15
ms a MiB of the log. It also compares what is stored for others with its checksums. Rows that a
server could not read are kept in the table `quarantine` of the database, each as the statement that
would put it back; the rest goes on without them.
"""
)
@click.option(
    "--root-dir",
    type=click.Path(path_type=Path, readable=False),
    envvar=ROOT_DIR,
    default=Settings.root_dir,
    show_default=True,
    help="Directory of the data.",
)
@refuses_store
@click.pass_context
def check(ctx: click.Context, root_dir: Path) -> None:
    """Check the database for damage, and list its contents.

    Exit codes: 0 without damage, 74 with damage or if rows were set aside, 75 while a server runs,
    77 if it may not be read, 78 if the database belongs to a newer zq or to another program.
    """
    from zq.instance import examine
    from zq.store.errors import DirectoryInUse

    try:
        file = require_database(root_dir)
        # SQLite tells nothing of rights: what may not be read would look damaged.
        file.open("rb").close()
        report = examine(root_dir)
    except DirectoryInUse as error:
        end(ctx, str(error), EX_IN_USE)
    except PermissionError as error:
        unread = error.filename or root_dir
        end(ctx, f"{unread} cannot be read: {_remedy(root_dir)}", EX_PERMISSION)
    for text in report.said:
        say(f"{file}: {text}")
    for text in report.damage:
        say(f"{file}: {text}", err=True)
    if not report.is_known:
        ctx.exit(EX_CONFIG)
    ctx.exit(EX_DATABASE if report.damage else 0)


def _remedy(root_dir: Path) -> str:
    """The advice for data that this user may not read."""
    try:
        owner = root_dir.owner()
    except (KeyError, OSError):
        owner = "the user of the server"
    return f"it belongs to {owner}. Run this as that user, or as root: sudo zq check …"
