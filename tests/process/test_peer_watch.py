"""The watch on a connection's peer, on real sockets of both event loops.

Peers that vanish or do not read are in `test_vanished_peer.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from socket import IPPROTO_TCP, TCP_QUICKACK
from typing import cast

import pytest
import uvloop

from zq.http.transport.channel import Channel, Peer
from zq.http.transport.peer import PeerWatch

HOURS_LATER = 1e5

PAUSE_S = 1.0
"""It is longer than a peer may be silent here."""


class Line(asyncio.Protocol):
    """One side of a connection, as a channel with nothing of its own to send."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.begun.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()

    def unsent(self) -> int:
        return self.transport.get_write_buffer_size()

    def withheld(self) -> int:
        return 0

    def moved(self) -> int:
        return 0


Case = Callable[[Line, PeerWatch], Awaitable[None]]


async def idle(line: Line, peer: PeerWatch) -> None:
    """Nobody owes anybody anything, for however long."""
    assert [peer.judge(now) for now in (1.0, HOURS_LATER)] == [Peer.PRESENT] * 2


async def closed(line: Line, peer: PeerWatch) -> None:
    """A timer may fire before the handler hears that its connection is gone."""
    line.transport.abort()
    await line.ended.wait()
    assert peer.judge(1.0) is Peer.PRESENT


async def silent_before(line: Line, peer: PeerWatch) -> None:
    """The race: a look comes between what is written after a pause and its acknowledgement."""
    await asyncio.sleep(PAUSE_S)
    line.transport.write(b"a job")
    assert peer.judge(1.0) is Peer.PRESENT
    await asyncio.sleep(PAUSE_S)
    assert peer.judge(2.0) is Peer.PRESENT


async def connect_and(case: Case) -> None:
    """Run a case on one end of a connection, and close both."""
    loop = asyncio.get_running_loop()
    there, here = Line(), Line()
    server = await loop.create_server(lambda: there, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    await loop.create_connection(lambda: here, "127.0.0.1", port)
    await there.begun.wait()
    # It acknowledges a moment after data has come, as one does that has something to send.
    there.transport.get_extra_info("socket").setsockopt(IPPROTO_TCP, TCP_QUICKACK, 0)
    try:
        peer = PeerWatch(cast(Channel, here), silence=0.5, stall_timeout=10.0, now=0.0)
        await case(here, peer)
    finally:
        for line in (here, there):
            line.transport.abort()
            await line.ended.wait()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("case", [idle, closed, silent_before])
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_nobody_is_accused(case: Case, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(connect_and(case))
