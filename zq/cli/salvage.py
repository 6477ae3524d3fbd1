"""`zq salvage`: saves what can be read of a damaged data directory."""

from pathlib import Path

import click

from zq.cli.ending import (
    EX_CONFIG,
    EX_DATABASE,
    EX_IN_USE,
    end,
    require_database,
    require_directory,
)
from zq.cli.progress import bar_of_bytes
from zq.cli.terminal import say


@click.command(
    short_help="Save what can be read of a damaged data directory.",
    epilog="""\b
Examples:
  zq salvage /var/lib/zq /var/lib/zq-salvaged

OLD is not changed, and NEW must be missing or empty. Every job, result, error, setting, schedule
and record that can be read goes to NEW, and the command tells how much could not. Jobs keep their
ids. Jobs that were in flight are ready. A job whose payload or result is lost is kept in the table
`quarantine`. The history has a new epoch, and new jobs get ids that OLD does not give.
""",
)
@click.argument("old", type=click.Path(file_okay=False, path_type=Path))
@click.argument("new", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def salvage(ctx: click.Context, old: Path, new: Path) -> None:
    """Make NEW a data directory with all that can be read in the damaged directory OLD.

    Exit codes: 0, also if something was lost; 2 if NEW is not empty, 74 if nothing can be read or
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
    except (errors.DamagedDatabase, errors.StoreFull, OSError) as error:
        end(ctx, f"{old} cannot be salvaged into {new}: {error}", EX_DATABASE)
    for table, count in found.rows.items():
        say(f"{table}: {count:,} rows")
    for table, count in found.gaps.items():
        say(f"{table}: {count:,} gaps that could not be read", err=True)
    if found.set_aside:
        say(
            f"set aside: {found.set_aside:,} rows that have lost a part, or do not have the"
            " checksum that was stored with them",
            err=True,
        )
    say(f"salvaged into {new}: `zq serve --root-dir {new}` starts a server on it")
