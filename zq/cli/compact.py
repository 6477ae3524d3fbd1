"""`zq compact`: gives the free space of a running server back to the file system."""

from typing import TYPE_CHECKING

import click

from zq.cli.remote import administers
from zq.cli.terminal import say

if TYPE_CHECKING:
    from zq.client.http.address import Address


@click.command(
    short_help="Give free space of the database back to the disk.",
    epilog="""\b
Examples:
  zq compact
  zq compact --url http://10.0.0.7:7890

The server goes on working. It moves what is stored together, a little at a time, makes the database
shorter, and empties its log. It does so by itself when it is idle, but keeps some space for the
next burst, which this command does not. If the server has access keys, the key needs the scope
manage. Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
@administers
def compact(admin: "Address") -> None:
    """Give all free space of a running server's database back; return when that is done."""
    from zq.client.http.maintenance import compact as run

    run(admin)
    say("compacted")
