"""The parts of HTTP/2 that a cheap load needs: many requests at once on one connection.

As in http1.py, anything unexpected ends the load.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

from bench.http1 import BLANK_LINE, Client, LoadError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
ACK = END_STREAM = 1
END_HEADERS = 4
WINDOW = 2**30
REPLENISH = 2**20
# HPACK of 200 and 204: by the static table, or spelled out.
SUCCESSES = (b"\x88", b"\x89", b"\x08\x03200", b"\x08\x03204")
# By the static table only: method POST, scheme http, :authority, content-type.
PSEUDO = b"\x83\x86" + b"\x01\x09localhost" + b"\x04%c%b"
FIELDS = b"\x0f\x10\x10application/json"


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return b"%b%c%c%b%b" % (
        len(body).to_bytes(3, "big"),
        kind,
        flags,
        stream.to_bytes(4, "big"),
        body,
    )


class Lane:
    """One request at a time on a shared connection. It is used like an http1.Connection."""

    def __init__(
        self, connection: Http2Connection, on_reply: Callable[[Lane, float], None]
    ) -> None:
        self._connection = connection
        self._on_reply = on_reply
        self._sent_at = 0.0

    def send(self, request: bytes) -> None:
        """Send a request that http1.post rendered."""
        head, _, body = request.partition(BLANK_LINE)
        self._sent_at = perf_counter()
        self._connection.send(self, head.split(b" ", 2)[1], body)

    def replied(self) -> None:
        self._on_reply(self, perf_counter() - self._sent_at)


class Http2Connection(Client):
    """Carries lanes. Everything sent in one turn of the loop goes out in one write."""

    def __init__(self) -> None:
        self._lanes: dict[int, Lane] = {}
        self._next = 1
        self._buffer = b""
        self._out: list[bytes] = []
        self._unreturned = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        window = frame(WINDOW_UPDATE, 0, 0, WINDOW.to_bytes(4, "big"))
        self._transport.write(PREFACE + frame(SETTINGS, 0, 0) + window)

    def send(self, lane: Lane, path: bytes, body: bytes) -> None:
        number = self._next
        self._next += 2
        self._lanes[number] = lane
        block = PSEUDO % (len(path), path) + FIELDS
        ends = 0 if body else END_STREAM
        self._write(frame(HEADERS, END_HEADERS | ends, number, block))
        if body:
            self._write(frame(DATA, END_STREAM, number, body))

    def _write(self, data: bytes) -> None:
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append(data)

    def _flush(self) -> None:
        self._transport.write(b"".join(self._out))
        self._out.clear()

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data
        start = 0
        while len(data) - start >= 9:
            end = start + 9 + int.from_bytes(data[start : start + 3], "big")
            if end > len(data):
                break
            stream = int.from_bytes(data[start + 5 : start + 9], "big")
            self._received(data[start + 3], data[start + 4], stream, data[start + 9 : end])
            start = end
        self._buffer = data[start:]

    def _received(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if kind == HEADERS and not body.startswith(SUCCESSES):
            raise LoadError(f"an answer of another status than 200 or 204: {body!r}")
        if kind in (RST_STREAM, GOAWAY):
            raise LoadError(f"the server ended a stream or the connection: {body!r}")
        if kind == SETTINGS and not flags & ACK:
            self._write(frame(SETTINGS, ACK, 0))
        if kind == DATA:
            self._unreturned += len(body)
            if self._unreturned >= REPLENISH:
                self._write(frame(WINDOW_UPDATE, 0, 0, self._unreturned.to_bytes(4, "big")))
                self._unreturned = 0
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self._lanes.pop(stream).replied()
