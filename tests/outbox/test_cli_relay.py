"""`zq relay` in a process of its own."""

import asyncio
import json
import signal
import sys
from typing import Any

import pytest
from click.testing import CliRunner
from conformance.streams import PATIENCE_S, pause
from process.server import clean_environment

from zq import outbox
from zq.cli.group import main
from zq.client.app import App
from zq.testing import TestServer

from .conftest import Database


async def relay(server: TestServer, database: Database, *flags: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zq.cli", "relay", "--url", server.url, *flags),
        env=clean_environment() | {"ZQ_RELAY_DATABASE": database.url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_it_moves_rows_until_it_is_told_to_stop(
    zq_server: TestServer, zq_app: App, database: Database, connection: Any
) -> None:
    @zq_app.task
    async def work(n: int) -> None: ...

    outbox.enqueue(connection, work, 1)
    connection.commit()
    burst = await relay(zq_server, database, "--burst")
    told = f"server: {zq_server.url}\n".encode()
    assert await burst.communicate() == (b"", told)
    assert await zq_app.backend.count() == 1

    running = await relay(zq_server, database)
    outbox.enqueue(connection, work, 2)
    connection.commit()
    async with asyncio.timeout(PATIENCE_S):
        while await zq_app.backend.count() < 2:
            await pause()
    running.send_signal(signal.SIGTERM)
    output, errors = await running.communicate()
    assert [json.loads(line)["fields"] for line in output.splitlines()] == [{"message": "working"}]
    assert (errors, running.returncode) == (told, 0)


@pytest.mark.parametrize("kind", ["postgresql"])
async def test_a_burst_without_a_table_says_how_to_make_it(
    zq_server: TestServer, database: Database, connection: Any
) -> None:
    connection.execute("DROP TABLE zq_outbox")
    connection.commit()

    burst = await relay(zq_server, database, "--burst")

    _, errors = await burst.communicate()
    assert burst.returncode == 1
    assert (
        b"create it by outbox.create_table(connection), by the script of zq relay --ddl" in errors
    )


def test_the_printed_script_makes_the_table(zq_embedded: App, database: Database) -> None:
    @zq_embedded.task
    def work(n: int) -> None: ...

    printed = CliRunner().invoke(main, ["relay", "--database", database.url, "--ddl"])
    connection = database.connect()
    connection.execute("DROP TABLE zq_outbox")
    if database.kind == "sqlite":
        connection.executescript(printed.output)
    else:
        connection.execute(printed.output)
    outbox.enqueue(connection, work, 1)
    connection.commit()
    connection.close()
    assert database.left == 1
