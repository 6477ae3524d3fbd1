"""Prints what waits in a huey as jobs: `python -m zq.moving.huey MODULE:HUEY | zq push --file -`.

It reads by huey's own methods, whatever the storage, and removes nothing. Stop the producers and
consumers first. Calls that are revoked, that have expired, or that something else is to follow are
left, and they are counted.
"""

import argparse
import importlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from zq.moving.lines import WaitingCall, write

USUAL_PRIORITY = 32_768


def calls(huey: Any, queue: str, left: Counter[str]) -> Iterator[WaitingCall]:
    """The waiting calls, in huey's order; then the scheduled ones."""
    now = datetime.now(UTC)
    for task in [*huey.pending(), *huey.scheduled()]:
        expires = _moment(huey, task.expires_resolved)
        if huey.is_revoked(task):
            left["revoked calls left"] += 1
        elif expires is not None and expires <= now:
            left["expired calls left"] += 1
        elif task.on_complete or task.on_error or getattr(task, "chord_config", None):
            left["calls of pipelines left"] += 1
        else:
            # Higher is sooner there, and later here.
            priority = None if task.priority is None else USUAL_PRIORITY - task.priority
            yield WaitingCall(
                queue,
                type(task).__name__,
                tuple(task.args),
                dict(task.kwargs),
                f"huey:{task.id}",
                _moment(huey, task.eta),
                task.retries,
                priority,
            )


def _moment(huey: Any, time: datetime | None) -> datetime | None:
    """A time of huey, which says by a setting and not in the time what its zone is."""
    if time is None or time.tzinfo is not None:
        return time
    return time.replace(tzinfo=UTC) if huey.utc else time.astimezone()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the jobs, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m zq.moving.huey", description=__doc__)
    parser.add_argument("huey", metavar="MODULE:HUEY", help="such as shop.tasks:huey")
    parser.add_argument("--queue", help="queue of the jobs [default: huey's name]")
    given = parser.parse_args(arguments)
    sys.path.insert(0, ".")
    module, _, name = given.huey.partition(":")
    try:
        huey = getattr(importlib.import_module(module), name or "huey")
    except (ImportError, AttributeError) as error:
        print(f"stopped: {given.huey} is not there: {error}", file=sys.stderr)
        return 1
    left: Counter[str] = Counter()
    return write(calls(huey, given.queue or huey.name, left), left)


if __name__ == "__main__":
    sys.exit(main())
