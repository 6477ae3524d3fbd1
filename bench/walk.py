"""The files of zq that one request passes through, and how often control changes between them.

A server runs in this process, and the calls of its event loop's thread are traced. One request of
each kind precedes the one that is counted, so work that is done only once does not count.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import zq
from bench.report import Progress, Table
from bench.servers import Lab
from zq.config import Settings
from zq.runtime import Server

HOUSE = f"{Path(zq.__file__).parent}/"

SETTLED_S = 0.05
"""The work that a request leaves behind (a flush, a wake-up) is done after this time."""


ROUNDS = 3
"""Each walk is taken so often: what a timer brings in one of them does not count."""


@dataclass
class Walk:
    """The way of one request: files in the order of first entry, and changes of file.

    A change is a call, or a resumption, of a function in another file of zq than the one before.
    Returns do not count, nor does code outside zq (the standard library, aiohttp).
    """

    name: str
    files: list[str] = field(default_factory=list)
    changes: int = 0


class _Steps:
    """Follows its thread by `sys.setprofile`."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._last = ""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event != "call" or path == self._last or not path.startswith(HOUSE):
            return
        self._walk.changes += bool(self._last)
        self._last = path
        name = path.removeprefix(HOUSE)
        if name not in self._walk.files:
            self._walk.files.append(name)


class _Client:
    """A connection for hand-written requests, so that no file of zq's is the client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, server: Server) -> _Client:
        client = cls(*await asyncio.open_connection("127.0.0.1", server.port))
        # The first request sets a connection up.
        await client.ask("GET /version")
        return client

    async def ask(self, line: str, body: bytes = b"") -> bytes:
        """Send a request. Return the body of its answer."""
        self.send(line, body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        fields = dict(each.split(": ", 1) for each in head.decode().split("\r\n")[1:-2])
        return await self._reader.readexactly(int(fields.get("Content-Length", "0")))

    def send(self, line: str, body: bytes = b"") -> None:
        head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)

    async def frame(self) -> bytes:
        """The next frame of a stream that carries a job."""
        while b'"id"' not in (line := await self._reader.readline()):
            pass
        return line

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@contextmanager
def _traced(walk: Walk) -> Iterator[None]:
    sys.setprofile(_Steps(walk))
    try:
        yield
    finally:
        sys.setprofile(None)


JOB = b'{"queue":"q","type":"t","payload":{"n":1}}'


async def _enqueue(server: Server) -> Walk:
    client, walk = await _Client.to(server), Walk("POST /jobs")
    await client.ask("POST /jobs", JOB)
    await asyncio.sleep(SETTLED_S)
    with _traced(walk):
        await client.ask("POST /jobs", JOB)
        await asyncio.sleep(SETTLED_S)
    await client.close()
    return walk


async def _take(server: Server) -> tuple[Walk, Walk]:
    """Trace a stream from its request to its first frame, and the acknowledgement of that job."""
    take, acknowledge = Walk("GET /jobs/take"), Walk("POST /jobs/{id}/success")
    producer = await _Client.to(server)
    for each in (Walk(""), Walk("")), (take, acknowledge):
        await producer.ask("POST /jobs", JOB)
        client, worker = await _Client.to(server), await _Client.to(server)
        await asyncio.sleep(SETTLED_S)
        with _traced(each[0]):
            client.send("GET /jobs/take")
            frame = await client.frame()
            await asyncio.sleep(SETTLED_S)
        id = frame.partition(b'"id":"')[2].partition(b'"')[0].decode()
        with _traced(each[1]):
            await worker.ask(f"POST /jobs/{id}/success")
            await asyncio.sleep(SETTLED_S)
        await client.close()
        await worker.close()
    await producer.close()
    return take, acknowledge


def _shared(walks: Sequence[Walk]) -> Walk:
    """What the walks of equal requests share."""
    others = [set(walk.files) for walk in walks]
    files = [file for file in walks[0].files if all(file in each for each in others)]
    return Walk(walks[0].name, files, min(walk.changes for walk in walks))


async def walks(directory: Path) -> list[Walk]:
    """The walks of a server on an empty directory."""
    server = Server(Settings(root_dir=directory, port=0, drain=0, no_admin=True))
    await server.start()
    try:
        rounds = [[await _enqueue(server), *await _take(server)] for _ in range(ROUNDS)]
        return [_shared(same) for same in zip(*rounds, strict=True)]
    finally:
        await server.stop()


def walk(place: Lab, progress: Progress) -> list[Walk]:
    """Trace one request of each kind."""
    progress.show("walking")
    directory = place.directory / "walk"
    directory.mkdir()
    found = asyncio.run(walks(directory))
    progress.clear()
    return found


def walk_table(found: list[Walk]) -> Table:
    """Each walk with its files, in the order of first entry."""
    lines = []
    for each in found:
        heads = [[each.name, str(len(each.files)), str(each.changes)]]
        heads += [["", "", ""]] * (len(each.files) - 1)
        lines += [[*head, name] for head, name in zip(heads, each.files, strict=True)]
    return Table(["walk", "files", "changes", "in the order of first entry"], lines)
