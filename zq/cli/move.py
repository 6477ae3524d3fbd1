"""`zq move`: moves a store between a data directory and a database of PostgreSQL."""

from pathlib import Path
from shlex import quote

import click

from zq.cli.drawing import bar_of_rows
from zq.cli.ending import EX_CONFIG, EX_DATABASE, EX_IN_USE, end, require_database
from zq.cli.output import print_json
from zq.cli.terminal import say


@click.command(
    short_help="Move between a data directory and PostgreSQL.",
    epilog="""\b
Examples:
  zq move /var/lib/zq postgresql://zq@db.example/queue
  zq move postgresql://zq@db.example/queue /var/lib/zq

FROM is only read, and its server must be stopped. TO must be a directory or a database
without data of zq's. Everything goes there: jobs with their ids, payloads, results and errors, the
history, settings, producers, budgets, schedules, topics and statistics. Afterwards every table is
read from both sides and compared. A command that was cut off goes on where it was if it is given
again; until then no server starts on TO. New jobs get ids that FROM does not give, and the history
has a new epoch. Do not start a server on FROM again: it would run the same jobs a second time.

A password belongs into the file ~/.pgpass or the variable PGPASSWORD, where no list of processes
shows it.
""",
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def move(ctx: click.Context, source: str, target: str, as_json: bool) -> None:
    """Move everything from FROM to TO: a data directory, and an address `postgresql://…`.

    Exit codes: 0, 2 if TO has data or both are of one kind, 74 if something cannot be read or
    written, 75 if a server runs on either, 78 if the data is of another version or program.
    """
    from zq import instance
    from zq.setting import ConfigError
    from zq.store import errors

    if not instance.is_address(source):
        require_database(Path(source))
    try:
        shown = [instance.shown_address(place) for place in (source, target)]
        places = " cannot be moved to ".join(shown)
        with bar_of_rows("move") as advance:
            moved = instance.move(source, target, advance)
    except (ConfigError, errors.DirectoryNotEmpty) as error:
        raise click.UsageError(str(error)) from None
    except errors.DirectoryInUse as error:
        end(ctx, str(error), EX_IN_USE)
    except (
        errors.DatabaseTooNew,
        errors.DatabaseTooOld,
        errors.ForeignDatabase,
        errors.RestoreUnfinished,
    ) as error:
        end(ctx, f"{places}: {error}", EX_CONFIG)
    except (errors.DamagedDatabase, errors.StoreDiffers, errors.StoreError, OSError) as error:
        end(ctx, f"{places}: {error}", EX_DATABASE)
    if as_json:
        tables = {name: sum._asdict() for name, sum in moved.tables.items()}
        print_json({"tables": tables, "resumed": moved.resumed})
        return
    for name, sum in moved.tables.items():
        if sum.rows:
            say(f"{name}: {sum.rows:,} rows, the same in both (checksum {sum.checksum[:16]})")
    option = "--store" if instance.is_address(target) else "--root-dir"
    say(f"moved: `zq serve {option} {quote(shown[1])}` starts a server on it")
