"""`zq requeue`, `cancel` and `delete` change many jobs; `zq sweeps` shows and undoes that."""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click
import msgspec
from msgspec.structs import replace

from zq.cli.drawing import Cells, tabled, watch
from zq.cli.filtering import FilterWords, filtering, gathering, once, warn_of_queues
from zq.cli.output import ago, cells_of, job_document, print_json, print_table, short
from zq.cli.remote import Refused, Remote, one_by_one, spinning, talks
from zq.cli.rooms import Section
from zq.cli.terminal import counted, escaped, one_line, say
from zq.cli.words import NAME, NAMES

if TYPE_CHECKING:
    from zq.client.values import JobQuery
    from zq.features.sweeps.client import SweepDocument, SweepVerb


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
    "too_many_budgets": "they draw from as many budgets as a job may",
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


@click.command(
    short_help="Make dead jobs ready again.",
    epilog="""\b
Examples:
  zq requeue 01JD0000000000000000000000
  zq requeue --queue mail                    all jobs that died in mail; it counts and asks first
  zq requeue --error 1-9f2c --yes            all that died of this cause
  zq requeue --queue mail-dead --limit 100   also jobs that a dead-letter queue holds

Jobs are ready at once, in the queue where they died, and may be tried as often as new ones. Jobs
that die after it was asked are left alone if they are new. It says why others stay. Exit codes: 0,
1 if a job is not dead or unknown (the others are requeued nevertheless), if nothing was to be
changed after all or the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="Requeue at most this many jobs of the queue."
)
@choosing
@talks
def requeue(remote: Remote, choice: Choice, limit: int | None) -> None:
    """Make dead jobs ready again: those with the given IDs, or all that match the options."""
    query = choice.query()
    if query is None:
        if limit is not None:
            raise click.UsageError("--limit needs an option such as --queue")
        one_by_one(
            remote,
            choice.ids,
            remote.backend.requeue,
            lambda job: f"{one_line(job.id)} is {job.status} in {one_line(job.queue)}",
            "requeued",
            job_document,
        )
        return
    bound = agreed(remote, "requeue", query, "This requeues {}", yes=choice.yes, most=limit)
    with spinning("requeuing dead jobs"):
        done = remote.run(remote.backend.sweeps.requeue(bound, limit, reason=choice.reason))
    if remote.as_json:
        print_json(msgspec.to_builtins(done))
        return
    say(f"{counted(done.requeued, 'job')} requeued")
    tell_kept(done.kept, "stay as they are")


@click.command(
    short_help="Delete jobs for good.",
    epilog="""\b
Examples:
  zq delete 01JD0000000000000000000000
  zq delete --status dead --queue mail         it counts the jobs and asks first
  zq delete --queue mail --yes --reason test   also those that run

Jobs are deleted in any status, unless --status is given, with their errors and results. A deletion
cannot be taken back; zq cancel keeps the jobs. A deletion of many jobs leaves alone the jobs that
come after it was asked for. Exit codes: 0, 1 if a job is unknown (the others are deleted
nevertheless), if nothing was to be changed after all or the server refuses, 2 for wrong usage, 3 if
no server answers.
""",
)
@choosing
@talks
def delete(remote: Remote, choice: Choice) -> None:
    """Delete jobs for good: those with the given IDs, or all that match the options."""
    query = choice.query()
    if query is None:
        one_by_one(
            remote,
            choice.ids,
            lambda id: _deleted(remote, id),
            lambda id: f"{one_line(id)} is deleted",
            "deleted",
            lambda id: {"id": id, "deleted": True},
        )
        return
    bound = agreed(remote, "delete", query, "This deletes {} for good", yes=choice.yes)
    with spinning("deleting jobs"):
        count = remote.run(remote.backend.sweeps.delete(bound, reason=choice.reason))
    if remote.as_json:
        print_json({"deleted": count})
    else:
        say(f"{counted(count, 'job')} deleted")


async def _deleted(remote: Remote, id: str) -> str:
    await remote.backend.operations.delete(id)
    return id


def _way_back(sweep: str | None) -> str:
    return f"; zq sweeps undo {one_line(sweep)} takes it back" if sweep else ""


@click.command(
    short_help="Cancel jobs, by their ids or by what they have in common.",
    epilog="""\b
Examples:
  zq cancel 01JD0000000000000000000000
  zq cancel 01JD0000000000000000000000 --force   also while it runs: its worker is told to stop
  zq cancel --queue mail --type letter           all that wait; it counts them and asks first
  zq cancel --queue mail --yes --reason "wrong list"

A cancellation of many jobs leaves alone the jobs that come after it was asked for. Any
cancellation can be taken back: see zq sweeps undo. Exit codes: 0 if the jobs are cancelled, 1 if
one runs, has finished or is unknown, or if nothing was to be changed after all, 2 for wrong usage,
3 if no server answers.
""",
)
@click.option(
    "--force", is_flag=True, help="Also cancel jobs that run. What they have done is not undone."
)
@choosing
@talks
def cancel(remote: Remote, choice: Choice, force: bool) -> None:
    """Cancel jobs: those with the given IDs, or all that match the options."""
    query = choice.query()
    if query is None:
        one_by_one(
            remote,
            choice.ids,
            lambda id: remote.backend.cancel(id, force=force, undo=True),
            lambda job: f"{one_line(job.id)} is {job.status}{_way_back(job.undo)}",
            "cancelled",
            job_document,
        )
        return
    bound = agreed(remote, "cancel", query, "This cancels {}", yes=choice.yes, force=force)
    with spinning("cancelling jobs"):
        verb = remote.backend.sweeps.cancel(bound, force=force, reason=choice.reason)
        count = remote.run(verb)
    if remote.as_json:
        print_json({"cancelled": count})
    else:
        say(f"{counted(count, 'job')} cancelled")


COLUMNS = ("ID", "VERB", "STATE", "CHANGED", "OF", "UNDONE", "BEGAN", "WHO", "REASON", "FILTER")
LEAST = ("REASON", "WHO", "OF", "UNDONE", "BEGAN")
"""The columns that narrow terminals do without, the least important one first."""


@click.group(
    epilog="""\b
Examples:
  zq sweeps list
  zq sweeps stop 17
  zq sweeps undo 17
"""
)
def sweeps() -> None:
    """Show changes of many jobs, stop one, take a cancellation back."""


@sweeps.command(
    "list",
    epilog="""\b
Examples:
  zq sweeps list
  zq sweeps list --watch                     again every two seconds, until Ctrl-C
  zq sweeps list --limit 3 --json

Those that run come first, with their progress, then those that have changed jobs, the latest first.
OF is what was counted before. With --json, each is a line as in GET /sweeps. Exit codes: 0, 1 if
the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 500),
    default=20,
    show_default=True,
    help="Show at most this many that have ended.",
)
@click.option("--watch", "watching", is_flag=True, help="Show the table again and again.")
@tabled
@talks
def list_(remote: Remote, limit: int, watching: bool) -> None:
    """Show the changes of many jobs that run, and the last ones that have ended."""
    if remote.as_json:
        if watching:
            raise click.UsageError("give --watch or --json, not both")
        for each in _found(remote, limit):
            print_json(msgspec.to_builtins(each))
        return
    if watching:
        watch(lambda: _cells(remote, limit))
    print_table(COLUMNS, map(_row, _found(remote, limit)), least=LEAST)


@sweeps.command(
    epilog="""\b
Examples:
  zq sweeps stop 17

It stops before its next 1,000 jobs. What it has changed stays; see zq sweeps undo. Exit codes: 0, 1
if it does not run or the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("id", type=NAME)
@talks
def stop(remote: Remote, id: str) -> None:
    """Stop the running change ID."""
    remote.run(remote.backend.sweeps.stop(id))
    if remote.as_json:
        print_json({"id": id, "stopped": True})
    else:
        say(f"sweep {one_line(id)} stops")


@sweeps.command(
    epilog="""\b
Examples:
  zq sweeps undo 17
  zq sweeps undo 17 --yes --reason "it was the wrong queue"

The jobs that it has cancelled wait again in their old places, and no others. Those stay cancelled
whose unique key another job has, whose time to live is over, whose budget is gone or too small,
whose queue is full, or which do not match the schema of their queue. Exit codes: 0, 1 if there is
nothing to take back or the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("id", type=NAME)
@REASON
@YES
@talks
def undo(remote: Remote, id: str, reason: str | None, yes: bool) -> None:
    """Take back the jobs that the change ID has cancelled."""
    if not yes:
        seen = remote.run(remote.backend.sweeps.get(id))
        if seen.left:
            many = f"{'' if seen.exact else 'over '}{seen.left:,} of {seen.changed:,} jobs"
            ask(f"This takes back {many} that sweep {id} has cancelled")
    with spinning("taking jobs back"):
        done = remote.run(remote.backend.sweeps.undo(id, reason=reason))
    if remote.as_json:
        print_json(msgspec.to_builtins(done))
        return
    say(f"{counted(done.undone, 'job')} brought back")
    tell_kept(done.kept, "stay cancelled")
    if done.gone:
        say(f"{done.gone:,} are no longer stored")


def _found(remote: Remote, limit: int) -> "list[SweepDocument]":
    running = remote.run(remote.backend.sweeps.running())
    return running + remote.run(remote.backend.sweeps.ended(limit))


def _cells(remote: Remote, limit: int) -> Cells:
    return cells_of(COLUMNS, map(_row, _found(remote, limit)), least=LEAST)


def _row(sweep: "SweepDocument") -> tuple[object, ...]:
    state = sweep.state if sweep.progress == 1 else f"{sweep.state} {sweep.progress:.0%}"
    known = (sweep.counted, sweep.undone or msgspec.UNSET)
    counted, undone = ["" if each is msgspec.UNSET else f"{each:,}" for each in known]
    named = " ".join(
        f"{name}={','.join(value) if isinstance(value, list) else value}"
        for name, value in sweep.by.items()
        if name != "upto"
    )
    return (
        *(sweep.id, sweep.verb, state, f"{sweep.changed:,}", counted, undone),
        *(ago(sweep.started_at), sweep.actor or "", short(sweep.reason), short(named)),
    )


COMMANDS = {Section.JOBS: (requeue, cancel, delete), Section.LOOK_BACK: (sweeps,)}
