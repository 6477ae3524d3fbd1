"""`zq backup`, `zq restore`, `zq compact` and `zq damage` as users run them."""

import asyncio
import errno
import json
import os
import re
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from documents import code, commands
from process.server import WITH_ADMIN, ServerProcess

import zq
from zq.cli.backup import new_file
from zq.client.backend import Backend
from zq.client.errors import BackendError
from zq.client.values import StoredJob, Submission
from zq.features.producers.wire import ProducerBody

from .shell import Shell


class Served(Shell):
    """Commands, and a server in a process of its own: a backup comes from its admin listener."""

    def __init__(
        self, server: ServerProcess, backend: Backend, directory: Path, admin_url: str
    ) -> None:
        super().__init__(f"http://127.0.0.1:{server.port}", backend, directory)
        self.server = server
        self.admin_url = admin_url


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Served]:
    server = await ServerProcess.spawn(None, *WITH_ADMIN, "--root-dir", str(tmp_path / "data"))
    try:
        await server.listening()
        admin_url = await server.admin_url()
        async with zq.App(f"http://127.0.0.1:{server.port}") as app:
            yield Served(server, app.backend, tmp_path, admin_url)
    finally:
        await server.kill()


def told(shell: Served) -> str:
    """The name of the server that a command has asked."""
    return f"{shell.url}, by its admin listener {shell.admin_url}"


def left_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "data")


async def test_a_backup_goes_to_a_file_and_from_there_into_an_empty_directory(
    shell: Served,
) -> None:
    (job,) = await shell.push("hello")
    said = await shell.zq("backup", "zq.tar.gz")
    file = shell.directory / "zq.tar.gz"
    size = file.stat().st_size
    assert (said.code, said.output, said.errors) == (0, f"zq.tar.gz: {size:,} bytes\n", "")
    assert said.server == told(shell)
    assert file.stat().st_mode & 0o777 == 0o600

    again = await shell.zq("backup", "zq.tar.gz")
    assert again.code == 2
    assert "--overwrite" in again.errors
    over = await shell.zq("backup", "--overwrite", "--json", "zq.tar.gz")
    assert over.documents == [{"file": str(file), "bytes": file.stat().st_size}]
    assert left_in(shell.directory) == ["zq.tar.gz"]

    restored = await shell.zq("restore", "zq.tar.gz", "--root-dir", "new")
    assert (restored.code, restored.errors) == (0, "")
    assert restored.server == f"{shell.directory}/new; ZQ_URL ({shell.url}) plays no part"
    assert (await shell.zq("check", "--root-dir", "new")).code == 0
    twice = await shell.zq("restore", "zq.tar.gz", "--root-dir", "new")
    assert (twice.code, "not empty (it holds zq.db)" in twice.errors) == (2, True)

    await shell.server.kill()
    server = await ServerProcess.spawn(shell.directory / "new")
    try:
        await server.listening()
        async with server.client() as client:
            assert [each["id"] for each in await client.jobs()] == [job.id]
    finally:
        await server.kill()


async def test_the_commands_of_the_page_do_as_it_says(shell: Served) -> None:
    await shell.push("hello")
    for command in commands("backup"):
        program, *words = command.split()
        said = await shell.zq(*words)
        assert (program, said.code, said.errors) == ("zq", 0, "")


def nightly_commands() -> list[str]:
    """What cron and systemd run, without the signs by which they know a per cent."""
    (cron,) = code("nightly backup").splitlines()
    (unit,) = re.findall(r"ExecStart=/bin/sh -c '(.*)'", code("zq-backup.service"))
    found = [cron.split(maxsplit=6)[6].replace("\\%", "%"), unit.replace("%%", "%")]
    return [command.replace("/opt/zq/.venv/bin/", "") for command in found]


async def in_sh(shell: Served, command: str) -> None:
    """Run a command of the documents, with this `zq` and this server for its own."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=shell.directory,
        env=os.environ | {"PATH": path, "ZQ_URL": shell.url},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


async def send(backend: Backend, mark: dict[str, Any], *payloads: int) -> list[StoredJob]:
    """Store jobs with the numbers that a mark begins."""
    jobs = [Submission(queue="q", type="t", payload=each) for each in payloads]
    return await backend.enqueue_on({"producer": ProducerBody(**mark)}, jobs)


async def stored(backend: Backend) -> list[int]:
    """The payloads of all jobs, in their order."""
    return [job.payload for job in (await backend.jobs()).jobs]


async def test_a_restored_server_says_from_which_number_a_producer_must_send_again(
    shell: Served,
) -> None:
    device = {"name": "device-17", "epoch": "7f3a"}
    await send(shell.backend, {**device, "seq": 1}, 1, 2)
    assert (await shell.zq("backup", "zq.tar.gz")).code == 0
    await send(shell.backend, {**device, "seq": 3}, 3, 4)
    await shell.server.kill()
    for name in ("kept", "lost"):
        assert (await shell.zq("restore", "zq.tar.gz", "--root-dir", name)).code == 0

    async with restored(shell.directory / "kept") as backend:
        with pytest.raises(BackendError) as gap:
            await send(backend, {**device, "seq": 5}, 5)
        assert (gap.value.code, gap.value.details) == ("sequence_gap", {"expected": 3})
        # The producer still has these jobs. It may repeat what it sends, as ever.
        for _ in range(2):
            again = await send(backend, {**device, "seq": 3}, 3, 4, 5)
        assert all(job.duplicate for job in again)
        assert await stored(backend) == [1, 2, 3, 4, 5]

    async with restored(shell.directory / "lost") as backend:
        with pytest.raises(BackendError) as gap:
            await send(backend, {**device, "seq": 5}, 5)
        # It has dropped those that were answered, and begins an epoch behind what is here.
        assert gap.value.details == {"expected": 3}
        new = {"name": "device-17", "epoch": "8b01", "seq": 1, "after": "7f3a:2"}
        for _ in range(2):
            await send(backend, new, 5)
        assert await stored(backend) == [1, 2, 5]
        with pytest.raises(BackendError) as fenced:
            await send(backend, {**device, "seq": 3}, 3)
        assert fenced.value.details == {"epoch": "8b01", "last": 1, "ended": 2}


@asynccontextmanager
async def restored(directory: Path) -> AsyncIterator[Backend]:
    """A server of its own over what was restored."""
    server = await ServerProcess.spawn(directory)
    try:
        await server.listening()
        async with zq.App(f"http://127.0.0.1:{server.port}") as app:
            yield app.backend
    finally:
        await server.kill()


async def test_cron_and_systemd_make_one_backup_a_weekday(shell: Served) -> None:
    nightly = shell.directory / "nightly"
    nightly.mkdir()
    for command in nightly_commands():
        await in_sh(shell, re.sub("/var/(backups/zq|lib/zq-backup)", str(nightly), command))
        (file,) = nightly.iterdir()
        assert re.fullmatch(r"\w{2,3}\.tar\.gz", file.name)


async def test_a_copy_of_litestreams_becomes_a_database_of_its_own(shell: Served) -> None:
    await shell.push("hello")
    replicate, pack = commands("litestream")
    assert replicate.startswith("litestream restore -o zizq-root/zq.db ")
    # Litestream is not here. What it restores is a database, as a backup is.
    await in_sh(shell, "zq backup b.tar.gz && zq restore b.tar.gz --root-dir zizq-root")
    await in_sh(shell, pack.replace("/var/lib/zq", "own"))
    assert (await shell.zq("check", "--root-dir", "own")).code == 0


async def test_a_backup_goes_through_pipes(shell: Served) -> None:
    await shell.push("hello")
    process = await shell.start("backup", "-")
    archive, errors = await process.communicate()
    assert process.returncode == 0
    assert errors.decode() == f"server: {told(shell)}\n{len(archive):,} bytes\n"
    assert (await shell.zq("restore", "-", "--root-dir", "new", stdin=archive)).code == 0
    assert (await shell.zq("check", "--root-dir", "new")).code == 0
    cut = await shell.zq("restore", "-", "--root-dir", "cut", stdin=archive[:-20])
    assert (cut.code, "cut off" in cut.errors) == (74, True)
    assert left_in(shell.directory) == ["new"]


async def test_a_backup_says_that_its_reader_has_ended(shell: Served) -> None:
    await shell.push(os.urandom(20_000).hex())  # more than the buffer of stdout
    reader, writer = os.pipe()
    os.close(reader)
    process = await shell.start("backup", "-", stdout=writer)
    os.close(writer)
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert "Error: the program that reads the backup has ended\n" in errors.decode()


async def test_a_backup_that_fails_leaves_nothing(shell: Served) -> None:
    nobody = await shell.zq("backup", "zq.tar.gz", "--url", "http://127.0.0.1:1")
    assert (nobody.code, nobody.errors.count("\n")) == (3, 1)
    assert "no zq server answers at http://127.0.0.1:1" in nobody.errors
    directory = await shell.zq("backup", "zq.tar.gz", "--url", f"sqlite://{shell.directory}/data")
    assert (directory.code, "names a directory" in directory.errors) == (2, True)
    nowhere = await shell.zq("backup", "nowhere/zq.tar.gz")
    assert (nowhere.code, "cannot be written" in nowhere.errors) == (1, True)
    assert left_in(shell.directory) == []


ASKS_ADMIN = (("backup", "zq.tar.gz"), ("compact",), ("damage",), ("top", "--once"))


async def test_a_backup_is_of_the_server_that_the_variable_names(
    shell: Served, tmp_path: Path
) -> None:
    await shell.push("hello")
    second = await ServerProcess.spawn(None, *WITH_ADMIN, "--root-dir", str(tmp_path / "second"))
    try:
        await second.listening()
        url = f"http://127.0.0.1:{second.port}"
        said = await shell.zq("backup", "second.tar.gz", url=url)
        assert (said.code, said.server.partition(",")[0]) == (0, url)
        for command in ASKS_ADMIN[1:]:
            said = await shell.zq(*command, url=url)
            assert (said.code, said.server.partition(",")[0]) == (0, url)
    finally:
        await second.kill()
    await shell.zq("restore", "second.tar.gz", "--root-dir", "new")
    assert (await shell.zq("jobs", "--json", url=f"sqlite://{tmp_path}/new")).documents == []
    for command in ASKS_ADMIN:
        gone = await shell.zq(*command, url=url)
        assert (gone.code, f"no zq server answers at {url}" in gone.errors) == (3, True)


async def test_either_listener_leads_to_the_admin_listener(shell: Served) -> None:
    for words in (("--url", shell.admin_url), ("--admin-url", shell.admin_url)):
        said = await shell.zq("compact", *words)
        assert (said.code, said.server) == (0, shell.admin_url)
    misled = await shell.zq("queues", "--url", shell.admin_url)
    assert (misled.code, f"the API is at {shell.url}" in misled.errors) == (1, True)


async def test_a_server_without_an_admin_listener_is_named(shell: Served, tmp_path: Path) -> None:
    lone = await ServerProcess.spawn(tmp_path / "lone", "--no-admin")
    try:
        await lone.listening()
        said = await shell.zq("backup", "b", url=f"http://127.0.0.1:{lone.port}")
        assert (said.code, "has no admin listener" in said.errors) == (1, True)
    finally:
        await lone.kill()
    assert left_in(shell.directory) == ["lone"]


@asynccontextmanager
async def elsewhere(shell: Served, server: str, admin: str) -> AsyncIterator[str]:
    """What answers at the near end of a tunnel to a server on another machine."""

    async def listeners(_request: web.Request) -> web.Response:
        told = {"here": "primary", "server": server, "primary": "http://far:7890", "admin": admin}
        return web.json_response(told)

    app = web.Application()
    app.router.add_get("/listeners", listeners)
    async with TestServer(app) as far:
        yield str(far.make_url("")).rstrip("/")


async def test_another_server_at_the_same_address_is_not_asked(shell: Served) -> None:
    async with elsewhere(shell, "another", shell.admin_url) as url:
        said = await shell.zq("backup", "zq.tar.gz", url=url)
        assert (said.code, "another server answers" in said.errors) == (1, True)
        assert (await shell.zq("compact", "--admin-url", shell.admin_url, url=url)).code == 0
    async with elsewhere(shell, "another", "http://127.0.0.1:1") as url:
        said = await shell.zq("backup", "zq.tar.gz", url=url)
        assert (said.code, "--admin-url" in said.errors) == (3, True)
    assert left_in(shell.directory) == []


async def test_compacting_ends_with_a_word(shell: Served) -> None:
    said = await shell.zq("compact")
    assert (said.code, said.output) == (0, "compacted\n")


async def test_damage_is_listed_and_acknowledged(shell: Served) -> None:
    look, acknowledge = (line.split()[1:] for line in code("damage").splitlines())
    said = await shell.zq(*look)
    assert (said.code, said.output) == (0, "nothing damaged is known\n")
    (job,) = await shell.push("hello")
    with closing(sqlite3.connect(shell.directory / "data/zq.db", isolation_level=None)) as other:
        other.execute("UPDATE jobs SET type = CAST(x'ff' AS TEXT)")
    await shell.zq("jobs", "--url", shell.url)
    said = await shell.zq(*look)
    assert said.output.startswith(f"set aside: jobs {job.id} (its row holds text that is no UTF-8")
    said = await shell.zq(*acknowledge)
    assert said.output == "acknowledged: 1\n"
    said = await shell.zq("damage", "--json")
    assert json.loads(said.output) == {"rows": 0, "latest": []}


async def test_a_terminal_sees_how_it_ends(shell: Served) -> None:
    await shell.push("hello")
    shown = await shell.on_terminal("backup", "zq.tar.gz")
    assert "zq.tar.gz: " in shown
    shown = await shell.on_terminal("restore", "zq.tar.gz", "--root-dir", "new")
    assert "restored" in shown


@pytest.fixture(params=["nameless files", "no hard links"])
def nameless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the file system has files without a name. FAT, CIFS and others have no links."""

    def no_links(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "no hard links here")

    if request.param == "nameless files":
        return True
    monkeypatch.setattr(os, "O_TMPFILE", os.O_CREAT | os.O_EXCL)
    monkeypatch.setattr(os, "link", no_links)
    return False


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_has_its_name_when_it_is_whole(
    tmp_path: Path, nameless: bool, replace: bool
) -> None:
    path = tmp_path / "file"
    if replace:
        path.write_text("old")
    before = path.read_text() if replace else None
    with pytest.raises(ZeroDivisionError), new_file(path, replace=replace) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert [each.name for each in tmp_path.iterdir()] == (["file"] if replace else [])
    assert (path.read_text() if path.exists() else None) == before
    with new_file(path, replace=replace) as file:
        file.write(b"whole")
        assert not nameless or [each.name for each in tmp_path.iterdir()] == ["file"] * replace
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "whole"
    with pytest.raises(FileExistsError), new_file(path) as file:
        pass


@pytest.mark.usefixtures("nameless")
def test_race_a_file_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(FileExistsError), new_file(path) as file:
        file.write(b"mine")
        path.write_text("theirs")
    assert path.read_text() == "theirs"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
