"""Following what happens to jobs, across broken connections."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable

from zq.client.backend import Backend, EventStream
from zq.client.errors import Unavailable
from zq.client.transport import jittered
from zq.client.values import EventQuery, JobEvent

log = logging.getLogger("zq.events")


async def follow(
    backend: Backend,
    query: EventQuery,
    since: str | None = None,
    is_over: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncGenerator[JobEvent, None]:
    """Events without end, from now on or from after the place `since`.

    A stream that breaks is opened again where it was; what was missed meanwhile is told, or a `gap`
    where the server does not have it any more. Once a stream is open, `is_over` is asked whether
    nothing can come any more. Raises `BackendError` where there is no stream to begin with.
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
        except Unavailable as error:
            log.warning("no events: %s", error)
        finally:
            if stream is not None:
                await stream.close()
        stream = None
        await asyncio.sleep(jittered(attempt))
        attempt += 1
