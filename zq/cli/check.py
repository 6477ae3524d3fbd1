"""`zq check` looks for damage in a stopped server's data directory; `zq salvage` saves the rest."""

from pathlib import Path

import click

from zq.cli.drawing import bar_of_bytes
from zq.cli.ending import (
    EX_CONFIG,
    EX_DATABASE,
    EX_IN_USE,
    end,
    of_directory,
    require_database,
    require_directory,
)
from zq.cli.terminal import say

EX_PERMISSION = 77  # sysexits.h


@click.command(
    epilog="""\b
Examples:
  zq check --root-dir /var/lib/zq

The command changes nothing. It says what a start would lose of a damaged log. A start makes the
same check of a database by itself where that has at most 64 MiB. It takes about 7 ms a MiB, 6 µs a
job, and 15 ms a MiB of the log. It also compares what is stored for others with its checksums. Rows
that a server could not read are kept in the table `quarantine` of the database, each as the
statement that would put it back; the rest goes on without them.
"""
)
@of_directory("Directory of the data.", readable=False)
@click.pass_context
def check(ctx: click.Context, root_dir: Path) -> None:
    """Check the database for damage, and list its contents.

    Exit codes: 0 without damage, 74 with damage, if rows were set aside or if the disk fails, 75
    while a server runs, 77 if it may not be read, 78 if the database belongs to a newer zq or to
    another program.
    """
    from zq.instance import examine
    from zq.store.errors import DirectoryInUse, StoreFull

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
    except (StoreFull, OSError) as error:
        end(ctx, f"{root_dir} cannot be checked: {error}", EX_DATABASE)
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


@click.command(
    short_help="Save what can be read of a damaged data directory.",
    epilog="""\b
Examples:
  zq salvage /var/lib/zq /var/lib/zq-salvaged

OLD is not changed, and NEW must be missing or empty. Every job, result, error, setting, schedule
and record that can be read goes to NEW, and the command tells how much could not. Jobs keep their
ids. Jobs that were in flight are ready. A job whose payload or result is lost, or that its table
would refuse, is kept in the table `quarantine`. The history has a new epoch, and new jobs get ids
that OLD does not give.
""",
)
@click.argument("old", type=click.Path(file_okay=False, path_type=Path))
@click.argument("new", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def salvage(ctx: click.Context, old: Path, new: Path) -> None:
    """Make NEW a data directory with all that can be read in the damaged directory OLD.

    Exit codes: 0, also if something was lost; 2 if NEW has a database, 74 if nothing can be read or
    the disk fails, 75 if a zq has a directory, 78 if the database is of a newer zq or of another
    program.
    """
    from zq import instance
    from zq.store import errors

    require_database(old)
    require_directory(new)
    try:
        with bar_of_bytes("salvage") as advance:
            found = instance.salvage(old, new, advance)
    except errors.DirectoryNotEmpty as error:
        raise click.UsageError(str(error)) from None
    except errors.DirectoryInUse as error:
        end(ctx, str(error), EX_IN_USE)
    except (errors.DatabaseTooNew, errors.ForeignDatabase) as error:
        end(ctx, f"{old}: {error}", EX_CONFIG)
    except (errors.DamagedDatabase, errors.StoreError, OSError) as error:
        end(ctx, f"{old} cannot be salvaged into {new}: {error}", EX_DATABASE)
    for table, count in found.rows.items():
        say(f"{table}: {count:,} rows")
    if found.log:
        say(f"not salvaged: {found.log}", err=True)
    for table, count in found.gaps.items():
        say(f"{table}: {count:,} gaps that could not be read", err=True)
    if found.set_aside:
        say(
            f"set aside: {found.set_aside:,} rows that have lost a part, break a rule of their"
            " table, or do not have the checksum that was stored with them",
            err=True,
        )
    say(f"salvaged into {new}: `zq serve --root-dir {new}` starts a server on it")
