"""`zq mark`: gives this moment a name, for the charts."""

import click

from zq.cli.output import print_json
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section
from zq.cli.terminal import one_line, say


@click.command(
    short_help="Name this moment in the charts, such as that of a release.",
    epilog="""\b
Examples:
  zq mark "release 1.8.2"

The charts of the operators' page show the name, which has up to 200 characters. The latest 100
marks are kept. Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
@click.argument("text")
@talks
def mark(remote: Remote, text: str) -> None:
    """Give this moment the name TEXT, such as that of a release that was deployed."""
    from zq.features.trends.verbs import MARK

    made = remote.run(remote.backend.ask(MARK, {"text": text}))
    if remote.as_json:
        print_json(made)
    else:
        say(f"{one_line(made.text)} is marked")


COMMANDS = {Section.LOOK_BACK: (mark,)}
