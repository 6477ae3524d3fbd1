"""A cable between two servers that a test lays: it counts bytes, and can be cut, slow or silent."""

import asyncio
from contextlib import suppress

CHUNK = 2**16

STORING = b"POST /jobs/bulk"
"""The beginning of requests that store jobs, or take over a producer."""


class Cable:
    """Carries the connections to its port on to a target. Nothing comes by another way."""

    def __init__(self) -> None:
        self.target = 0
        """The port of the server at the other end."""
        self.port = 0
        self.up = 0
        """The bytes that have gone to the target, and those of its answers."""
        self.down = 0
        self.delay_s = 0.0
        """How much later each piece arrives."""
        self.bytes_a_second = 0.0
        """How much passes in each direction of a connection; 0 if there is no limit."""
        self.swallows = 0
        """So many of the next answers to these requests are lost with their connections, although
        they are good: those that store jobs, unless a test says something else."""
        self.swallowing = STORING
        self.swallowed = 0
        self.loses = 0
        """So many requests with these bytes are lost with their connections, once no more answers
        are."""
        self.losing = b""
        self._flows = asyncio.Event()
        self._flows.set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()

    async def lay(self) -> None:
        """Begin to listen on a port of its own."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """End, with all connections."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        self.cut()

    def cut(self) -> None:
        """Lose all connections, and refuse others until there is a target again."""
        self.target = 1
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()
        self._flows.set()

    def fall_silent(self) -> None:
        """Carry nothing more, and tell nobody, until the cable is cut."""
        self._flows.clear()

    def be_usual(self) -> None:
        """Be as fast as the machine, and lose no answers."""
        self.delay_s = self.bytes_a_second = 0.0
        self.swallows, self.swallowing = 0, STORING

    async def _accept(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            far, out = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            back.transport.abort()
            return
        connection = _Connection(self, near, back, far, out)
        self._ends |= {back, out}
        for carrying in (connection.carry_up(), connection.carry_down()):
            task = asyncio.create_task(carrying)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def pass_by(self, size: int) -> None:
        """Take as long as so many bytes take."""
        await self._flows.wait()
        took = self.delay_s + (size / self.bytes_a_second if self.bytes_a_second else 0.0)
        if took:
            await asyncio.sleep(took)

    def forget(self, *ends: asyncio.StreamWriter) -> None:
        """Close the ends of a connection."""
        for end in ends:
            end.close()
            self._ends.discard(end)


class _Connection:
    """One connection through a cable."""

    def __init__(
        self,
        cable: Cable,
        near: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        far: asyncio.StreamReader,
        out: asyncio.StreamWriter,
    ) -> None:
        self._cable = cable
        self._near, self._back, self._far, self._out = near, back, far, out
        self._request = b""
        """The beginning of the last request."""

    async def carry_up(self) -> None:
        with suppress(OSError):
            while data := await self._near.read(CHUNK):
                await self._cable.pass_by(len(data))
                cable = self._cable
                if cable.loses and not cable.swallows and cable.losing in data:
                    cable.loses -= 1
                    break
                if b" HTTP/1.1\r\n" in data:
                    self._request = data[:200]
                self._cable.up += len(data)
                self._out.write(data)
                await self._out.drain()
        self._cable.forget(self._out)

    async def carry_down(self) -> None:
        with suppress(OSError):
            while data := await self._far.read(CHUNK):
                await self._cable.pass_by(len(data))
                is_one = self._cable.swallowing in self._request
                if self._cable.swallows and is_one and data.startswith(b"HTTP/1.1 20"):
                    self._cable.swallows -= 1
                    self._cable.swallowed += 1
                    break
                self._cable.down += len(data)
                self._back.write(data)
                await self._back.drain()
        self._cable.forget(self._back, self._out)
