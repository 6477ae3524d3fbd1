"""Local events: what this process has done, told to functions of this process."""

import inspect
import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from zq.client.values import MISSING, JobError

log = logging.getLogger("zq.events")

EventName = Literal[
    "started",
    "stopped",
    "error",
    "enqueued",
    "completed",
    "failed",
    "failing",
    "requeued",
    "cancelled",
    "stalled",
]
"""failing: another try comes. requeued: given back unfinished. stalled: taken from this worker, for
it has not renewed the lease in time. error: the worker's own trouble."""

Listener = Callable[["Event"], Any]


@dataclass(frozen=True)
class Event:
    """What has happened. Fields that have no meaning for it are None, or MISSING."""

    name: EventName
    queue: str | None = None
    id: str | None = None
    key: str | None = None
    attempt: int | None = None
    result: Any = MISSING
    error: JobError | None = None
    exception: BaseException | None = None


class Events:
    """Who wants to hear of what."""

    def __init__(self) -> None:
        self._listeners: defaultdict[str, list[Listener]] = defaultdict(list)

    def add(self, name: EventName, listener: Listener) -> None:
        """Call the function, or await the coroutine function, at each such event."""
        self._listeners[name].append(listener)

    def wanted(self, name: EventName) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners.get(name))

    async def emit(self, event: Event, *, blocking: bool = False) -> None:
        """Tell all; what they raise is logged. An error that nobody listens for is logged too.

        With `blocking` nothing can be awaited: coroutine functions are passed over.
        """
        listeners = self._listeners.get(event.name, ())
        if event.name == "error" and not listeners:
            log.error("%s", event.exception, exc_info=event.exception)
        for listener in listeners:
            try:
                if blocking and inspect.iscoroutinefunction(listener):
                    log.warning("%r is not called: there is no event loop", listener)
                    continue
                answer = listener(event)
                if inspect.isawaitable(answer):
                    await answer
            except Exception:
                log.exception("a listener of %r failed", event.name)
