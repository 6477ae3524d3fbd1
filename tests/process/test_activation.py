"""A server that gets its port from systemd: early requests wait for it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from conformance.client import to_json
from conformance.raw import RawConnection
from conformance.streams import PATIENCE_S

from bench.ports import free_port

from .server import ServerProcess


def new_job() -> bytes:
    body = to_json({"queue": "q", "type": "t", "payload": None})
    head = "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@asynccontextmanager
async def activated(root: Path, listen: Sequence[str], *flags: str) -> AsyncIterator[ServerProcess]:
    """A server that systemd starts once somebody connects."""
    command = ("systemd-socket-activate", *listen)
    server = await ServerProcess.spawn(root, *flags, before=command)
    try:
        yield server
    finally:
        await server.kill()


async def connected(connect: Callable[[], Awaitable[RawConnection]]) -> RawConnection:
    """A connection to the socket that systemd holds, as soon as it does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await connect()
            except (ConnectionRefusedError, FileNotFoundError):
                await asyncio.sleep(0.01)


async def test_the_request_that_starts_the_server_is_answered(tmp_path: Path) -> None:
    port, other = free_port(), free_port()
    listen = ["-l", f"127.0.0.1:{port}"]
    async with activated(tmp_path, listen, "--port", str(other)) as server:
        first = await connected(partial(RawConnection.open, port))
        await first.send(new_job())
        second = await RawConnection.open(port)
        await second.send(new_job())
        for connection in (first, second):
            assert (await connection.reply()).status == 201
            await connection.close()

        line = await server.logged("listening")
        assert line["fields"]["addr"] == f"127.0.0.1:{port}"
        assert line["fields"]["socket"] == "passed"
        with pytest.raises(ConnectionRefusedError):
            await RawConnection.open(other)
        async with server.client() as client:
            assert await client.count() == 2
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0


async def test_a_socket_open_to_the_network_takes_keys(tmp_path: Path) -> None:
    port = free_port()
    async with activated(tmp_path / "data", ["-l", f"0.0.0.0:{port}"]) as server:
        async with await connected(partial(RawConnection.open, port)):
            assert await server.exited() == os.EX_CONFIG
        assert server.messages[-1].startswith("ListenStream=0.0.0.0: everyone who reaches")


async def open_unix(path: Path) -> RawConnection:
    return RawConnection(*await asyncio.open_unix_connection(path))


@pytest.mark.parametrize(
    ("kind", "advice"),
    [("two", "leave one ListenStream="), ("unix", "ListenStream=ADDRESS:PORT")],
)
async def test_sockets_that_cannot_be_used_end_the_start(
    kind: str, advice: str, tmp_path: Path
) -> None:
    port = free_port()
    path = tmp_path / "socket"
    listen, connect = ["-l", str(path)], partial(open_unix, path)
    if kind == "two":
        connect = partial(RawConnection.open, port)
        listen = ["-l", f"127.0.0.1:{port}", "-l", f"127.0.0.1:{free_port()}"]
    async with activated(tmp_path / "data", listen) as server:
        connection = await connected(connect)
        assert await server.exited() == os.EX_CONFIG
        assert advice in server.messages[-1]
        assert not (tmp_path / "data").exists()
        await connection.close()


async def test_variables_for_another_process_mean_nothing(tmp_path: Path) -> None:
    environment = {"LISTEN_FDS": "1", "LISTEN_PID": "1"}
    server = await ServerProcess.spawn(tmp_path, env=environment)
    try:
        await server.listening()
        assert "socket" not in (await server.logged("listening"))["fields"]
    finally:
        await server.kill()
