"""A backup whose client or server is killed, or whose disk is full, leaves nothing behind."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from conformance.client import new_job
from conformance.streams import PATIENCE_S

from .server import WITH_ADMIN, ServerProcess, clean_environment
from .test_full_disk import disk, free

__all__ = ["disk"]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    server = await ServerProcess.spawn(None, *WITH_ADMIN, "--root-dir", str(tmp_path / "data"))
    try:
        yield await server.listening()
    finally:
        await server.kill()


async def backup(server: ServerProcess, file: Path) -> Process:
    words = ("backup", str(file), "--admin-url", await server.admin_url())
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zq.cli", *words),
        env=clean_environment(),
        stdout=PIPE,
        stderr=PIPE,
    )


async def writes_into(process: Process, folder: Path) -> None:
    """Until a process has a file in a folder open."""
    descriptors = Path(f"/proc/{process.pid}/fd")
    async with asyncio.timeout(PATIENCE_S):
        while not _is_in(descriptors, folder):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def _is_in(descriptors: Path, folder: Path) -> bool:
    return any(target.startswith(str(folder)) for target in _targets(descriptors))


def _targets(folder: Path) -> Iterator[str]:
    """What the links of a folder point to. Any of them may go meanwhile."""
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield str(path.readlink())


UNDER_WAY = b"a backup is under way already"


@pytest.mark.parametrize("victim", ["client", "server"])
async def test_a_kill_while_a_backup_is_awaited_leaves_no_file(
    server: ServerProcess, tmp_path: Path, victim: str
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    url = await server.admin_url()
    server.signal(signal.SIGSTOP)
    process = await backup(server, vault / "zq.tar.gz")
    await writes_into(process, vault)
    if victim == "client":
        process.kill()
        await process.communicate()
        server.signal(signal.SIGCONT)
    else:
        await server.kill()
        _, errors = await process.communicate()
        assert (process.returncode, url in errors.decode()) == (3, True)
    assert list(vault.iterdir()) == []
    if victim == "client":
        # The server may hear late that the killed one has gone, and has one backup at a time.
        async with asyncio.timeout(PATIENCE_S):
            errors = UNDER_WAY
            while UNDER_WAY in errors:
                process = await backup(server, vault / "zq.tar.gz")
                _, errors = await process.communicate()
        assert (process.returncode, len(list(vault.iterdir()))) == (0, 1)


async def test_a_kill_of_the_server_amid_a_backup_leaves_no_copy(
    server: ServerProcess, tmp_path: Path
) -> None:
    async with server.client() as client:
        for _ in range(8):
            await client.enqueue_many(10, payload=os.urandom(50_000).hex())
    host, port = (await server.admin_url()).removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.write(f"POST /backup HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n".encode())
    await asyncio.wait_for(reader.readline(), PATIENCE_S)
    held = list(_targets(Path(f"/proc/{server.pid}/fd")))
    assert any(name.endswith("zq.db.copy (deleted)") for name in held)
    await server.kill()
    names = {path.name for path in (tmp_path / "data").iterdir()}
    assert names <= {"zq.db", "zq.db-wal", "zq.db-shm", "zq.lock"}
    writer.close()


async def test_a_disk_without_room_for_a_copy_keeps_its_reserve_and_takes_jobs(disk: Path) -> None:
    flags = ("--root-dir", str(disk / "data"), "--disk-reserve", "12MiB")
    server = await ServerProcess.spawn(None, *WITH_ADMIN, *flags)
    try:
        await server.listening()
        bulk = {"jobs": [new_job(payload="x" * 100_000)] * 10}
        async with server.client() as client, aiohttp.ClientSession(trust_env=False) as http:
            for _ in range(20):
                assert (await client.post("/jobs/bulk", bulk)).status == 201
            async with http.post(f"{await server.admin_url()}/backup") as answer:
                assert answer.status == 507
                assert "--disk-reserve" in json.loads(await answer.read())["error"]
            assert free(disk) > 12 * 2**20
            assert (await client.post("/jobs/bulk", bulk)).status == 201
    finally:
        await server.kill()
