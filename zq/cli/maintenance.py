"""`zq compact`, `zq damage`: what an operator does about the database of a running server."""

from typing import TYPE_CHECKING

import click

from zq.cli.output import print_json
from zq.cli.remote import administers
from zq.cli.terminal import one_line, say

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


@click.command(
    short_help="List the damage of a running server, or acknowledge it.",
    epilog="""\b
Examples:
  zq damage
  zq damage --acknowledge

Damaged rows are kept in the table `quarantine` of the database, each as the statement that would
put it back. A damaged log is kept beside the database as `zq.db-wal.damaged-DATE`. `/health`,
`/metrics` and the operators' page tell of both until they are acknowledged; nothing is deleted by
that. `zq check` looks for more damage while no server runs. If the server has access keys, the key
needs the scope manage. Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server
answers.
""",
)
@click.option("--acknowledge", is_flag=True, help="Note that you know of it: it is named no more.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@administers
def damage(admin: "Address", acknowledge: bool, as_json: bool) -> None:
    """List the damage that a running server goes on in spite of, or acknowledge it."""
    from zq.client.http import maintenance

    if acknowledge:
        count = maintenance.acknowledge_damage(admin)
        if as_json:
            print_json({"acknowledged": count})
        else:
            say(f"acknowledged: {count:,}")
        return
    found = maintenance.damage(admin)
    if as_json:
        print_json(found)
        return
    for row in found["latest"]:
        say(one_line(f"set aside: {row['table']} {row['key']} ({row['reason']})"))
    if (more := found["rows"] - len(found["latest"])) > 0:
        say(f"set aside: {more:,} more; see the table quarantine")
    if not found["rows"]:
        say("nothing damaged is known")
