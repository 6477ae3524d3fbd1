"""`zq pause` and `zq resume`: set whether a queue delivers jobs."""

import time
from typing import TYPE_CHECKING

import click

from zq.cli.filtering import CREATE, check_queue, warn_of_queues
from zq.cli.output import print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import one_line, say
from zq.cli.words import MILLISECONDS, NAME

if TYPE_CHECKING:
    from zq.model.settings import SettingsPatch


@click.command(
    epilog="""\b
Examples:
  zq pause mail
  zq pause mail --for 2h --reason "the provider is down"
  zq resume mail

The queue still accepts jobs, and jobs in flight go on. The queue stays paused over restarts until
its time is over, or until `zq resume`. Lists and the operators' page show the reason. Exit codes:
0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("queue", type=NAME)
@click.option(
    "--for", "length", type=MILLISECONDS, metavar="TIME", help="How long. [until zq resume]"
)
@click.option("--reason", metavar="TEXT", help="Why, for those who see the queue paused.")
@CREATE
@talks
def pause(remote: Remote, queue: str, length: int | None, reason: str | None, create: bool) -> None:
    """Stop delivering the jobs of QUEUE."""
    from zq.model.settings import SettingsPatch

    check_queue(remote, queue, create=create)
    until = None if length is None else time.time_ns() // 1_000_000 + length
    patch = SettingsPatch(paused=True, pause_reason=reason, paused_until=until, paused_by=None)
    _set(remote, queue, patch)


@click.command(
    epilog="""\b
Examples:
  zq resume mail

Exit codes: 0 also for a queue that was not paused, 1 if the server refuses, 2 for wrong usage, 3 if
no server answers.
"""
)
@click.argument("queue", type=NAME)
@talks
def resume(remote: Remote, queue: str) -> None:
    """Deliver the jobs of QUEUE again."""
    from zq.model.settings import SettingsPatch

    warn_of_queues(remote, [queue])
    _set(remote, queue, SettingsPatch(paused=None))


def _set(remote: Remote, queue: str, patch: "SettingsPatch") -> None:
    from zq.model.pauses import pause_text

    settings = remote.run(remote.backend.change_settings(queue, patch))
    if remote.as_json:
        print_json({"queue": queue, "paused": bool(settings.paused)})
    else:
        does = f"is {pause_text(settings)}" if settings.paused else "delivers its jobs"
        say(f"{one_line(queue)} {does}")
