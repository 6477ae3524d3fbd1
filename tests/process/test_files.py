"""The permissions of a data directory's files, and the standard descriptors."""

import asyncio
import contextlib
import signal
import time
from pathlib import Path

import httpx
import pytest
from conformance.client import Client, new_job
from conformance.streams import PATIENCE_S

from .server import ServerProcess, running

FILES = ("zq.db", "zq.db-wal", "zq.db-shm", "zq.lock")
REMOVED = "was removed or replaced while it was in use"


def modes(root: Path) -> dict[str, str]:
    return {file.name: oct(file.stat().st_mode & 0o777) for file in root.iterdir()}


@pytest.mark.parametrize("umask", ["000", "022", "777"])
async def test_the_files_are_their_owners_alone_whatever_the_umask(
    umask: str, tmp_path: Path
) -> None:
    before = ("sh", "-c", f'umask {umask}; exec "$@"', "sh")
    async with running(tmp_path, before=before) as server, server.client() as client:
        await client.enqueue()
        assert modes(tmp_path) == dict.fromkeys(FILES, "0o600")


@pytest.mark.parametrize("umask", ["000", "777"])
async def test_folders_and_logs_are_their_owners_alone_whatever_the_umask(
    umask: str, tmp_path: Path
) -> None:
    before = ("sh", "-c", f'umask {umask}; exec "$@"', "sh")
    root = tmp_path / "root"
    async with running(root, "--log-to-disk", before=before) as server, server.client() as client:
        await client.enqueue()
        made = [root, *root.rglob("*")]
        assert root / "log" in made and len(made) > 6
        assert [path for path in made if path.stat().st_mode & 0o077] == []


async def test_files_of_an_earlier_version_are_closed_to_others(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        await client.enqueue()
        await server.kill()
    for name in modes(tmp_path):
        (tmp_path / name).chmod(0o664)
    async with running(tmp_path):
        assert modes(tmp_path) == dict.fromkeys(FILES, "0o600")


def wait_for(file: Path) -> None:
    """A server whose log is closed says in no other way that it has come so far."""
    deadline = time.monotonic() + PATIENCE_S
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_a_server_started_without_standard_descriptors_gives_them_to_no_file(
    tmp_path: Path,
) -> None:
    before = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    server = await ServerProcess.spawn(tmp_path, before=before)
    try:
        await asyncio.to_thread(wait_for, tmp_path / "zq.db-wal")
        fds = Path(f"/proc/{server.pid}/fd")
        assert {str((fds / str(number)).readlink()) for number in range(3)} == {"/dev/null"}
    finally:
        await server.kill()


async def ended_for_its_files(server: ServerProcess, name: str) -> str:
    assert await server.exited() == 74
    (line,) = [line for line in server.log if REMOVED in line["fields"]["message"]]
    assert line["level"] == "ERROR"
    assert "traceback" not in line["fields"]
    assert f"/{name} was removed" in line["fields"]["message"]
    assert server.errors == b""
    return server.messages[-1]


async def promises_nothing(client: Client) -> None:
    """A server that is about to notice, or is on its way out, or gone."""
    with contextlib.suppress(httpx.TransportError):
        assert (await client.post("/jobs", new_job())).status == 503


@pytest.mark.parametrize("name", FILES)
async def test_an_idle_server_notices_that_a_file_is_gone(name: str, tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        await client.enqueue()
        (tmp_path / name).unlink()
        await ended_for_its_files(server, name)


@pytest.mark.parametrize("name", FILES)
async def test_nothing_is_promised_once_a_file_is_another_one(name: str, tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        await client.enqueue()
        other = tmp_path / "other"
        other.write_bytes(b"")
        other.replace(tmp_path / name)
        await promises_nothing(client)
        await ended_for_its_files(server, name)


async def ids(client: Client) -> set[str]:
    return {job["id"] for job in await client.jobs()}


async def test_what_an_unlinked_database_held_is_saved_beside_it(tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        stored = {(await client.enqueue())["id"] for _ in range(3)}
        for name in FILES[:3]:
            (tmp_path / name).unlink()
        await ended_for_its_files(server, "zq.db")
    (saved,) = (name for name in modes(tmp_path) if "rescued" in name)
    assert any(f"saved in {tmp_path / saved}" in message for message in server.messages)
    assert modes(tmp_path)[saved] == "0o600"
    (tmp_path / saved).rename(tmp_path / "zq.db")
    async with running(tmp_path) as server, server.client() as client:
        assert await ids(client) == stored


async def test_a_stop_right_after_the_database_was_unlinked_is_not_a_clean_one(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as server, server.client() as client:
        await client.enqueue()
        server.signal(signal.SIGSTOP)
        (tmp_path / "zq.db").unlink()
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGCONT)
        await ended_for_its_files(server, "zq.db")


async def test_two_servers_never_promise_on_one_directory(tmp_path: Path) -> None:
    async with running(tmp_path) as first, first.client() as client:
        await client.enqueue()
        first.signal(signal.SIGSTOP)
        (tmp_path / "zq.lock").unlink()
        async with running(tmp_path) as second, second.client() as other:
            first.signal(signal.SIGCONT)
            await promises_nothing(client)
            await ended_for_its_files(first, "zq.lock")
            assert (await other.post("/jobs", new_job())).status == 201
            assert modes(tmp_path) == dict.fromkeys(FILES, "0o600")
