"""A take stream that a test reads step by step, over a connection of its choice."""

from conformance.raw import RawConnection
from conformance.streams import Frame, Job, cut_ndjson


class Worker:
    """Reads one frame at a time; what it does not read stays in the kernel's buffers."""

    def __init__(self, connection: RawConnection) -> None:
        self._connection = connection
        self._buffer = bytearray()

    async def take(self, *, prefetch: int, queue: str) -> None:
        """Ask for jobs and wait for the head of the answer."""
        target = f"/jobs/take?prefetch={prefetch}&queue={queue}"
        await self._connection.send(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert (await self._connection.head())[0] == 200

    async def frame(self) -> Frame:
        found, frame = cut_ndjson(self._buffer)
        while not found:
            chunk = await self._connection.chunk()
            assert chunk, "the stream has ended"
            self._buffer += chunk
            found, frame = cut_ndjson(self._buffer)
        return frame

    async def jobs(self, count: int) -> list[Job]:
        """The next jobs, heartbeats left out."""
        jobs: list[Job] = []
        while len(jobs) < count:
            frame = await self.frame()
            if frame is not None:
                jobs.append(frame)
        return jobs

    async def heartbeat(self) -> None:
        """Read up to the next heartbeat; a job on the way there is a failure."""
        frame = await self.frame()
        assert frame is None, f"unexpected delivery: {frame}"
