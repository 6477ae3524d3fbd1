"""`zq wait`: waits until a job has finished."""

import time
from typing import TYPE_CHECKING

import click
import msgspec

from zq.cli.output import print_json
from zq.cli.remote import Refused, Remote, talks
from zq.cli.terminal import one_line
from zq.cli.words import MILLISECONDS, NAME

if TYPE_CHECKING:
    from zq.client.values import JobOutcome

ONE_REQUEST_MS = 30_000
"""The longest time that a server waits in one request. After that it is asked again."""


@click.command(
    epilog="""\b
Examples:
  zq wait 01JD0000000000000000000000
  zq wait 01JD0000000000000000000000 --timeout 5m --json

The result is printed as JSON, if the job has one. Exit codes: 0 if the job is completed, 1 if it is
dead, cancelled, expired, unknown or not finished in time, 2 for wrong usage, 3 if no server
answers.
"""
)
@click.argument("id", type=NAME)
@click.option("--timeout", type=MILLISECONDS, help="Wait no longer than this: 500ms, 30s, 1h.")
@talks
def wait(remote: Remote, id: str, timeout: int | None) -> None:
    """Wait until the job ID has finished, and print its result."""
    report(remote, id, wait_for(remote, id, timeout))


def wait_for(remote: Remote, id: str, timeout_ms: int | None) -> "JobOutcome":
    """The outcome of a job, or its status when the time is over."""
    began = time.monotonic()
    while True:
        left = ONE_REQUEST_MS
        if timeout_ms is not None:
            passed = int((time.monotonic() - began) * 1000)
            left = min(left, max(timeout_ms - passed, 0))
        outcome = remote.run(remote.backend.result(id, left))
        if outcome.is_final or (timeout_ms is not None and left < ONE_REQUEST_MS):
            return outcome


def report(remote: Remote, id: str, outcome: "JobOutcome") -> None:
    """Print the result of a job. Raises `Refused` for one that has not completed."""
    if remote.as_json:
        document = {"id": id, "status": outcome.status, "result": outcome.result}
        if outcome.error is not None:
            document["error"] = outcome.error
        print_json({name: value for name, value in document.items() if value is not msgspec.UNSET})
    elif outcome.status == "completed" and outcome.result is not msgspec.UNSET:
        print_json(outcome.result)
    if outcome.status != "completed":
        raise Refused(one_line(f"{id} is {_why(remote, id, outcome)}"))


def _why(remote: Remote, id: str, outcome: "JobOutcome") -> str:
    from zq.client.job import reasons_of

    error = outcome.error
    if not outcome.is_final:
        why = remote.run(reasons_of(remote.backend, id))
        return f"still {outcome.status}{why}. Wait on with `zq wait {id}`"
    if error is None or isinstance(error, str):
        return (
            f"{outcome.status}: {error}" if error and outcome.status == "dead" else outcome.status
        )
    kind = f"{error.error_type}: " if error.error_type else ""
    times = "once" if error.attempt == 1 else f"{error.attempt} times"
    return f"{outcome.status} after it failed {times}: {kind}{error.message}"
