"""Calls of Python functions as lines of jobs, which `zq push --file -` stores."""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from zq.model.payload import has_long_integer, nests_too_deeply

WINDOW_MS = 7 * 24 * 3_600_000
"""The time in ms for which the server recognises a repeated call."""


class WaitingCall(NamedTuple):
    """A call that waits in another queue."""

    queue: str
    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    id: str
    run_at: datetime | None
    retries: int | None
    priority: int | None = None


def line(call: WaitingCall) -> str:
    """The job of a call. Raises ValueError if its arguments are no JSON that a server stores."""
    job: dict[str, Any] = {
        "queue": call.queue,
        "type": call.function,
        "payload": {"args": list(call.args), "kwargs": call.kwargs},
        "dedupe": {"id": call.id, "window_ms": WINDOW_MS},
    }
    try:
        _check(job["payload"])
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{call.function} (id {call.id}) has an argument that is no JSON ({error}): let the old"
            " worker execute this call, or cancel it"
        ) from None
    if call.run_at is not None:
        job["ready_at"] = int(call.run_at.timestamp() * 1000)
    if call.retries is not None:
        job["retry_limit"] = call.retries
    if call.priority is not None:
        job["priority"] = call.priority
    return json.dumps(job, ensure_ascii=False)


def _check(payload: object) -> None:
    """Refuse what a server refuses, and what JSON would change.

    Raises TypeError, ValueError or RecursionError.
    """
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    if has_long_integer(text.encode()):
        raise ValueError("an integer has more than 64 bits")
    if nests_too_deeply(text):
        raise ValueError("it nests too deeply")
    _check_keys(payload)


def _check_keys(value: object) -> None:
    """Refuse keys of which JSON makes texts: the call would not find them again."""
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is no text")
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for each in value:
        _check_keys(each)


def write(calls: Iterable[WaitingCall], left: Counter[str]) -> int:
    """Print the lines of all calls, or of none. Say on stderr what is left, and return the exit
    code."""
    try:
        lines = [line(call) for call in calls]
    except ValueError as error:
        print(f"stopped: {error}", file=sys.stderr)
        return 1
    for text in lines:
        print(text)
    print(f"{len(lines):>8} calls", file=sys.stderr)
    for kind, count in sorted((+left).items()):
        print(f"{count:>8} {kind}", file=sys.stderr)
    return 0
