"""Just enough HTTP/1.1 to load a server cheaply: rendered requests, minimal reading of answers.

Anything unexpected raises LoadError inside a protocol callback. The loop hands it to its exception
handler, which ends the load: no figure ever comes from errors.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from time import perf_counter
from typing import cast

CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
BLANK_LINE = b"\r\n\r\n"
MAX_ERROR_TEXT = 500
AGAIN_S = 1.0
"""How long a patient connection waits until it sends a request again."""


class LoadError(Exception):
    """The load must end: an error status, a closed connection or a broken answer."""


def post(path: str, body: bytes = b"") -> bytes:
    """A whole request as bytes. It can be written many times."""
    content_type = "Content-Type: application/json\r\n" if body else ""
    size = f"Content-Length: {len(body)}\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{content_type}{size}\r\n"
    return head.encode() + body


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


class Client(asyncio.Protocol):
    """One TCP connection. Only this side may close it."""

    _transport: asyncio.Transport
    _closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._closed:
            raise LoadError(f"the server closed a connection: {exc}")

    def close(self) -> None:
        self._closed = True
        self._transport.abort()


class Connection(Client):
    """A keep-alive connection with at most one request outstanding.

    `on_reply(connection, seconds)` is called when a 2xx answer is complete, with its round trip.
    """

    def __init__(self, on_reply: Callable[[Connection, float], None]) -> None:
        self._on_reply = on_reply
        self._sent_at = 0.0
        self._head = b""
        self._missing = 0

    def send(self, request: bytes) -> None:
        self._sent_at = perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        elif not self._begin(self._head + data):
            return
        if self._missing < 0:
            raise LoadError("more bytes than the answer announced")
        if not self._missing:
            self._end()

    def _end(self) -> None:
        self._on_reply(self, perf_counter() - self._sent_at)

    def _begin(self, data: bytes) -> bool:
        """Read the head of an answer. Return False if it is not complete yet."""
        end = data.find(BLANK_LINE)
        if end < 0:
            self._head = data
            return False
        self._head = b""
        self._judge(data)
        length = CONTENT_LENGTH.search(data, 0, end + 2)
        if length is None and data[9:12] != b"204":
            raise LoadError("an answer without Content-Length")
        self._missing = end + 4 + (int(length[1]) if length else 0) - len(data)
        return True

    def _judge(self, head: bytes) -> None:
        check_status(head)


class PatientConnection(Connection):
    """Sends again what the server is too busy for: for what comes before the measured time."""

    def send(self, request: bytes) -> None:
        self._request = request
        super().send(request)

    def _judge(self, head: bytes) -> None:
        self._is_refused = head[9:12] == b"503"
        if not self._is_refused:
            super()._judge(head)

    def _end(self) -> None:
        if self._is_refused:
            asyncio.get_running_loop().call_later(AGAIN_S, self.send, self._request)
        else:
            super()._end()


class TakeStream(Client):
    """A `GET /jobs/take` that hands on whole NDJSON lines as they arrive.

    `on_lines(text)` gets one or more complete lines; heartbeats (empty lines) are among them.
    """

    def __init__(self, path: str, on_lines: Callable[[bytes], None]) -> None:
        self._path = path
        self._on_lines = on_lines
        self.streaming = False
        self._raw = b""
        self._line = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._transport.write(get(self._path))

    def data_received(self, data: bytes) -> None:
        raw = self._raw + data
        if not self.streaming:
            end = raw.find(BLANK_LINE)
            if end < 0:
                self._raw = raw
                return
            check_status(raw)
            if not CHUNKED.search(raw, 0, end + 2):
                raise LoadError("a take stream that is not chunked")
            self.streaming = True
            raw = raw[end + 4 :]
        chunks, self._raw = split_chunks(raw)
        text = self._line + b"".join(chunks)
        cut = text.rfind(b"\n") + 1
        self._line = text[cut:]
        if cut:
            self._on_lines(text[:cut])


def check_status(head: bytes) -> None:
    if head[9:10] != b"2":
        raise LoadError(head[:MAX_ERROR_TEXT].decode(errors="replace"))


def split_chunks(raw: bytes) -> tuple[list[bytes], bytes]:
    """The bodies of the complete chunks at the start of `raw`, and the rest."""
    chunks = []
    start = 0
    while (eol := raw.find(b"\r\n", start)) >= 0:
        size = int(raw[start:eol], 16)
        end = eol + 2 + size
        if len(raw) < end + 2:
            break
        if not size:
            raise LoadError("the server ended a take stream")
        chunks.append(raw[eol + 2 : end])
        start = end + 2
    return chunks, raw[start:]
