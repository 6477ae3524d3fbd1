"""The path of one long-lived response to its peer, whatever version of HTTP carries it."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Protocol

from aiohttp import web

from zq.http.transport.answer import Answer

LISTENER_UNSENT = 16 * 1024
"""Bytes of a response to a listener that wait here, and as many in the kernel."""

KERNEL_HOLDS = getattr(socket, "TCP_NOTSENT_LOWAT", None)
"""The option that says how many bytes the kernel takes beyond those that the peer takes."""


class Peer(Enum):
    """The result of a check of a channel's peer."""

    PRESENT = "present"
    VANISHED = "vanished"
    """Data has been under way for too long without an acknowledgement: the peer is gone."""
    STALLED = "stalled"
    """Data waits and the peer has taken none of it for too long: it is there but does not read."""
    WITHHOLDS = "withholds"
    """The peer reads the connection, but gives this response no leave to send. It stalls too."""


class Channel(Protocol):
    """The connection itself (HTTP/1.1), or a stream of it (HTTP/2)."""

    streaming: bool
    """True if the response lasts as long as its connection."""
    half_closed: bool
    """True if the client of a connection of HTTP/1.1 has finished sending."""
    at_end: Callable[[], object] | None
    """Called when the client finishes sending."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport of the connection; None once the connection is lost."""

    def ask_for_body(self) -> None:
        """Tell a client that waits for permission to send the body of its request."""

    async def send(self, request: web.BaseRequest, answer: Answer) -> None:
        """Send a whole answer. Return when the connection has taken it.

        Raises ConnectionError if the connection is gone.
        """

    def unsent(self) -> int:
        """Written bytes that the kernel has not taken yet."""

    def withheld(self) -> int:
        """The part of the unsent bytes that waits for the peer's leave, not for the connection."""

    def moved(self) -> int:
        """How many bytes so far had to wait for the peer's leave and have got it."""

    def cut_off(self, found: Peer) -> None:
        """End the response at once. Some values of `found` end the connection too."""


def channel_of(request: web.BaseRequest) -> Channel:
    """The channel of the response to a request."""
    protocol: Any = request.protocol
    channel: Channel = protocol.channel(request)
    return channel


def leave_little_unsent(request: web.BaseRequest) -> None:
    """Have little of the response wait for a peer that does not read, here and in the kernel.

    The kernel would hold some MiB of it, for each of thousands of peers. A stream of HTTP/2 may
    send no more than its peer permits, so it has a bound already.
    """
    transport = request.transport
    if transport is None or request.version.major > 1:
        return
    transport.set_write_buffer_limits(high=LISTENER_UNSENT)
    connection, option = transport.get_extra_info("socket"), KERNEL_HOLDS
    if option is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, option, LISTENER_UNSENT)


@contextlib.contextmanager
def watch_for_end(channel: Channel) -> Iterator[None]:
    """Within the block, let the peer's half-close end the stream as a full close does.

    Raises ConnectionResetError if that has happened.
    """
    if channel.half_closed:
        raise ConnectionResetError("the client has finished sending")
    channel.streaming = True
    try:
        yield
    finally:
        channel.streaming = False


@contextlib.contextmanager
def when_peer_ends(channel: Channel, give_up: Callable[[], object]) -> Iterator[None]:
    """Within the block, call `give_up` when the client finishes sending.

    It ends a wait that takes something for the client: a client that is gone looks the same.
    """
    channel.at_end = give_up
    try:
        yield
    finally:
        channel.at_end = None
