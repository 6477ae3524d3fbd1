"""Schedules of a server that is killed again and again, read from its file after each kill."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

SECOND_MS = 1000


class Seen(NamedTuple):
    """An entry after a kill: when it last enqueued and when it fires next, and its jobs' times."""

    last_at: int | None
    next_at: int
    period_ms: int
    fired: tuple[int, ...]


Look = Mapping[str, Seen]
"""Every entry by its name, which is the type of its jobs too."""


def look(file: Path) -> Look:
    """What the file of a server holds, which has ended or goes on."""
    fired: dict[str, list[int]] = defaultdict(list)
    with closing(sqlite3.connect(file)) as connection:
        for name, at in connection.execute("SELECT type, ready_at FROM jobs ORDER BY id"):
            fired[name].append(at)
        rows = connection.execute("SELECT name, last_at, next_at, expression FROM cron_entries")
        return {
            name: Seen(last_at, next_at, period_of(expression), tuple(fired[name]))
            for name, last_at, next_at, expression in rows
        }


def period_of(expression: str) -> int:
    """Of ``*/2 * * * * *`` and the like."""
    first = expression.split()[0]
    return SECOND_MS * (1 if first == "*" else int(first.removeprefix("*/")))


def breaches(before: Look, after: Look, born: int, died: int) -> Iterator[str]:
    """What one life of a server, from `born` to `died`, has done that it may not do."""
    if before.keys() != after.keys():
        yield f"entries came or went: {before.keys() ^ after.keys()}"
    for name, seen in after.items():
        was = before[name]
        new = seen.fired[len(was.fired) :]
        if seen.fired[: len(was.fired)] != was.fired:
            yield f"{name}: a job that was there is gone, or has changed"
        if seen.last_at != (seen.fired[-1] if seen.fired else None):
            yield f"{name}: it moved on at {seen.last_at}, its last job is of {seen.fired[-1:]}"
        if seen.next_at % seen.period_ms:
            yield f"{name}: {seen.next_at} is none of its times"
        if bool(new) != (seen.next_at != was.next_at):
            yield f"{name}: {len(new)} jobs, but from {was.next_at} to {seen.next_at}"
        # All that was missed before the birth is one time; those of its life come one by one.
        most = (was.next_at <= born) + times(max(born, was.next_at - 1), died, seen.period_ms)
        if len(new) > most:
            yield f"{name}: {len(new)} jobs for {most} times"


def times(after: int, upto: int, period_ms: int) -> int:
    """How many times of a beat lie there."""
    return max(upto // period_ms - after // period_ms, 0)
