"""A server that stores nothing and answers from constants: it measures the limit of the load.

A rate against it is a lower bound of that limit, since it shares the machine with the load.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import re
import socket
from collections import deque
from pathlib import Path
from typing import cast

from bench.actors import BULK
from bench.baseline import Row, announce, frame, stored
from bench.http1 import BLANK_LINE, CONTENT_LENGTH
from bench.loops import best_loop, loop_factory

ROW: Row = (1, "queue-0", "send-email", 32768, 1_700_000_000_000, '{"n":123,"user":"u-000123"}')
PREFETCH = re.compile(rb"prefetch=(\d+)")
ID_BYTES = len(f'"{ROW[0]:026d}",')
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def created(text: str) -> bytes:
    return f"HTTP/1.1 201 Created\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


ONE = created(stored(ROW))
MANY = created('{"jobs":[' + ",".join([stored(ROW)] * BULK) + "]}")


@functools.cache
def chunk(jobs: int) -> bytes:
    text = frame(ROW, ROW[4]).encode() * jobs
    return b"%x\r\n%b\r\n" % (len(text), text)


class Null(asyncio.Protocol):
    """Requests come one at a time; an acknowledgement of n jobs sends n more to the next stream."""

    def __init__(self, streams: deque[asyncio.Transport]) -> None:
        self._streams = streams
        self._head = b""
        self._missing = 0
        self._answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport in self._streams:
            self._streams.remove(self._transport)

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            data = self._head + data
            end = data.find(BLANK_LINE)
            if end < 0:
                self._head = data
                return
            self._head = b""
            length = CONTENT_LENGTH.search(data, 0, end + 2)
            size = int(length[1]) if length else 0
            self._missing = end + 4 + size - len(data)
            self._answer = self._choose(data, size)
        if not self._missing:
            self._transport.write(self._answer)

    def _choose(self, head: bytes, size: int) -> bytes:
        path = head[: head.index(b" HTTP/")].partition(b" ")[2]
        if path == b"/jobs":
            return ONE
        if path == b"/jobs/bulk":
            return MANY
        if path.endswith(b"/success"):
            if self._streams:
                self._streams.rotate()
                self._streams[0].write(chunk(max(1, size // ID_BYTES)))
            return NO_CONTENT
        prefetch = PREFETCH.search(path)
        self._streams.append(self._transport)
        return STREAM_HEAD + chunk(int(prefetch[1]) if prefetch else 1)


async def serve(port: int) -> None:
    listener = socket.create_server(("127.0.0.1", port))
    streams: deque[asyncio.Transport] = deque()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Null(streams), sock=listener)
    announce(listener)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(
        description="answers from constants, to find the load's ceiling"
    )
    parser.add_argument("--port", type=int, default=0, help="0 means any free one")
    parser.add_argument("--root-dir", type=Path, help="ignored: nothing is stored")
    args = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory(best_loop())) as runner:
        runner.run(serve(args.port))


if __name__ == "__main__":
    main()
