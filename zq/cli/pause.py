"""`zq pause` and `zq resume`: set whether a queue delivers jobs."""

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

The queue still accepts jobs, and jobs in flight go on. The queue stays paused over restarts until
`zq resume`. Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("queue", type=NAME)
@talks
def pause(remote: Remote, queue: str) -> None:
    """Stop delivering the jobs of QUEUE."""
    _set(remote, queue, True)


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
