"""`zq restore`: makes a data directory from a backup."""

import os
from pathlib import Path

import click

from zq.cli.drawing import bar_of_bytes
from zq.cli.ending import ROOT_DIR, refuses_store, require_directory
from zq.cli.terminal import one_line, say
from zq.config import Settings

EX_DATABASE = 74  # sysexits.h, EX_IOERR
EX_IN_USE = 75
EX_CONFIG = 78


@click.command(
    short_help="Make a data directory from a backup.",
    epilog="""\b
Examples:
  zq restore /var/backups/zq.tar.gz --root-dir /var/lib/zq
  ssh vault "cat zq.tar.gz" | zq restore - --root-dir /var/lib/zq

The directory must be missing or empty. If the command fails, it leaves nothing behind; if it is
killed, no server starts on the directory before `zq restore` has been run again. Jobs keep their
ids. Jobs that were in flight are ready. The history has a new epoch, and new jobs get ids that no
other server gives, also if the server of the backup still runs.
""",
)
@click.argument("path", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--root-dir",
    type=click.Path(path_type=Path, file_okay=False),
    envvar=ROOT_DIR,
    default=Settings.root_dir,
    show_default=True,
    help="Directory of the data, which is to be empty.",
)
@refuses_store
@click.pass_context
def restore(ctx: click.Context, path: str, root_dir: Path) -> None:
    """Make an empty directory a data directory with the contents of the backup PATH.

    Exit codes: 0, 2 if the directory is not empty, 74 if the backup is damaged or the disk fails,
    75 if another zq has the directory, 78 if the backup is of a newer zq or of another program.
    """
    from zq import instance
    from zq.store.errors import (
        DamagedDatabase,
        DatabaseTooNew,
        DirectoryInUse,
        DirectoryNotEmpty,
        ForeignDatabase,
        StoreFull,
    )

    require_directory(root_dir)
    try:
        _tell_place(root_dir)
        with click.open_file(path, "rb") as archive, bar_of_bytes("restore") as advance:
            instance.restore(archive, root_dir, advance)
    except DirectoryNotEmpty as error:
        raise click.UsageError(str(error)) from None
    except DirectoryInUse as error:
        _end(ctx, str(error), EX_IN_USE)
    except (DatabaseTooNew, ForeignDatabase) as error:
        _end(ctx, f"{path}: {error}", EX_CONFIG)
    except DamagedDatabase as error:
        _end(ctx, f"{path} cannot be restored: {error}", EX_DATABASE)
    except (StoreFull, OSError) as error:
        _end(ctx, f"{path} cannot be restored into {root_dir}: {error}", EX_DATABASE)
    say(f"restored into {root_dir}: `zq check` looks for damage, `zq serve` starts a server on it")


def _tell_place(root_dir: Path) -> None:
    """Say which directory it is, also where a variable names a server, to which nothing goes."""
    url = os.environ.get("ZQ_URL")
    other = f"; ZQ_URL ({url}) plays no part" if url else ""
    say(one_line(f"directory: {root_dir.absolute()}{other}"), err=True)


def _end(ctx: click.Context, text: str, code: int) -> None:
    say(one_line(text), err=True)
    ctx.exit(code)
