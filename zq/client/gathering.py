"""Single enqueues of many callers: while requests are under way, the next ones gather into one.

A few callers are sent for at once, each by itself. Beyond that a caller waits until one of the
requests is answered, and goes with all who wait by then: batches grow with load, and nobody waits
for company. A batch is an attempt: a caller whose job it did not store sends for itself, and gets
the answer that it would have got without the others.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import NamedTuple

from zq.client.errors import ZqError
from zq.client.values import StoredJob

AT_ONCE = 4
"""Requests under way before callers gather."""

LONGEST_WAIT_S = 0.01
"""For the answer to others; then a batch goes out beside them. A distant server takes longer."""

MOST_JOBS = 100
MOST_BYTES = 2**18
"""Of a batch. A job that is larger goes alone, and holds nobody up."""


class Encoded(NamedTuple):
    """A job as it travels. One that is `safe` may be sent again though it may be stored."""

    text: bytes
    safe: bool


Fate = StoredJob | ZqError | None
"""What has become of a job of a batch. None: it is not stored, and its caller is to send it."""

Alone = Callable[[Encoded], Awaitable[StoredJob]]
Together = Callable[[Sequence[Encoded]], Awaitable[Sequence[Fate]]]

_Waiting = tuple[Encoded, asyncio.Future[Fate]]


class Gatherer:
    """Belongs to one event loop at a time; in another one it begins anew."""

    def __init__(self, alone: Alone, together: Together) -> None:
        """`together` tries once, and tells the fate of each job; it raises nothing."""
        self._alone = alone
        self._together = together
        self._desk: _Desk | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_alone": self._alone, "_together": self._together, "_desk": None}

    async def store(self, job: Encoded) -> StoredJob:
        """Store a job, by itself or with others. Raises what `alone` raises."""
        if len(job.text) > MOST_BYTES:
            return await self._alone(job)
        desk = self._here()
        if desk.is_free:
            with desk:
                return await self._alone(job)
        fate = await desk.wait(job)
        if fate is None:
            return await self._alone(job)
        if isinstance(fate, ZqError):
            raise fate
        return fate

    def _here(self) -> "_Desk":
        loop = asyncio.get_running_loop()
        if self._desk is None or self._desk.loop is not loop:
            self._desk = _Desk(loop, self._together)
        return self._desk


class _Desk:
    """The requests that are under way, and who waits for them. Within it, one more is."""

    def __init__(self, loop: asyncio.AbstractEventLoop, together: Together) -> None:
        self.loop = loop
        self._together = together
        self._under_way = 0
        self._waiting: deque[_Waiting] = deque()
        self._impatience: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()

    @property
    def is_free(self) -> bool:
        """Whether a job need not wait."""
        return self._under_way < AT_ONCE and not self._waiting

    def __enter__(self) -> None:
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        self._go()

    def wait(self, job: Encoded) -> asyncio.Future[Fate]:
        """What becomes of a job. Who gives up before it is sent is left out."""
        told: asyncio.Future[Fate] = self.loop.create_future()
        self._waiting.append((job, told))
        if self._impatience is None:
            self._impatience = self.loop.call_later(LONGEST_WAIT_S, self._go)
        return told

    def _go(self) -> None:
        """Send for those who wait."""
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None
        batch = self._batch()
        if batch:
            # Whose context this is by chance, a trace's for example, has no part in the batch.
            sending = self.loop.create_task(self._send(batch), context=Context())
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
        if self._waiting:
            self._impatience = self.loop.call_later(LONGEST_WAIT_S, self._go)

    def _batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and len(batch) < MOST_JOBS:
            job, told = self._waiting[0]
            if not told.done():
                size += len(job.text)
                if size > MOST_BYTES:
                    break
                batch.append((job, told))
            self._waiting.popleft()
        return batch

    async def _send(self, batch: list[_Waiting]) -> None:
        with self:
            try:
                fates = await self._together([job for job, _ in batch])
                for (_, told), fate in zip(batch, fates, strict=True):
                    if not told.done():
                        told.set_result(fate)
            except Exception as error:
                for _, told in batch:
                    if not told.done():
                        told.set_exception(error)
            finally:
                for _, told in batch:
                    told.cancel()  # of no effect but where the event loop ends
