"""Events: those of this process, for its own functions; and those of jobs on the server.

`Listeners` get the first kind, as `Event`s. `follow` reads the second kind, as `JobEvent`s.
"""

import asyncio
import inspect
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, get_args

from zq.client.backend import Backend, EventStream
from zq.client.errors import BackendError, InvalidOption, may_pass
from zq.client.http.transport import jittered
from zq.client.job_error import JobError
from zq.client.running import EventName, Running, ends_task
from zq.client.values import MISSING, EventQuery, JobEvent

log = logging.getLogger("zq.events")

Listener = Callable[["Event"], Any]


@dataclass(frozen=True)
class Event:
    """One event. Fields that do not apply are None, or MISSING."""

    name: EventName
    queue: str | None = None
    id: str | None = None
    key: str | None = None
    attempt: int | None = None
    result: Any = MISSING
    error: JobError | None = None
    exception: BaseException | None = None
    job: Running[Any] | None = None
    """The delivery, once it has completed or failed."""


class Listeners:
    """The functions that are called at each event."""

    def __init__(self) -> None:
        self._listeners: defaultdict[str, list[Listener]] = defaultdict(list)

    def add(self, name: EventName, listener: Listener) -> None:
        """Call the function, or await the coroutine function, at each such event.

        Raises `InvalidOption` for the name of no event.
        """
        if name not in get_args(EventName):
            known = ", ".join(get_args(EventName))
            raise InvalidOption(f"{name!r} is no event of a worker: the events are {known}")
        self._listeners[name].append(listener)

    def wanted(self, name: EventName) -> bool:
        """True if anybody listens."""
        return bool(self._listeners.get(name))

    async def emit(self, event: Event, *, blocking: bool = False) -> None:
        """Call all listeners. Their exceptions are logged, and so is an error without a listener.

        With `blocking` nothing can be awaited, so coroutine functions are skipped.
        """
        listeners = self._listeners.get(event.name, ())
        if event.name == "error" and not listeners:
            log.error("%s", event.exception, exc_info=event.exception)
        for listener in listeners:
            try:
                answer = listener(event)
                if blocking and inspect.iscoroutine(answer):
                    log.warning("the listener %r is not called: there is no event loop", listener)
                    answer.close()
                elif inspect.isawaitable(answer):
                    await answer
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt) if blocking else ends_task(error):
                    raise
                log.exception("a listener of %r failed", event.name)


async def follow(
    backend: Backend,
    query: EventQuery,
    since: str | None = None,
    is_over: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncGenerator[JobEvent, None]:
    """Events without end, from now on or after the place `since`.

    A stream that breaks is opened again at its place. Missed events follow, or a `gap` if the
    server no longer has them. Once a stream is open, `is_over` tells whether any event can still
    come. Raises `BackendError` if the first stream cannot be opened, or the server refuses another
    one for good.
    """
    stream: EventStream | None = await backend.events(query, since)
    attempt = 0
    while True:
        try:
            if stream is None:
                stream = await backend.events(query, since)
            if is_over is not None and await is_over():
                return
            while True:
                found = await stream.events()
                attempt = 0
                for event in found:
                    yield event
                since = stream.last_id
        except BackendError as error:
            if not may_pass(error):
                raise
            log.warning("the stream of events has broken: %s", error)
        finally:
            if stream is not None:
                await stream.close()
        stream = None
        await asyncio.sleep(jittered(attempt))
        attempt += 1
