"""Sends on one connection, with one write for each turn of the loop, and fairly."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from zq.http.transport.h2.codec import Field, Http2Codec

QUANTUM = 64 * 1024
"""The bytes that one response sends before the others have their turn."""

LINGER_S = 1.0
"""The time that a peer has to read why its connection ends, in seconds."""

MOST_UNREAD = 1024 * 1024
"""The most bytes of frames without a window that a peer may leave unread."""


class Sender(Protocol):
    """A response with data to send."""

    number: int
    rest: memoryview
    """The bytes that were written and are not sent yet."""
    last: bool
    """True if the response ends with those bytes."""

    def sent(self) -> None:
        """Called when all that was written is sent."""


class Outlet:
    """The codec and the transport of one connection."""

    def __init__(self, codec: Http2Codec, transport: asyncio.Transport) -> None:
        self._codec = codec
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Sender, None] = {}
        self._scheduled = False
        self._finished = False
        self._full: asyncio.Future[None] | None = None
        self.frames = 0
        """How many frames of heads and bodies were made, which a peer may answer with windows."""

    async def ready(self) -> None:
        """Wait until the transport takes more, or is closed."""
        if self._full is not None:
            await asyncio.shield(self._full)

    def pause(self) -> None:
        """Hold back what can wait: the transport is full."""
        self._full = self._loop.create_future()

    def resume(self) -> None:
        """Go on: the transport takes more."""
        if self._full is not None:
            self._full.set_result(None)
            self._full = None
        self.flush()

    def send_head(self, number: int, fields: Sequence[Field], *, end: bool) -> None:
        self._codec.send_head(number, fields, end=end)
        self.frames += 1
        self.soon()

    def send(self, sender: Sender) -> bool:
        """Send the sender's data as far as windows and transport allow.

        Returns True if all is sent. Otherwise the sender's `sent` is called later.
        """
        self.soon()
        if self._full is None and self._move(sender):
            return True
        self._waiting[sender] = None
        return False

    def forget(self, sender: Sender) -> None:
        """Drop what the sender still has to send."""
        self._waiting.pop(sender, None)

    def soon(self) -> None:
        """Write what is queued in the next turn of the loop, when others have added to it."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write what is queued, and go on with the senders that wait."""
        self._scheduled = False
        if self._finished or self._transport.is_closing():
            return
        self._write()
        while self._full is None and self._deal():
            self._write()
        if self._transport.get_write_buffer_size() > MOST_UNREAD:
            self._transport.abort()

    def finish(self) -> None:
        """Write what is queued, and no more. Close once the peer has had time to read it."""
        self._finished = True
        if self._transport.is_closing():
            return
        self._write()
        # Closing with bytes unread would reset the connection, and the peer would not see why.
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()
        self._loop.call_later(LINGER_S, self._transport.abort)

    def _write(self) -> None:
        if data := self._codec.queued():
            self._transport.write(data)

    def _deal(self) -> bool:
        """Give every waiting sender a turn. Return whether anything moved."""
        moved = False
        for sender in list(self._waiting):
            before = len(sender.rest)
            if self._move(sender):
                del self._waiting[sender]
                sender.sent()
                moved = True
            elif len(sender.rest) < before:
                moved = True
        return moved

    def _move(self, sender: Sender) -> bool:
        """Make frames of at most a quantum. Return whether nothing is left."""
        codec, number = self._codec, sender.number
        quantum = QUANTUM
        while True:
            size = min(len(sender.rest), quantum, codec.max_frame)
            if size:
                size = min(size, codec.window(number))
            if size <= 0 and sender.rest:
                return False
            data, sender.rest = sender.rest[:size], sender.rest[size:]
            quantum -= size
            codec.send_data(number, data, end=sender.last and not sender.rest)
            self.frames += 1
            if not sender.rest:
                return True
