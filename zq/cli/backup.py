"""`zq backup`: writes a copy of everything that a running server stores."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from zq.cli.admin import administers
from zq.cli.output import print_json
from zq.cli.progress import bar_of_bytes
from zq.cli.remote import Refused
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
    from zq.cli.new_file import new_file

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
