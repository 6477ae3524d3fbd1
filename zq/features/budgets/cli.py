"""`zq budgets`: shows the budgets of a server, and changes them."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from zq.cli.drawing import tabled
from zq.cli.output import moment, print_json, print_table
from zq.cli.remote import Refused, Remote, talks
from zq.cli.rooms import Section
from zq.cli.terminal import counted, one_line, say
from zq.cli.words import NAME, NAMES, SECONDS
from zq.features.budgets.model import MOST_TOKENS
from zq.features.sweeps.cli import YES, agreed, tell_kept
from zq.setting import DURATION

if TYPE_CHECKING:
    from zq.client.values import JobQuery
    from zq.features.budgets.client import BindingVerb, LimitPatch, ShownBudget


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
    tell_kept(report.kept, "stay as they are")


COLUMNS = ("BUDGET", "LIMIT", "AVAILABLE", "WAITING", "UNFINISHED", "HELD UNTIL")
LEAST = ("UNFINISHED", "AVAILABLE", "HELD UNTIL")
"""The columns that narrow terminals do without, the least important one first."""

TOKENS = click.IntRange(1, MOST_TOKENS)


@click.group(
    short_help="Show and change budgets, which limit how many jobs run.",
    epilog="""\b
Examples:
  zq budgets list
  zq budgets set crm 2
  zq budgets set crm-rate 100 --per 1m --burst 10
  zq budgets bind crm --queue sync
  zq budgets unbind crm --queue sync
  zq budgets hold crm 20s
  zq budgets reopen crm
  zq budgets remove crm

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
def budgets() -> None:
    """Show and change budgets, which limit how many jobs run at once, or in a period."""


budgets.add_command(bind)
budgets.add_command(unbind)


@budgets.command(
    epilog="""\b
Examples:
  zq budgets list
  zq budgets list --json

AVAILABLE is how many tokens there are now, WAITING how many ready jobs draw from the budget, and
UNFINISHED how many jobs in all. A budget that is held pays nothing before the time HELD UNTIL. With
--json, each budget is a line, as GET /budgets has it.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@tabled
@talks
def list(remote: Remote) -> None:
    """List all budgets."""
    found = remote.run(remote.backend.budgets.all())
    if remote.as_json:
        for budget in found:
            print_json(msgspec.to_builtins(budget))
        return
    # Budgets are seldom held, and the column is wide.
    shown = COLUMNS if any(each.held_until is not None for each in found) else COLUMNS[:-1]
    rows = [_row(each)[: len(shown)] for each in found]
    print_table(shown, rows, least=[name for name in LEAST if name in shown])


@budgets.command(
    epilog="""\b
Examples:
  zq budgets show crm
  zq budgets show crm --json

`zq jobs --budget crm` lists the jobs that draw from it.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("key", type=NAME)
@talks
def show(remote: Remote, key: str) -> None:
    """Show the budget KEY."""
    budget = remote.run(remote.backend.budgets.get(key))
    if remote.as_json:
        print_json(msgspec.to_builtins(budget))
        return
    _, *values = _row(budget)
    values += moment(budget.created_at), moment(budget.updated_at)
    for name, value in zip((*COLUMNS[1:], "CREATED", "CHANGED"), values, strict=True):
        if value != "":
            say(f"{name.lower().ljust(10)}  {value}")


@budgets.command(
    epilog="""\b
Examples:
  zq budgets set crm 2                              two jobs at once
  zq budgets set crm-rate 100 --per 1m --burst 10   100 a minute, ten at a time
  zq budgets set crm-rate 50                        half of that
  zq budgets set crm-rate --no-burst

What is not given stays as it is. A new budget needs ALLOCATION. A change counts at once; jobs that
run are left alone.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("key", type=NAME)
@click.argument("allocation", type=TOKENS, required=False)
@click.option("--per", type=SECONDS, help="So many tokens come in this time: 500ms, 1m, 1h.")
@click.option("--at-once", is_flag=True, help="A job gives its tokens back when it ends.")
@click.option("--burst", type=TOKENS, help="Most tokens that gather. [default: ALLOCATION]")
@click.option("--no-burst", is_flag=True, help="As many gather as ALLOCATION says.")
@talks
def set(remote: Remote, key: str, allocation: int | None, **options: Any) -> None:
    """Create the budget KEY, or change its limit to ALLOCATION tokens."""
    from zq.client.errors import BackendError
    from zq.features.budgets.client_limits import Limit

    patch, on_server = _patch(allocation, options), remote.backend.budgets
    try:
        shown = remote.run(on_server.change(key, patch))
    except BackendError as error:
        if error.code != "budget_not_found":
            raise
        if allocation is None:
            raise Refused(f"there is no budget {one_line(key)}: give ALLOCATION as well") from None
        if options["burst"] is not None and options["per"] is None:
            raise click.UsageError("--burst goes with --per") from None
        limit = Limit(allocation, options["per"], options["burst"])
        shown = remote.run(on_server.put(key, limit))
    if remote.as_json:
        print_json(msgspec.to_builtins(shown))
    else:
        say(f"{one_line(key)} allows {_limit(shown)}")


@budgets.command(
    epilog="""\b
Examples:
  zq budgets hold llm-tokens 20s
  zq budgets reopen llm-tokens

Jobs that run are left alone. A hold that lasts longer stays: reopen ends it.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("key", type=NAME)
@click.argument("time", type=SECONDS)
@talks
def hold(remote: Remote, key: str, time: float) -> None:
    """Let no job draw from the budget KEY for a TIME, such as 20s."""
    _tell_hold(remote, remote.run(remote.backend.budgets.hold(key, time)))


@budgets.command(
    epilog="""\b
Examples:
  zq budgets reopen llm-tokens

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("key", type=NAME)
@talks
def reopen(remote: Remote, key: str) -> None:
    """End the hold of the budget KEY at once."""
    _tell_hold(remote, remote.run(remote.backend.budgets.reopen(key)))


def _tell_hold(remote: Remote, shown: "ShownBudget") -> None:
    if remote.as_json:
        print_json(msgspec.to_builtins(shown))
        return
    until = "" if shown.held_until is None else f" until {moment(shown.held_until)}"
    say(f"{one_line(shown.key)} is {'held' if until else 'open'}{until}")


@budgets.command(
    epilog="""\b
Examples:
  zq budgets remove crm

A budget that unfinished jobs or schedules need stays: see `zq jobs --budget` and `zq cron list`.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("key", type=NAME)
@talks
def remove(remote: Remote, key: str) -> None:
    """Remove the budget KEY."""
    remote.run(remote.backend.budgets.remove(key))
    if remote.as_json:
        print_json({"key": key, "removed": True})
    else:
        say(f"{one_line(key)} is removed")


def _patch(allocation: int | None, options: dict[str, Any]) -> "LimitPatch":
    from zq.features.budgets.client import LimitPatch

    per, burst, no_burst = options["per"], options["burst"], options["no_burst"]
    if per == 0:
        raise click.UsageError("--per is a time of at least 1ms")
    if options["at_once"] and (per is not None or burst is not None):
        raise click.UsageError("--at-once goes with neither --per nor --burst")
    if no_burst and burst is not None:
        raise click.UsageError("give --burst or --no-burst, not both")
    said = {"allocation": allocation, "per": per, "burst": burst}
    said = {name: value for name, value in said.items() if value is not None}
    said |= ({"per": None} if options["at_once"] else {}) | ({"burst": None} if no_burst else {})
    if not said:
        raise click.UsageError("say what to set: ALLOCATION, --per, --at-once, --burst, --no-burst")
    return LimitPatch(**said)


def _row(budget: "ShownBudget") -> tuple[object, ...]:
    known = (budget.available, budget.waiting, budget.unfinished)
    held = "" if budget.held_until is None else moment(budget.held_until)
    return budget.key, _limit(budget), *("" if each is None else each for each in known), held


def _limit(budget: "ShownBudget") -> str:
    strategy = budget.strategy
    if strategy.duration_ms is None:
        return f"{budget.allocation:,} at once"
    burst = "" if strategy.burst is None else f", burst {strategy.burst:,}"
    return f"{budget.allocation:,} per {DURATION.show(strategy.duration_ms)}{burst}"


COMMANDS = {Section.QUEUES: (budgets,)}
