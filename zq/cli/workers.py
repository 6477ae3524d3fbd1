"""`zq workers`: shows who takes jobs, and drops the connection of a worker."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from zq.cli.drawing import tabled
from zq.cli.output import ago, print_json, print_table
from zq.cli.remote import Remote, talks
from zq.cli.terminal import counted, one_line, say
from zq.cli.words import NAME

if TYPE_CHECKING:
    from zq.wire.documents import OpenWorker

COLUMNS = (
    *("WORKER", "QUEUES", "BUSY", "OF", "HOLDS", "WINDOW", "DELIVERED", "OPENED", "ADDRESS"),
    "STATE",
)
LEAST = ("ADDRESS", "DELIVERED", "WINDOW", "HOLDS", "OPENED")
"""The columns that narrow terminals do without, the least important one first."""


@click.group(
    epilog="""\b
Examples:
  zq workers list
  zq workers drop worker-1
"""
)
def workers() -> None:
    """Show the workers that have a stream of jobs open, and drop one."""


@workers.command(
    "list",
    epilog="""\b
Examples:
  zq workers list
  zq workers list --json

Each open stream is a row, the oldest first. BUSY is how many of its slots have a job, and OF how
many slots there are. HOLDS is how many jobs it has, and WINDOW how many it may have. With --json,
each is a line as in GET /workers. Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if
no server answers.
""",
)
@tabled
@talks
def list_(remote: Remote) -> None:
    """List the open streams of workers."""
    found = remote.run(remote.backend.operations.workers())
    if remote.as_json:
        _print(found)
    else:
        print_table(COLUMNS, map(_row, found), least=LEAST)


@workers.command(
    epilog="""\b
Examples:
  zq workers drop worker-1

All its streams are closed. Its jobs go back to their queues, and no attempt is spent. A worker that
still runs may come back. Exit codes: 0, 1 if it has no stream open or the server refuses, 2 for
wrong usage, 3 if no server answers.
"""
)
@click.argument("worker", type=NAME)
@talks
def drop(remote: Remote, worker: str) -> None:
    """Close the streams of WORKER."""
    closed = remote.run(remote.backend.operations.drop(worker))
    if remote.as_json:
        _print(closed)
    else:
        say(f"{counted(len(closed), 'stream')} of {one_line(worker)} closed")


def _print(found: "Sequence[OpenWorker]") -> None:
    for worker in found:
        print_json(worker)


def _row(worker: "OpenWorker") -> tuple[object, ...]:
    state = "draining" if worker.draining else "takes jobs"
    return (
        *(worker.id, ",".join(worker.queues) or "all", worker.busy, worker.concurrency),
        *(len(worker.held), worker.prefetch),
        *(worker.delivered, ago(worker.since), worker.address, state),
    )
