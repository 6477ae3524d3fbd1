"""Starts that work, and starts that are refused with a code and a message to act on."""

import json
import os
import re
import signal
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.streams import pause

from .server import WITH_ADMIN, ServerProcess, refused, running


def only_error(server: ServerProcess) -> str:
    """The message of the one error that it logged, which needs no traceback to be understood."""
    (line,) = [line for line in server.log if line["level"] == "ERROR"]
    assert "traceback" not in line["fields"]
    assert server.errors == b""
    return " ".join(str(value) for value in line["fields"].values())


# What scripts go by


async def test_the_line_that_scripts_grep_for(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        (line,) = [line for line in server.raw_log if '"api":"primary"' in line]

        assert re.fullmatch(
            r'\{"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","level":"INFO",'
            r'"fields":\{"message":"listening","api":"primary","addr":"127\.0\.0\.1:\d+",'
            r'"scheme":"http"\},"target":"zq::serve"\}',
            line,
        )
        # It is true by the time it is written.
        socket.create_connection(("127.0.0.1", server.port)).close()


async def test_every_line_of_a_life_is_compact_json_of_one_shape(tmp_path: Path) -> None:
    async with running(tmp_path, "--access-log", "all", "--log-level", "trace") as server:
        async with server.client() as client:
            await client.in_flight()
            assert (await client.post("/jobs", {"queue": "a,b"})).status == 400
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0

    for raw, line in zip(server.raw_log, server.log, strict=True):
        assert raw == json.dumps(line, separators=(",", ":"))
        assert list(line) == ["timestamp", "level", "fields", "target"]
        assert next(iter(line["fields"])) == "message"
        assert line["level"] in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")
        assert re.fullmatch(r"[a-z0-9_]+(::[a-z0-9_]+)*", line["target"])
    requests = [line["fields"] for line in server.log if line["target"] == "zq::api::primary"]
    assert {"method", "path", "status", "latency_ms"} <= set.intersection(*map(set, requests))
    assert ("POST", "/jobs", 400) in {(r["method"], r["path"], r["status"]) for r in requests}


async def test_requests_are_not_logged_unless_asked_for(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        async with server.client() as client:
            await client.enqueue()
            flushed_by = (await client.get("/health")).doc["flushed_by"]
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0

    flushing = server.log[0]
    assert flushing["fields"]["message"].startswith("commits are flushed by")
    assert flushing["fields"].get("by", "thread") == flushed_by
    listening, serving, openness, *stop = server.messages[1:]
    assert (listening, serving) == ("listening", "serving")
    assert openness.startswith("open without keys:")
    assert stop == ["stopping", "Server stopped."]


async def test_zizqs_variables_do_what_its_flags_do(tmp_path: Path) -> None:
    env = {
        "ZIZQ_ROOT_DIR": str(tmp_path / "data"),
        "ZIZQ_PORT": "0",
        "ZIZQ_NO_ADMIN": "true",
        "ZIZQ_LOG_FORMAT": "json",
        "ZIZQ_LICENSE_KEY": "secret",
        "ZIZQ_GLOBAL_IN_FLIGHT_LIMIT": "1",
    }
    server = await ServerProcess.spawn(None, "serve", env=env)
    try:
        await server.listening()
        async with server.client() as client:
            await client.enqueue_many(2)
            stream = await client.take(prefetch=2)
            await stream.job()
            assert await client.count(status="in_flight") == 1
    finally:
        await server.kill()

    assert (tmp_path / "data" / "zq.db").exists()
    assert "secret" not in "".join(server.raw_log)
    warned = {line["fields"].get("flag") for line in server.log if line["level"] == "WARN"}
    assert "ZIZQ_LICENSE_KEY" in warned


# One owner


async def test_a_second_server_on_a_directory_is_refused_until_the_first_is_gone(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as first:
        code, second = await refused(tmp_path)

        assert code == os.EX_TEMPFAIL == 75
        message = only_error(second)
        assert str(tmp_path) in message
        assert str(first.pid) in message
        assert "--root-dir" in message
        async with first.client() as client:  # the first has come to no harm
            await client.enqueue()
        await first.kill()
        # The kernel has let the lock go: nothing has to be cleaned up by hand.
        async with running(tmp_path) as third, third.client() as client:
            assert await client.count() == 1


# Refused


async def test_a_database_of_a_newer_zq_is_refused_and_left_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0
    file = tmp_path / "zq.db"
    database = sqlite3.connect(file)
    database.execute("PRAGMA user_version = 4711")
    database.commit()
    database.close()
    before = file.read_bytes()

    code, server = await refused(tmp_path)

    assert code == os.EX_CONFIG == 78
    assert "4711" in only_error(server)
    assert file.read_bytes() == before


async def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "zq.db"
    database = sqlite3.connect(file)
    database.execute("CREATE TABLE visits (at)")
    database.close()
    before = file.read_bytes()

    code, server = await refused(tmp_path)

    assert code == os.EX_CONFIG
    assert "the database is not zq's" in only_error(server)
    assert file.read_bytes() == before


async def test_a_library_that_is_not_installed_is_named(tmp_path: Path) -> None:
    # Python takes a module for missing whose entry is None.
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text("import sys\nsys.modules['zttp'] = None\n")
    env = {"PYTHONPATH": str(tmp_path)}
    code, server = await refused(tmp_path / "data", "--http2-engine", "zttp", env=env)

    assert code == os.EX_CONFIG
    message = only_error(server)
    assert message.startswith("--http2-engine zttp: the package zttp is not installed")
    assert "pip install 'zq-queue[zttp]'" in message
    # Who does not choose it does not need it.
    async with running(tmp_path / "data", env=env) as server, server.client() as client:
        await client.enqueue()


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


async def test_a_port_in_use_is_named(taken_port: int, tmp_path: Path) -> None:
    code, server = await refused(tmp_path, "--port", str(taken_port))

    assert code == os.EX_IOERR == 74
    message = only_error(server)
    assert f"127.0.0.1:{taken_port}" in message
    assert "in use" in message
    assert "--port" in message


async def test_an_address_that_is_not_ours_is_named(tmp_path: Path) -> None:
    # 192.0.2.0/24 is for documentation: no machine has an address of it.
    code, server = await refused(tmp_path, "--host", "192.0.2.1", "--insecure")

    assert code == os.EX_IOERR
    message = only_error(server)
    assert "192.0.2.1" in message
    assert "--host" in message


async def test_a_root_that_is_no_directory_is_named(tmp_path: Path) -> None:
    root = tmp_path / "file"
    root.write_text("no directory")

    code, server = await refused(root)

    assert code == os.EX_IOERR
    message = only_error(server)
    assert message == f"{root} is a file, and --root-dir names a directory: choose another one"


async def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "zq.db"
    file.write_text("no database, but somebody's notes\n" * 200)
    before = file.read_bytes()

    code, server = await refused(tmp_path)

    assert code == os.EX_IOERR
    assert str(file) in only_error(server)
    assert file.read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_during_the_start_ends_it_without_a_traceback(
    number: signal.Signals, tmp_path: Path
) -> None:
    """The lock file is made early in the start; recovery then waits for the lock held here."""
    async with running(tmp_path) as server:
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0
    blocker = sqlite3.connect(tmp_path / "zq.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    server = await ServerProcess.spawn(tmp_path)
    try:
        while (tmp_path / "zq.lock").read_text() != f"{server.pid}\n":
            await pause()
        server.signal(number)
        blocker.execute("ROLLBACK")
        code = await server.exited()
    finally:
        blocker.close()
        await server.kill()

    assert code in (0, -number)
    assert server.errors == b""


async def test_the_admin_listener_has_a_line_of_its_own_after_the_primary_one(
    tmp_path: Path,
) -> None:
    server = await ServerProcess.spawn(None, *WITH_ADMIN, "--root-dir", str(tmp_path))
    try:
        await server.listening()
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0
        lines = [line["fields"] for line in server.log if line["fields"]["message"] == "listening"]
        assert [line["api"] for line in lines] == ["primary", "admin"]
        assert lines[0]["addr"] != lines[1]["addr"]
        assert '"api":"admin"' in "".join(server.raw_log)
    finally:
        await server.kill()
