"""The path of one long-lived response to its peer, whatever version of HTTP carries it."""

import asyncio
import contextlib
from collections.abc import Iterator
from enum import Enum
from typing import Any, Protocol

from aiohttp import web

from zq.http.transport.answer import Answer


class Peer(Enum):
    """The result of a look at a channel's peer."""

    PRESENT = "present"
    VANISHED = "vanished"
    """Data has been under way for too long without an acknowledgement: the peer is gone."""
    STALLED = "stalled"
    """Data waits and the peer has taken none of it for too long: it is there but does not read."""
    WITHHOLDS = "withholds"
    """The connection is read, but its peer gives this response no leave to send: it stalls too."""


class Channel(Protocol):
    """The connection itself (HTTP/1.1), or a stream of it (HTTP/2)."""

    streaming: bool
    """Whether the response lasts as long as its connection."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """The connection's; None once that is lost."""

    def ask_for_body(self) -> None:
        """Tell a client that waits for leave that the body of its request is wanted."""

    async def send(self, request: web.BaseRequest, answer: Answer) -> None:
        """Send a whole answer; it returns when the connection has taken it.

        Raises ConnectionError where nobody is there any more.
        """

    def unsent(self) -> int:
        """Bytes written that the kernel does not have yet."""

    def withheld(self) -> int:
        """The part of them that waits for the peer's leave rather than for the connection."""

    def moved(self) -> int:
        """All bytes that had to wait for the peer's leave and have got it."""

    def cut_off(self, found: Peer) -> None:
        """End the response at once. The connection ends too where `found` says so."""


def channel_of(request: web.BaseRequest) -> Channel:
    """The channel of the response to a request."""
    protocol: Any = request.protocol
    channel: Channel = protocol.channel(request)
    return channel


@contextlib.contextmanager
def watch_for_end(channel: Channel) -> Iterator[None]:
    """While a stream is written, let its peer's half-close end it like a full one."""
    channel.streaming = True
    try:
        yield
    finally:
        channel.streaming = False
