"""Floods of what costs a client little: tiny frames and chunks, blank lines, long pipelines."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hpack import Encoder

from bench.attacks.site import Attack, Outcome, Site
from zq.http.transport.h2.frames import PREFACE, FrameKind

TAKE = [(":method", "GET"), (":path", "/jobs/take"), (":scheme", "http"), (":authority", "x")]
POST = [(":method", "POST"), (":path", "/jobs"), (":scheme", "http"), (":authority", "x")]
END_STREAM, END_HEADERS = 1, 4
PING = b"the-ping"


def frame(kind: FrameKind | int, flags: int, stream: int, body: bytes = b"") -> bytes:
    """One frame of HTTP/2."""
    head = len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + body


def over_http2(opening: bytes, repeated: bytes) -> Callable[[Site, int], Outcome]:
    """Send one frame again and again behind others, and a PING behind all of them."""

    def run(site: Site, count: int) -> Outcome:
        settings = frame(FrameKind.SETTINGS, 0, 0)
        flood = PREFACE + settings + opening + repeated * count + frame(FrameKind.PING, 0, 0, PING)
        return Outcome(sent(site, flood, PING))

    return run


def over_http1(opening: bytes, repeated: bytes, closing: bytes) -> Callable[[Site, int], Outcome]:
    """Send bytes again and again between others. The last answer closes the connection."""

    def run(site: Site, count: int) -> Outcome:
        return Outcome(sent(site, opening + repeated * count + closing, b""))

    return run


def sent(site: Site, flood: bytes, last: bytes) -> str:
    """Send a flood, and read until its last answer comes or the server ends the connection."""
    with site.connect() as connection:
        # The server may answer before it has read everything, and wait for its answers to be read.
        sender = threading.Thread(target=push, args=(connection.sendall, flood), daemon=True)
        sender.start()
        seen = b""
        try:
            while not (last and last in seen):
                got = connection.recv(65_536)
                if not got:
                    return "cut off" if last else "answered and closed"
                seen = seen[-len(last) or None :] + got if last else b""
        except OSError as error:
            return f"cut off ({type(error).__name__})"
        return "all taken"


def push(send: Callable[[bytes], None], flood: bytes) -> None:
    """Send until the server has everything or ends the connection."""
    try:
        send(flood)
    except OSError:
        return


_HEAD = frame(FrameKind.HEADERS, END_STREAM | END_HEADERS, 1, Encoder().encode(TAKE))
_BODY = frame(FrameKind.HEADERS, END_HEADERS, 1, Encoder().encode(POST))
_GET = b"GET /jobs/count HTTP/1.1\r\nHost: x\r\n\r\n"
_LAST = b"GET /jobs/count HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
_CHUNKED = (
    b"POST /jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
)
_CHUNKED += b"Transfer-Encoding: chunked\r\n\r\n"

_WINDOW = (FrameKind.WINDOW_UPDATE, 0)
ATTACKS = (
    *(
        Attack(f"600,000 {name}", over_http2(opening, repeated), 600_000, 5_000)
        for name, opening, repeated in (
            ("windows of a connection", b"", frame(*_WINDOW, 0, b"\0\0\0\1")),
            ("windows of a stream", _HEAD, frame(*_WINDOW, 1, b"\0\0\0\1")),
            ("bodies of one byte", _BODY, frame(FrameKind.DATA, 0, 1, b" ")),
            ("unknown frames", b"", frame(99, 0, 0)),
            ("farewells", b"", frame(FrameKind.GOAWAY, 0, 0, bytes(8))),
        )
    ),
    Attack("20,000 requests in a pipeline", over_http1(b"", _GET, _LAST), 20_000, 500),
    Attack("8 MB of blank lines", over_http1(b"", b"\r\n", _LAST), 4_000_000, 5_000),
    Attack(
        "600,000 chunks of one byte",
        over_http1(_CHUNKED, b"1\r\n \r\n", b"0\r\n\r\n"),
        *(600_000, 5_000),
    ),
    Attack(
        "60,000 chunks with extensions",
        over_http1(_CHUNKED, b"1;" + b"x" * 100 + b"\r\n \r\n", b"0\r\n\r\n"),
        *(60_000, 500),
    ),
)
