"""Request bodies: how large one may be, how slow, and how much of all of them memory may hold."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiohttp import StreamReader, web

from zq.http.turns import Turns
from zq.model.clock import Clock, Timer
from zq.model.errors import BodyTimeout, InboxFull, TooLarge

RESERVE = 4
"""A quarter more than the bound is kept for what is no enqueue: acknowledgements get through."""

LEAST_RATE = 1024
"""Bytes a second that lengthen a body's time as fast as it passes: slow lines are no attack."""


class Bodies:
    """Counts the bytes of bodies from their announcement until their request is done."""

    def __init__(
        self, max_body: int, max_bytes: int, timeout: float, clock: Clock, turns: Turns
    ) -> None:
        """`timeout` in seconds."""
        self.held = 0
        self.turns = turns
        self._max_body = max_body
        self._max_bytes = max_bytes
        self._timeout = timeout
        self._clock = clock

    async def read(self, request: web.Request, *, reserved: bool) -> bytes:
        """The whole body; give it back with `release`. `reserved` may use the reserve too.

        Raises `TooLarge`, `InboxFull` or `BodyTimeout`, as soon as that is known.
        """
        if request.content.is_eof():
            return await self._read(request, reserved)
        async with self._in_time(request.content):
            return await self._read(request, reserved)

    def release(self, size: int) -> None:
        """A request that held `size` bytes is done."""
        self.held -= size

    async def _read(self, request: web.Request, reserved: bool) -> bytes:
        length = request.content_length
        if length is not None:
            self._take(length, 0, reserved)
            try:
                return await request.read()
            except BaseException:
                self.release(length)
                raise
        return await self._read_chunked(request, reserved)

    async def _read_chunked(self, request: web.Request, reserved: bool) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            while chunk := await request.content.readany():
                self._take(len(chunk), size, reserved)
                size += len(chunk)
                chunks.append(chunk)
        except BaseException:
            self.release(size)
            raise
        return b"".join(chunks)

    @contextlib.asynccontextmanager
    async def _in_time(self, content: StreamReader) -> AsyncIterator[None]:
        """Raise `BodyTimeout` into what is read meanwhile once the body takes too long."""
        began = self._clock.monotonic()
        timer: Timer

        def look() -> None:
            nonlocal timer
            patience = self._timeout + content.total_bytes / LEAST_RATE
            left = began + patience - self._clock.monotonic()
            if left > 0:
                timer = self._clock.call_later(left, look)
            else:
                limit.reschedule(asyncio.get_running_loop().time())

        timer = self._clock.call_later(self._timeout, look)
        try:
            async with asyncio.timeout(None) as limit:
                yield
        except TimeoutError:
            raise BodyTimeout(
                "the body took too long to arrive: send it again, over a better line in smaller"
                " parts, or raise --body-timeout"
            ) from None
        finally:
            timer.cancel()

    def _take(self, more: int, have: int, reserved: bool) -> None:
        if have + more > self._max_body:
            raise TooLarge(
                f"the body is larger than {self._max_body} bytes: send fewer jobs a request, or"
                " raise --max-body"
            )
        bound = self._max_bytes + (self._max_bytes // RESERVE if reserved else 0)
        # A single body within --max-body always has a chance, however small the bound is.
        if self.held and self.held + more > bound:
            raise InboxFull(
                "the requests under way hold as much memory as they may: try again shortly, or"
                " raise --max-inbox-bytes"
            )
        self.held += more
