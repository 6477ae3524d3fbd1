"""`zq audit`: shows what operators have done."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from zq.cli.drawing import tabled
from zq.cli.output import ago, print_json, print_table, short
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section
from zq.cli.words import Moment

if TYPE_CHECKING:
    from zq.features.audit.client import ActionDocument

PAGE = 1000
DEFAULT_LIMIT = 50
COLUMNS = ("SEQ", "WHEN", "WHO", "FROM", "ANSWER", "ACTION")
LEAST = ("SEQ", "FROM", "ANSWER")
"""The columns that narrow terminals do without, the least important one first."""


@click.command(
    epilog="""\b
Examples:
  zq audit                                   the latest fifty actions
  zq audit --since 12h                       all of the last twelve hours
  zq audit --since 2026-01-31 --json >audit.ndjson

An action is a request that changes what operators answer for. The latest comes first. WHO is the
name of the key or of the user. With --json, each action is a line as in GET /audit. On a narrow
terminal, some columns are left out. Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if
no server answers.
"""
)
@click.option("--since", type=Moment(), metavar="WHEN", help="Show all actions since then: 12h.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"Show at most this many. [default: {DEFAULT_LIMIT}, or all with --since]",
)
@tabled
@talks
def audit(remote: Remote, since: int | None, limit: int | None) -> None:
    """Show what operators have done, the latest first."""
    if limit is None and since is None:
        limit = DEFAULT_LIMIT
    actions = _found(remote, since or 0, limit)
    if remote.as_json:
        for action in actions:
            print_json(msgspec.to_builtins(action))
        return
    print_table(COLUMNS, map(_row, actions), least=LEAST)


def _found(remote: Remote, since: int, limit: int | None) -> "Iterator[ActionDocument]":
    from zq.features.audit.client import ServerAudit

    before, latest = None, ServerAudit(remote.backend.ask).latest
    while limit is None or limit > 0:
        size = PAGE if limit is None else min(limit, PAGE)
        page = remote.run(latest(before, size))
        for action in page:
            if action.at < since:
                return
            yield action
        if len(page) < size:
            return
        before = page[-1].seq
        limit = None if limit is None else limit - size


def _row(action: "ActionDocument") -> tuple[object, ...]:
    query = f"?{action.query}" if action.query else ""
    answer = action.status if action.answer is msgspec.UNSET else short(action.answer)
    return (
        *(str(action.seq), ago(action.at), action.actor or "", action.address, str(answer)),
        f"{action.method} {action.path}{query}",
    )


COMMANDS = {Section.LOOK_BACK: (audit,)}
