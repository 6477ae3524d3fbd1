"""`zq producers`: shows what producers have stored, and forgets them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from zq.cli.drawing import tabled
from zq.cli.output import ago, print_json, print_table
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section
from zq.cli.terminal import one_line, say

if TYPE_CHECKING:
    from zq.client.backend import Backend
    from zq.features.producers.client import NumberedJobs, ProducerDocument, ServerProducers

COLUMNS = ("PRODUCER", "EPOCH", "LAST", "STORED")
LEAST = ("EPOCH",)
"""The columns that narrow terminals do without."""

PAGE = 1000

FILE_EPOCH = "file"
"""The epoch of every file: its first job has number 1 for good."""


@click.group(
    epilog="""\b
Examples:
  zq producers list
  zq producers forget device-17

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
def producers() -> None:
    """Show and forget producers, whose jobs are numbered."""


@producers.command(
    epilog="""\b
Examples:
  zq producers list
  zq producers list --json

LAST is the number of the last job that the producer has stored in its epoch. With --json, each
producer is a line, as GET /producers has it.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@tabled
@talks
def list(remote: Remote) -> None:
    """List producers by name, with the last number of each."""
    found = _found(remote)
    if remote.as_json:
        for producer in found:
            print_json(msgspec.to_builtins(producer))
        return
    print_table(COLUMNS, map(_row, found), least=LEAST)


@producers.command(
    epilog="""\b
Examples:
  zq producers forget device-17

The next request of this name begins a new epoch, with number 1. What the producer has stored so far
would be stored again if it were repeated: forget only producers that are gone.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("name")
@talks
def forget(remote: Remote, name: str) -> None:
    """Forget the producer NAME, and so its numbers."""
    remote.run(_producers(remote).forget(name))
    remote.tell()
    if remote.as_json:
        print_json({"forgotten": name})
    else:
        say(f"the producer {one_line(name)} is forgotten")


def _producers(remote: Remote) -> "ServerProducers":
    from zq.features.producers.client import ServerProducers

    return ServerProducers(remote.backend.ask)


def _found(remote: Remote) -> Iterator["ProducerDocument"]:
    after: str | None = ""
    while after is not None:
        page, after = remote.run(_producers(remote).page(after, PAGE))
        yield from page


def _row(producer: "ProducerDocument") -> tuple[Any, ...]:
    return producer.name, producer.epoch, producer.last, ago(producer.stored_at)


def numbering(backend: "Backend", name: str) -> "NumberedJobs":
    """The sender of a file's jobs under a producer's name. All of a file is one epoch."""
    from zq.features.producers.client import NumberedJobs

    return NumberedJobs(backend, name, FILE_EPOCH)


COMMANDS = {Section.QUEUES: (producers,)}
NUMBERING = numbering
"""How `zq push --producer` numbers the jobs of a file."""
