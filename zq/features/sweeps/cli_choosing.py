"""What commands that change many jobs share: choosing them, previewing, asking."""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click
from msgspec.structs import replace

from zq.cli.filtering import FilterWords, filtering, gathering, once
from zq.cli.near_queues import warn_of_queues
from zq.cli.remote import Refused, Remote
from zq.cli.terminal import counted, escaped, one_line, say
from zq.cli.words import NAME, NAMES

if TYPE_CHECKING:
    from zq.client.values import JobQuery
    from zq.features.sweeps.client import SweepVerb

T = TypeVar("T")

YES = click.option("--yes", is_flag=True, help="Do not ask.")
REASON = click.option("--reason", help="Why, for the list of sweeps and the audit.")
UPTO = once(
    "--upto",
    type=NAME,
    metavar="ID",
    help="Leave alone the jobs after this id. [default: those that arrive from now on]",
)

_CHOICE = (
    once("--id", "one_of", type=NAMES, default=(), help="Jobs with these ids, as one change."),
    UPTO,
    REASON,
    YES,
    click.argument("ids", nargs=-1, type=NAME, metavar="[ID]…"),
)

WHY = {
    "key_taken": "another job has their unique key",
    "expired": "their time to live is over",
    "budget_gone": "a budget is gone or too small",
    "queue_full": "their queue is full",
    "schema_mismatch": "they do not match the schema of their queue",
}
"""The reasons why a change leaves jobs as they were, by their codes."""


def tell_kept(kept: Mapping[str, int], stay: str) -> None:
    """Say how many jobs were left as they were, and why."""
    for why, count in kept.items():
        say(f"{count:,} {stay}, for {WHY.get(why, why)}")


class Choice(NamedTuple):
    """The words that choose jobs, and how they are to be changed."""

    words: FilterWords
    ids: tuple[str, ...]
    one_of: tuple[str, ...]
    upto: str | None
    reason: str | None
    yes: bool

    def query(self) -> "JobQuery | None":
        """The filter of many jobs; None if jobs are named by their ids."""
        from zq.client.values import JobQuery
        from zq.model.names import check_name

        for name in self.words.queue:
            check_name("queue", name)
        query = self.words.query(self.one_of)
        if bool(self.ids) == (query != JobQuery()):
            raise click.UsageError(
                "name either jobs by their ids, or many by an option such as --queue NAME"
            )
        if self.ids and (self.upto or self.reason):
            raise click.UsageError("--upto and --reason need an option such as --queue")
        return None if self.ids else replace(query, upto=self.upto)


def choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the words and options that choose jobs, as a `Choice`."""
    return filtering(gathering(command, _CHOICE, "choice", Choice))


def agreed(
    remote: Remote,
    verb: "SweepVerb",
    query: "JobQuery",
    what: str,
    *,
    yes: bool,
    force: bool = False,
    most: int | None = None,
) -> "JobQuery":
    """Preview a change of many jobs and ask. Return the query, bound to what was counted.

    `what` is the change in words, with `{}` for the jobs.
    """
    seen = remote.run(remote.backend.sweeps.preview(verb, query, force=force))
    count = seen.count if most is None else min(seen.count, most)
    exact = seen.exact or count == most
    if not count and not remote.as_json:
        warn_of_queues(remote, query.queues)
    many = f"{'' if exact else 'over '}{counted(count, 'job')}"
    if count and not yes:
        ask(f"{what.replace('{}', many, 1)}, up to {seen.upto}; later ones are left alone")
    return replace(query, upto=seen.upto)


def ask(what: str) -> None:
    """Ask whether this is meant. Raises `Refused`, also if nobody can be asked."""
    if not sys.stdin.isatty():
        raise Refused(f"{one_line(what)}: nobody can be asked here, so give --yes")
    if not click.confirm(f"{escaped(what)}. Go on?", err=True):
        raise Refused("nothing was changed")
