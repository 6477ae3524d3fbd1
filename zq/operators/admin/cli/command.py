"""`zq top`: the command and its options."""

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from zq.cli.remote import administers
from zq.cli.words import MILLISECONDS

if TYPE_CHECKING:
    from zq.client.http.address import Address

SHORTEST_MS = 50


@click.command(
    epilog="""\b
Examples:
  zq top                                 the server of ZQ_URL, or the one on this machine
  zq top --url http://10.0.0.7:7890      another one
  zq top --once                          print a table, and end
  zq top --json --once | jq .server      for scripts

Keys: Tab shows the next list; j, k and the arrows move; i shows all of a job; p freezes; / finds; D
deletes; ? shows all keys; q quits. Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if
no server answers.
"""
)
@click.option(
    *("-r", "--refresh-rate", "refresh_ms"),
    type=MILLISECONDS,
    default="500ms",
    show_default=True,
    help="Draw this often.",
)
@click.option("--once", is_flag=True, help="Print what there is, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document each time.")
@administers
def top(admin: "Address", refresh_ms: int, once: bool, as_json: bool) -> None:
    """Show the jobs of a server as they change."""
    from zq.operators.admin.cli.plain import print_lines, print_once

    if refresh_ms < SHORTEST_MS:
        raise click.UsageError(f"--refresh-rate is at least {SHORTEST_MS}ms")
    if as_json:
        asyncio.run(print_lines(admin, refresh_ms / 1000, once=once))
    elif once or not (sys.stdout.isatty() and sys.stdin.isatty()):
        asyncio.run(print_once(admin))
    else:
        _run(admin, refresh_ms / 1000)


def _run(admin: "Address", refresh_s: float) -> None:
    try:
        from zq.operators.admin.cli.app import TopApp
    except ModuleNotFoundError as error:
        if error.name != "textual":
            raise
        raise click.UsageError(
            "the display needs textual: pip install 'zq-queue[top]', or use --once"
        ) from None
    TopApp(admin, refresh_s).run()
