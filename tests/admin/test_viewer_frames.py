"""The frames of viewers: masked, and not too many. Everything here comes over a real socket."""

import os
import struct
from collections.abc import AsyncIterator, Sequence

import pytest
from conformance.client import Client
from conformance.raw import RawConnection
from conformance.site import Site

from zq.http.transport.websocket import FRAMES_A_SECOND, MOST_FRAMES

from .viewing import ADMIN

pytestmark = pytest.mark.settings(**ADMIN)

HANDSHAKE = (
    b"GET /events HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
FIN = 0x80
DETAIL = b'{"type":"set_detail_level","detail":true}'


def frame(opcode: int, payload: bytes = b"", *, masked: bool = True, fin: bool = True) -> bytes:
    size = len(payload)
    length = bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size)
    head = bytes([(FIN if fin else 0) | opcode])
    if not masked:
        return head + length + payload
    key = os.urandom(4)
    hidden = bytes(byte ^ key[place % 4] for place, byte in enumerate(payload))
    return head + bytes([length[0] | 0x80]) + length[1:] + key + hidden


@pytest.fixture
async def raw(site: Site) -> AsyncIterator[RawConnection]:
    """A viewer that has read its first snapshot."""
    port = int(site.admin_url.rpartition(":")[2])
    async with await RawConnection.open(port) as raw:
        await raw.send(HANDSHAKE)
        assert (await raw.head())[0] == 101
        assert (await heard(raw))[0] == TEXT
        yield raw


async def heard(raw: RawConnection) -> tuple[int, bytes]:
    """The next frame of the server, as its opcode and its payload."""
    first, second = await raw.read(2)
    size = second
    if second == 126:
        (size,) = struct.unpack(">H", await raw.read(2))
    elif second == 127:
        (size,) = struct.unpack(">Q", await raw.read(8))
    return first & 0xF, await raw.read(size)


async def ending(raw: RawConnection) -> tuple[int, list[int]]:
    """The code with which the server ends the connection, and the opcodes of frames before."""
    before: list[int] = []
    while True:
        opcode, payload = await heard(raw)
        if opcode == CLOSE:
            return int.from_bytes(payload[:2], "big"), before
        before.append(opcode)


async def told(raw: RawConnection, opcode: int) -> bytes:
    """The next frame of a kind; others are dropped."""
    while True:
        found, payload = await heard(raw)
        if found == opcode:
            return payload


@pytest.mark.parametrize("opcode", [TEXT, PING, CLOSE])
async def test_a_frame_that_is_not_masked_ends_the_connection(
    raw: RawConnection, opcode: int
) -> None:
    await raw.send(frame(opcode, b"" if opcode == CLOSE else DETAIL, masked=False))
    assert (await ending(raw))[0] == 1002


@pytest.mark.parametrize(
    "flood",
    [
        [frame(PING)] * (2 * MOST_FRAMES),
        [frame(PONG)] * (2 * MOST_FRAMES),
        [frame(TEXT, DETAIL)] * (2 * MOST_FRAMES),
        [frame(TEXT, b" ", fin=False), *[frame(0, b" ", fin=False)] * (2 * MOST_FRAMES)],
    ],
    ids=["pings", "pongs", "messages", "fragments"],
)
async def test_too_many_frames_end_the_connection(
    raw: RawConnection, client: Client, flood: Sequence[bytes]
) -> None:
    await raw.send(b"".join(flood))
    code, before = await ending(raw)
    assert code == 1008
    assert before.count(PONG) <= MOST_FRAMES
    assert (await client.enqueue())["status"] == "ready"


async def test_as_many_frames_as_permitted_are_answered(raw: RawConnection, site: Site) -> None:
    for _ in range(3):
        await raw.send(frame(PING, b"x") * MOST_FRAMES)
        for _ in range(MOST_FRAMES):
            assert await told(raw, PONG) == b"x"
        site.clock.advance(MOST_FRAMES * 1000 // FRAMES_A_SECOND)


async def test_frames_in_pieces_are_counted_and_understood(raw: RawConnection) -> None:
    long = b'{"type":"bogus"}' + b" " * 300
    for piece in (frame(TEXT, long) + frame(PING, b"y")).partition(b"\xfe"):
        for start in range(0, len(piece), 7):
            await raw.send(piece[start : start + 7])
    assert b"invalid message" in await told(raw, TEXT)
    assert await told(raw, PONG) == b"y"
