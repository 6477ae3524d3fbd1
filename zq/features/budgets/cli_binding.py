"""`zq budgets bind` and `unbind`: change what waiting jobs draw from a budget."""

from typing import TYPE_CHECKING, Any

import click

from zq.cli.output import print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import counted, say
from zq.cli.words import NAME, NAMES
from zq.features.budgets.model import MOST_TOKENS
from zq.features.sweeps.cli_choosing import YES, agreed

if TYPE_CHECKING:
    from zq.client.values import JobQuery
    from zq.features.budgets.client import BindingVerb

_CHOICE = (
    click.option("--all", "everything", is_flag=True, help="All jobs that wait."),
    click.option("--type", "type_", type=NAMES, default=(), help="Jobs of these types."),
    click.option("--queue", type=NAMES, default=(), help="Jobs of these queues."),
    YES,
    click.argument("ids", nargs=-1, type=NAME, metavar="[ID]…"),
)


def _choosing(command: Any) -> Any:
    """Give a command the words and options that choose jobs."""
    for parameter in _CHOICE:
        command = parameter(command)
    return command


@click.command(
    epilog="""\b
Examples:
  zq budgets bind crm 01JD0000000000000000000000
  zq budgets bind crm --queue sync,mail --cost 2
  zq budgets bind crm --all --yes

It counts the jobs and asks, unless they are named by their ids. Jobs that come later are left
alone. Only jobs that wait can change. Those in flight are named, and stay as they are.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("key", type=NAME)
@_choosing
@click.option(
    "--cost",
    type=click.IntRange(1, MOST_TOKENS),
    default=1,
    show_default=True,
    help="How many tokens a job needs.",
)
@talks
def bind(remote: Remote, key: str, cost: int, yes: bool, **chosen: Any) -> None:
    """Make waiting jobs draw from the budget KEY, also if they draw from it already."""
    what = f"This binds {{}} to {key}"
    _bind(remote, _agreed(remote, _chosen(**chosen), what, yes), "put", key, cost)


@click.command(
    epilog="""\b
Examples:
  zq budgets unbind crm 01JD0000000000000000000000
  zq budgets unbind crm --queue sync
  zq budgets unbind crm --all --yes

It counts the jobs and asks, unless they are named by their ids. Jobs that come later are left
alone. Only jobs that wait can change. Those in flight are named, and stay as they are.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("key", type=NAME)
@_choosing
@talks
def unbind(remote: Remote, key: str, yes: bool, **chosen: Any) -> None:
    """Make waiting jobs no longer draw from the budget KEY."""
    query = _chosen(**chosen)
    remote.run(remote.backend.budgets.get(key))  # Refuse a wrong key here, or nothing happens.
    what = f"This unbinds {{}} from {key}"
    _bind(remote, _agreed(remote, query, what, yes), "remove", key)


def _chosen(
    ids: tuple[str, ...], queue: tuple[str, ...], type_: tuple[str, ...], everything: bool
) -> "JobQuery":
    from zq.client.values import JobQuery

    if everything == bool(ids or queue or type_):
        raise click.UsageError("choose jobs by their ids, --queue or --type, or give --all")
    return JobQuery(queues=queue, types=type_, ids=ids)


def _agreed(remote: Remote, query: "JobQuery", what: str, yes: bool) -> "JobQuery":
    """The query, bound to what was seen. Jobs that are named by their ids need no question."""
    return query if query.ids else agreed(remote, "patch", query, what, yes=yes)


def _bind(remote: Remote, query: "JobQuery", verb: "BindingVerb", key: str, cost: int = 1) -> None:
    from zq.features.budgets.client_limits import Budget

    report = remote.run(remote.backend.budgets.bind_all(query, verb, Budget(key, cost)))
    if remote.as_json:
        print_json(report)
        return
    say(f"{counted(report.changed, 'job')} changed")
    if report.blocked:
        say(f"in flight, and left as they are: {', '.join(report.blocked)}", err=True)
