"""`zq pause` and `zq resume`: whether a queue delivers jobs."""

import click

from zq.cli.output import print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import one_line, say
from zq.cli.words import NAME


@click.command(
    epilog="""\b
Examples:
  zq pause mail
  zq resume mail

Jobs still come in, and those in flight go on. It holds over restarts, until `zq resume`. Ends with
0, with 1 where the server refuses, 2 for a wrong word, 3 where no server answers.
"""
)
@click.argument("queue", type=NAME)
@talks
def pause(remote: Remote, queue: str) -> None:
    """Deliver nothing more of QUEUE."""
    _set(remote, queue, True)


@click.command(
    epilog="""\b
Examples:
  zq resume mail

Ends with 0, also for a queue that was not paused, with 1 where the server refuses, 2 for a wrong
word, 3 where no server answers.
"""
)
@click.argument("queue", type=NAME)
@talks
def resume(remote: Remote, queue: str) -> None:
    """Deliver the jobs of QUEUE again."""
    _set(remote, queue, None)


def _set(remote: Remote, queue: str, paused: bool | None) -> None:
    from zq.model.settings import SettingsPatch

    patch = SettingsPatch(paused=paused)
    settings = remote.run(remote.backend.change_settings(queue, patch))
    if remote.as_json:
        print_json({"queue": queue, "paused": bool(settings.paused)})
    else:
        does = "is paused" if settings.paused else "delivers its jobs"
        say(f"{one_line(queue)} {does}")
