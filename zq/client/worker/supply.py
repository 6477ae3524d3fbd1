"""A worker's supply of jobs: one take stream, which is opened again whenever it breaks."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from zq.client.backend import Backend, TakeStream
from zq.client.errors import BackendError, Unavailable, may_pass
from zq.client.events import Listeners
from zq.client.http.transport import jittered
from zq.client.values import Delivery, Notice, TakeRequest
from zq.client.worker.holding import LogLimiter, hand_back

T = TypeVar("T")

log = logging.getLogger("zq.worker")


class Supply:
    """Keeps a stream open, from `open` to `close`, and passes its deliveries on."""

    def __init__(
        self, backend: Backend, request: TakeRequest, stopping: asyncio.Event, patience_s: float
    ) -> None:
        """A server that is away at the start may take `patience_s` seconds to come."""
        self._patience_s = patience_s
        self._deadline: float | None = None
        self._limiter = LogLimiter()
        self._backend = backend
        self._request = request
        self._stopping = stopping
        self._stream: TakeStream | None = None
        self._opened_at = 0.0

    async def open(self) -> None:
        """Open the stream. Raises `Unavailable`, or another `BackendError` at once."""
        self._keep(await self.reach(self._take))

    def opened_at(self) -> float | None:
        """When the present stream was opened, by the clock of the event loop. None without one."""
        return None if self._stream is None else self._opened_at

    def _keep(self, stream: TakeStream) -> TakeStream:
        self._stream, self._opened_at = stream, asyncio.get_running_loop().time()
        return stream

    async def reach(self, step: Callable[[], Awaitable[T]]) -> T:
        """Repeat a step until the server answers, or the patience for an absent one is over.

        Raises `Unavailable` then, and when the worker is told to stop.
        """
        if self._deadline is None:
            self._deadline = time.monotonic() + self._patience_s
        attempt = 0
        while True:
            try:
                return await step()
            except Unavailable as error:
                delay = jittered(attempt)
                if time.monotonic() + delay > self._deadline or self._stopping.is_set():
                    raise
                if self._limiter.count("away"):
                    log.warning("the worker waits for its server: %s", error.message)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), delay)
                attempt += 1

    async def _take(self) -> TakeStream:
        """Open the first stream. A standby may wait for it for ever, unless it is told to stop."""
        taking = asyncio.ensure_future(self._backend.take(self._request))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({taking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                raise Unavailable("the worker was stopped before it had opened a stream")
            return taking.result()
        finally:
            taking.cancel()
            stopping.cancel()

    async def run(
        self, on_jobs: Callable[[Sequence[Delivery | Notice]], None], on_lost: Callable[[], None]
    ) -> None:
        """Run until cancelled. Raises `BackendError` if the server refuses a stream for good."""
        attempt = 0
        while True:
            try:
                stream = self._stream
                if stream is None:
                    stream = self._keep(await self._backend.take(self._request))
                    log.info("the stream is open again")
                while True:
                    on_jobs(await stream.deliveries())
                    attempt = 0
            except BackendError as error:
                if not may_pass(error):
                    raise
                if self._stream is not None:
                    await self.close()
                    on_lost()
                log.warning("the stream of jobs has broken: %s", error)
                await asyncio.sleep(jittered(attempt))
                attempt += 1

    async def close(self) -> None:
        """End the stream. Its jobs are returned."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.close()


BEHIND_S = 1.0
"""The longest time that a prefetched job waits in a worker before it goes back, in seconds."""

LONGEST_BEHIND_S = 2.0
"""If it comes back, no other worker wants it: it may then lie twice as long, up to this."""

LOOK_EVERY_S = 0.5


class Patience:
    """Decides which of the jobs that have not begun go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        """The first sighting of each job of the last look."""
        self._given: frozenset[str] = frozenset()
        self._seconds = BEHIND_S

    def tired_of(self, waiting: Sequence[str]) -> list[str]:
        """The waiting jobs that have lain too long. They are given back now."""
        now = self._clock()
        self._since = {id: self._since.get(id, now) for id in waiting}
        tired = [id for id, since in self._since.items() if now - since >= self._seconds]
        if tired:
            again = not self._given.isdisjoint(tired)
            self._seconds = min(2 * self._seconds, LONGEST_BEHIND_S) if again else BEHIND_S
            self._given = frozenset(tired)
            for id in tired:
                del self._since[id]
        return tired


async def give_back_tired(
    backend: Backend,
    events: Listeners,
    waiting: Callable[[], list[str]],
    take: Callable[[str], Delivery],
) -> None:
    """Give back what lies too long, for ever. `take` takes a job from those that wait."""
    patience = Patience()
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        tired = [take(id) for id in patience.tired_of(waiting())]
        if tired:
            await hand_back(backend, events, tired)
