"""Copies what waits in a Zizq to zq over HTTP: `python -m zq.moving.zizq SOURCE TARGET`.

It copies budgets, schedules, and the jobs that are ready or scheduled, in their order. Jobs that
are in flight, completed or dead are left, and they are counted. Stop the producers and workers of
the source first. A run that was stopped can be repeated for a week: no job comes twice.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from zq.moving.servers import Doc, MovingError, MovingServer, parts, quoted, told

PAGE = 1_000
WINDOW_MS = 7 * 24 * 3_600_000
NO_LICENCE = "pro license"
"""The answer of a Zizq about a feature that needs a licence."""

COPIED = (
    *("queue", "type", "payload", "priority", "retry_limit", "backoff", "retention"),
    *("unique_key", "unique_while", "batch", "budgets"),
)


def move(source: MovingServer, target: MovingServer) -> Counter[str]:
    """Copy everything. Return what was copied and what was left, by kind. Raises `MovingError`."""
    done: Counter[str] = Counter()
    for budget in _of_pro(source, "/budgets", "budgets"):
        body = {"allocation": budget["allocation"], "strategy": budget["strategy"]}
        target.ask("PUT", f"/budgets/{quoted(budget['key'])}", body)
        done["budgets copied"] += 1
    for name in _of_pro(source, "/crons", "crons"):
        group = source.ask("GET", f"/crons/{quoted(name)}")
        target.ask("PUT", f"/crons/{quoted(name)}", _schedules(group))
        done["groups of schedules copied"] += 1
    for page in _pages(source, f"/jobs?status=ready,scheduled&limit={PAGE}"):
        for part in parts(map(_new, page)):
            target.ask("POST", "/jobs/bulk", {"jobs": part})
            done["jobs copied"] += len(part)
    for status in ("in_flight", "completed", "dead"):
        done[f"{status} jobs left"] = source.ask("GET", f"/jobs/count?status={status}")["count"]
    return +done


def _of_pro(server: MovingServer, path: str, field: str) -> list[Any]:
    """A list that a Zizq without a licence refuses to show, and then has none of."""
    try:
        found: list[Any] = server.ask("GET", path, missing={field: []})[field]
    except MovingError as error:
        if NO_LICENCE not in str(error):
            raise
        return []
    return found


def _pages(server: MovingServer, path: str | None) -> Iterator[list[Doc]]:
    while path is not None:
        answer = server.ask("GET", path)
        yield answer["jobs"]
        path = answer["pages"].get("next")


def _new(job: Doc) -> Doc:
    new = {name: job[name] for name in COPIED if name in job}
    if job["status"] == "scheduled":
        new["ready_at"] = job["ready_at"]
    return new | {"dedupe": {"id": f"zizq:{job['id']}", "window_ms": WINDOW_MS}}


def _schedules(group: Doc) -> Doc:
    entries = [
        {
            name: entry[name]
            for name in ("name", "expression", "timezone", "paused", "job")
            if name in entry
        }
        for entry in group["entries"]
    ]
    about = {name: group[name] for name in ("timezone", "paused") if name in group}
    return about | {"entries": entries}


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy from one address to another, and print what was done. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m zq.moving.zizq", description=__doc__)
    parser.add_argument("source", help="address of the Zizq, such as http://old:7890")
    parser.add_argument("target", help="address of the zq, such as http://127.0.0.1:7890")
    given = parser.parse_args(arguments)
    source = MovingServer(given.source, "", os.environ.get("SOURCE_TOKEN"))
    target = MovingServer(given.target, "", os.environ.get("TARGET_TOKEN"))
    return told(lambda: move(source, target))


if __name__ == "__main__":
    sys.exit(main())
