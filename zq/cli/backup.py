"""`zq backup` writes a copy of everything that a running server stores, `zq restore` reads it.

The file gets its name when it is complete and on the disk. Before, it is invisible.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from zq.cli.drawing import bar_of_bytes
from zq.cli.ending import (
    EX_CONFIG,
    EX_DATABASE,
    EX_IN_USE,
    end,
    of_directory,
    require_directory,
)
from zq.cli.output import print_json
from zq.cli.remote import Refused, administers
from zq.cli.terminal import one_line, say

if TYPE_CHECKING:
    from zq.client.http.address import Address


STDOUT = "-"


@click.command(
    short_help="Write a backup of a running server.",
    epilog="""\b
Examples:
  zq backup /var/backups/zq.tar.gz
  zq backup --overwrite /var/backups/zq-$(date +%a).tar.gz
  zq backup - | ssh vault "cat > zq.tar.gz"

The server goes on working, and the backup is of one moment: all that was acknowledged before the
command began is in it. FILE appears when it is whole and on the disk. It holds jobs with their
payloads, and neither keys nor certificates; only its owner can read it. `zq restore` reads it. If
the server has access keys, the key needs the scope manage. Exit codes: 0, 1 if the server refuses
or the file cannot be written, 2 for wrong usage, 3 if no server answers.
""",
)
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@administers
def backup(admin: "Address", file: str, overwrite: bool, as_json: bool) -> None:
    """Write a backup of a running server to FILE, or to stdout if that is -."""
    if file == STDOUT:
        if sys.stdout.isatty():
            raise click.UsageError("a backup is not text: name a file, or send it to a program")
        try:
            size = _download(admin, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # Python would flush it once more when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise Refused("the program that reads the backup has ended") from None
        say(f"{size:,} bytes", err=True)
        return
    try:
        with new_file(Path(file), replace=overwrite) as target:
            size = _download(admin, target)
    except FileExistsError:
        raise click.UsageError(f"{file} exists: name another file, or give --overwrite") from None
    except OSError as error:
        raise Refused(one_line(f"{file} cannot be written: {error.strerror}")) from None
    if as_json:
        print_json({"file": str(Path(file).absolute()), "bytes": size})
    else:
        say(f"{one_line(file)}: {size:,} bytes")


def _download(admin: "Address", target: BinaryIO) -> int:
    from zq.client.http.maintenance import download_backup

    with bar_of_bytes("backup") as advance:
        return download_backup(admin, target, advance)


PRIVATE = 0o600


@contextmanager
def new_file(path: Path, *, replace: bool = False) -> Iterator[BinaryIO]:
    """Write a file for its owner alone. It gets its name if the block ends without an error.

    Otherwise nothing of it is left; nor after a kill, if the file system supports files without a
    name. Raises FileExistsError if the file exists and must not be replaced, or OSError.
    """
    if not replace and os.path.lexists(path):
        raise FileExistsError(path)
    folder = path.absolute().parent
    with _opened(folder) as (file, give_name):
        yield file
        file.flush()
        os.fsync(file.fileno())
        give_name(path, replace)
        _sync(folder)


GiveName = Callable[[Path, bool], None]
"""Gives a file its name, and says whether that may replace another file."""


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[BinaryIO, GiveName]]:
    """A new file, and what gives it its name."""
    try:
        descriptor = os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, PRIVATE)
    except OSError:
        # Not every file system supports them. If the directory is at fault, the next line shows it.
        descriptor, beside = tempfile.mkstemp(".part", ".zq-", folder)
        try:
            with os.fdopen(descriptor, "r+b") as file:
                yield file, partial(_rename, Path(beside))
        finally:
            Path(beside).unlink(missing_ok=True)
        return
    with os.fdopen(descriptor, "r+b") as file:
        yield file, partial(_link, f"/proc/self/fd/{descriptor}")


def _rename(beside: Path, path: Path, replace: bool) -> None:
    """Name a file that has another name. FAT, CIFS and others have no hard links."""
    if replace:
        beside.replace(path)
        return
    # An empty file holds the name, since a rename alone would replace what came meanwhile.
    path.touch(PRIVATE, exist_ok=False)
    try:
        beside.replace(path)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _link(nameless: str, path: Path, replace: bool) -> None:
    """Name a file that has no name."""
    if not replace:
        _give_link(nameless, path)
        return
    # A link replaces nothing, but a rename does.
    beside = path.absolute().parent / f".zq-{os.getpid()}.part"
    _give_link(nameless, beside)
    try:
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _give_link(nameless: str, path: Path) -> None:
    # Python passes the flag to follow a link on only if it also passes a directory. The number of
    # the directory is ignored, since the name is absolute.
    os.link(nameless, path, src_dir_fd=0, follow_symlinks=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@click.command(
    short_help="Make a data directory from a backup.",
    epilog="""\b
Examples:
  zq restore /var/backups/zq.tar.gz --root-dir /var/lib/zq
  ssh vault "cat zq.tar.gz" | zq restore - --root-dir /var/lib/zq

The directory may have keys, certificates and logs, but no database: move an old one away, with all
that begins with zq.db. If the command fails, it leaves nothing behind; if it is killed, no server
starts on the directory before `zq restore` has been run again. Jobs keep their ids. Jobs that were
in flight are ready. The history has a new epoch, and new jobs get ids that no other server gives,
also if the server of the backup still runs.
""",
)
@click.argument("path", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@of_directory("Directory of the data, which is to have no database.", file_okay=False)
@click.pass_context
def restore(ctx: click.Context, path: str, root_dir: Path) -> None:
    """Give a directory that has no database the contents of the backup PATH.

    Exit codes: 0, 2 if the directory has a database, 74 if the backup is damaged or the disk fails,
    75 if another zq has the directory, 78 if the backup is of a newer zq or of another program.
    """
    from zq import instance
    from zq.store.errors import (
        DamagedDatabase,
        DatabaseTooNew,
        DirectoryInUse,
        DirectoryNotEmpty,
        ForeignDatabase,
        StoreError,
    )

    require_directory(root_dir)
    try:
        _tell_place(root_dir)
        with click.open_file(path, "rb") as archive, bar_of_bytes("restore") as advance:
            instance.restore(archive, root_dir, advance)
    except DirectoryNotEmpty as error:
        raise click.UsageError(str(error)) from None
    except DirectoryInUse as error:
        end(ctx, str(error), EX_IN_USE)
    except (DatabaseTooNew, ForeignDatabase) as error:
        end(ctx, f"{path}: {error}", EX_CONFIG)
    except DamagedDatabase as error:
        end(ctx, f"{path} cannot be restored: {error}", EX_DATABASE)
    except (StoreError, OSError) as error:
        end(ctx, f"{path} cannot be restored into {root_dir}: {error}", EX_DATABASE)
    say(f"restored into {root_dir}: `zq check` looks for damage, `zq serve` starts a server on it")


def _tell_place(root_dir: Path) -> None:
    """Say which directory it is, also where a variable names a server, to which nothing goes."""
    url = os.environ.get("ZQ_URL")
    other = f"; ZQ_URL ({url}) plays no part" if url else ""
    say(one_line(f"directory: {root_dir.absolute()}{other}"), err=True)
