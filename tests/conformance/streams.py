"""Reading a take stream: the three framings, and a stream whose frames can be awaited."""

import asyncio
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import httpx
import msgpack

PATIENCE_S = 60.0
"""How long a test waits for something that must happen: a busy disk may pause for many seconds."""

PAUSE_S = 0.002

Job = dict[str, Any]
Frame = Job | None
"""One frame of a stream; None is a heartbeat."""

Cutter = Callable[[bytearray], tuple[bool, Frame]]
"""Takes one frame off the front of a buffer: (whether there was a whole one, the frame)."""


class Exchange(Protocol):
    """A request that was sent. A bad end is an error of httpx for whoever waits for the answer."""

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers, their names in lower case."""

    async def raw_chunk(self) -> bytes:
        """The next data, however long it takes; empty at the end."""

    async def body(self) -> bytes:
        """All data up to the end."""

    async def leave(self) -> None:
        """Want no more of it, if there is more. What the server is sent later, it hears later."""


async def pause() -> None:
    """Leave the processor to whoever is waited for, between two looks at what must happen."""
    await asyncio.sleep(PAUSE_S)


def cut_ndjson(buffer: bytearray) -> tuple[bool, Frame]:
    end = buffer.find(b"\n")
    if end < 0:
        return False, None
    line = bytes(buffer[:end])
    del buffer[: end + 1]
    return True, json.loads(line) if line else None


def cut_msgpack(buffer: bytearray) -> tuple[bool, Frame]:
    if len(buffer) < 4:
        return False, None
    (length,) = struct.unpack_from(">I", buffer)
    if len(buffer) < 4 + length:
        return False, None
    body = bytes(buffer[4 : 4 + length])
    del buffer[: 4 + length]
    return True, msgpack.unpackb(body, strict_map_key=True) if body else None


def cut_sse(buffer: bytearray) -> tuple[bool, Frame]:
    end = buffer.find(b"\n\n")
    if end < 0:
        return False, None
    event = bytes(buffer[:end])
    del buffer[: end + 2]
    if event == b": heartbeat":
        return True, None
    assert event.startswith(b"data: ")
    assert b"\n" not in event
    return True, json.loads(event.removeprefix(b"data: "))


CUTTERS: dict[str, Cutter] = {
    "application/x-ndjson": cut_ndjson,
    "application/vnd.zizq.msgpack-stream": cut_msgpack,
    "text/event-stream": cut_sse,
}


class StreamEnded(Exception):
    """The server ended the body cleanly."""


class FrameStream:
    """An open stream. A task reads it all the time, so that no test can block the server."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        exchange: Exchange,
        cutters: Mapping[str, Cutter] = CUTTERS,
    ) -> None:
        self.status = status
        self.media_type = headers.get("content-type", "")
        self._exchange = exchange
        self._frames: asyncio.Queue[Frame | Exception] = asyncio.Queue()
        self._pump = asyncio.create_task(self._read(cutters[self.media_type]))

    async def _read(self, cut: Cutter) -> None:
        buffer = bytearray()
        try:
            while chunk := await self._exchange.raw_chunk():
                buffer += chunk
                found, frame = cut(buffer)
                while found:
                    self._frames.put_nowait(frame)
                    found, frame = cut(buffer)
        except httpx.HTTPError as error:
            self._frames.put_nowait(error)
        else:
            assert not buffer, "the body ended within a frame"
            self._frames.put_nowait(StreamEnded())

    async def frame(self) -> Frame:
        """The next frame. Raises StreamEnded at a clean end, httpx.HTTPError at any other."""
        async with asyncio.timeout(PATIENCE_S):
            frame = await self._frames.get()
        if isinstance(frame, Exception):
            raise frame
        return frame

    async def has_frame(self) -> bool:
        """Whether a frame is there now or comes within a moment."""
        for _ in range(100):
            if not self._frames.empty():
                return True
            await asyncio.sleep(0.001)
        return False

    async def ended(self) -> None:
        """Wait for the clean end of the body. A job on the way there is a failure."""
        try:
            while True:
                frame = await self.frame()
                assert frame is None, f"unexpected delivery: {frame}"
        except StreamEnded:
            pass

    async def close(self) -> None:
        """Hang up, as a worker that goes away does."""
        self._pump.cancel()
        await asyncio.wait([self._pump])
        await self._exchange.leave()


class TakeStream(FrameStream):
    """An open take stream."""

    async def job(self) -> Job:
        """The next job, heartbeats left out."""
        while True:
            frame = await self.frame()
            if frame is not None:
                return frame

    async def jobs(self, count: int) -> list[Job]:
        return [await self.job() for _ in range(count)]


class EventStream(FrameStream):
    """An open stream of events. `last_id` is what a client would come back with."""

    def __init__(self, status: int, headers: Mapping[str, str], exchange: Exchange) -> None:
        cutters = {**CUTTERS, "text/event-stream": self._cut_sse}
        super().__init__(status, headers, exchange, cutters)
        self.last_id = ""

    async def event(self) -> Job:
        """The next event, heartbeats left out; `event_id` wherever the format has it."""
        while True:
            frame = await self.frame()
            if frame is not None:
                self.last_id = frame["event_id"]
                return frame

    async def events(self, count: int) -> list[Job]:
        return [await self.event() for _ in range(count)]

    def _cut_sse(self, buffer: bytearray) -> tuple[bool, Frame]:
        end = buffer.find(b"\n\n")
        if end < 0:
            return False, None
        lines = bytes(buffer[:end]).decode().split("\n")
        del buffer[: end + 2]
        fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
        self.last_id = fields["id"]
        if "data" not in fields:
            return True, None
        assert list(fields) == ["id", "event", "data"]
        doc: Job = json.loads(fields["data"])
        assert doc["type"] == fields["event"]
        assert "event_id" not in doc
        return True, doc | {"event_id": fields["id"]}
