"""A row of `zq.inbox` is a job once its transaction is committed, and just once."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conformance.client import Client
from outbox.postgres import the_server
from process.server import running
from psycopg.types.json import Jsonb

from zq import outbox
from zq.client.app import App
from zq.features.inbox.postgres_reads import PostgresInboxReads
from zq.model.clock import SteadyClock, SystemClock
from zq.store.postgres.readers import PostgresLanes

LONG_S = 60.0

INSERT = "INSERT INTO zq.inbox (document) VALUES (%s)"


@pytest.fixture
def address() -> str:
    return the_server().new_database()


def document(number: int = 0, **fields: Any) -> str:
    return json.dumps({"queue": "q", "type": "t", "payload": number} | fields)


def writing(address: str, **options: Any) -> psycopg.Connection:
    return psycopg.connect(address, **options)


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(LONG_S):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def arrived(client: Client, count: int, **filter: Any) -> None:
    """Wait until so many jobs are there, and see that no more come."""

    async def are_there() -> bool:
        return await client.count(**filter) >= count

    await until(are_there)
    assert await client.count(**filter) == count


async def test_a_committed_row_is_a_job_and_another_is_none(address: str, tmp_path: Path) -> None:
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        with writing(address) as connection:
            connection.execute(INSERT, [document(1)])
            connection.rollback()
            for number in (2, 3):
                connection.execute(INSERT, [document(number)])
        await arrived(client, 2)
        assert [job["payload"] for job in await client.jobs()] == [2, 3]
        with writing(address) as connection:
            assert connection.execute("SELECT count(*) FROM zq.inbox").fetchone() == (0,)


async def test_all_that_a_post_can_say_is_kept(address: str, tmp_path: Path) -> None:
    fields = {
        "priority": 7,
        "unique_key": "k",
        "unique_while": "exists",
        "group": "g",
        "meta": {"tenant": "a"},
        "retry_limit": 3,
        "fair_key": "acme",
    }
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        with writing(address) as connection:
            connection.execute(INSERT, [document(1, **fields)])
            # Its key is taken, so it is the first one's duplicate, and no job of its own.
            connection.execute(INSERT, [document(2, unique_key="k", unique_while="exists")])
            connection.execute(INSERT, [document(3, ready_at=4_000_000_000_000)])
            sql = "SELECT zq.enqueue('odd \"name\"', 't', '[1]', ' { \"priority\": 9 } ')"
            connection.execute(sql)
            connection.execute("SELECT zq.enqueue('plain', 't', '1e2')")
        await arrived(client, 4)
        first, later, odd, plain = await client.jobs()
        assert {name: first.get(name) for name in fields} == fields
        assert (later["status"], later["ready_at"]) == ("scheduled", 4_000_000_000_000)
        assert (odd["queue"], odd["payload"], odd["priority"]) == ('odd "name"', [1], 9)
        assert (plain["queue"], plain["payload"]) == ("plain", 100)


async def test_a_bad_row_is_set_aside_and_told(address: str, tmp_path: Path) -> None:
    bad = ["no json", document(queue=""), document(priority="high"), document(batch={"key": "b"})]
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        with writing(address) as connection:
            for text in (document(1), *bad, document(2)):
                connection.execute(INSERT, [text])
        await arrived(client, 2)

        async def told() -> bool:
            return bool((await client.get("/health")).doc.get("inbox_refused"))

        await until(told)
        refused = (await client.get("/health")).doc["inbox_refused"]
        assert refused["rows"] == len(bad)
        assert [row["id"] for row in refused["named"]] == [2, 3, 4, 5]
        assert {row["code"] for row in refused["named"]} == {"invalid_request"}
        with writing(address) as connection:
            errors = connection.execute("SELECT error FROM zq.inbox ORDER BY id").fetchall()
            assert all(error.startswith("invalid_request: ") for (error,) in errors)
            assert "batch" in errors[-1][0]
            # Whoever mends a row sends it once more, and whoever deletes it is done with it.
            mended = "UPDATE zq.inbox SET document = %s, error = NULL WHERE id = 2"
            connection.execute(mended, [document(3)])
            connection.execute("DELETE FROM zq.inbox WHERE id > 2")
        await arrived(client, 3)

        async def is_over() -> bool:
            return "inbox_refused" not in (await client.get("/health")).doc

        await until(is_over)


async def test_rows_of_a_full_queue_wait_and_let_others_pass(address: str, tmp_path: Path) -> None:
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        assert (await client.patch("/queues/full/settings", {"max_depth": 1})).status == 200
        with writing(address) as connection:
            for number in range(3):
                connection.execute(INSERT, [document(number, queue="full")])
            connection.execute(INSERT, [document(9)])
        await arrived(client, 2)
        assert "inbox_refused" not in (await client.get("/health")).doc
        (waiting,) = await client.jobs(queue="full")
        await client.delete(f"/jobs/{waiting['id']}")
        await arrived(client, 1, queue="full")
        assert [job["payload"] for job in await client.jobs(queue="full")] == [1]


async def test_rows_of_a_full_queue_come_in_order_while_room_is_made(
    address: str, tmp_path: Path
) -> None:
    count = 40
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        assert (await client.patch("/queues/full/settings", {"max_depth": 1})).status == 200
        with writing(address) as connection:
            for number in range(count):
                connection.execute(INSERT, [document(number, queue="full")])
        came = []
        for _ in range(count):
            await arrived(client, 1, queue="full")
            (job,) = await client.jobs(queue="full")
            came.append(job["payload"])
            await client.delete(f"/jobs/{job['id']}")
        assert came == list(range(count))


OTHERS = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
    AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


async def test_many_rows_come_once_and_in_order_though_the_server_is_killed(
    address: str, tmp_path: Path
) -> None:
    count = 10_000
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        with writing(address) as connection, connection.cursor() as cursor:
            # The answer to this one is in the way of none: it is committed, and not yet taken.
            cursor.execute(
                "INSERT INTO zq.inbox (document) SELECT json_build_object("
                "'queue', 'q', 'type', 't', 'payload', n) FROM generate_series(1, %s) AS n",
                [count],
            )

        async def has_some() -> bool:
            return await client.count() > 0

        await until(has_some)
        await server.kill()
    with writing(address, autocommit=True) as connection:
        connection.execute(INSERT, [document(count + 1)])

        async def is_alone() -> bool:
            return connection.execute(OTHERS).fetchone() == (0,)

        # PostgreSQL ends what it does for the killed server, and keeps its locks until then.
        await until(is_alone)
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        await arrived(client, count + 1)
        with writing(address) as connection:
            found = connection.execute("SELECT payload::int FROM zq.jobs ORDER BY id").fetchall()
        assert [number for (number,) in found] == list(range(1, count + 2))


async def test_a_commit_wakes_who_waits(address: str, tmp_path: Path) -> None:
    async with running(tmp_path, "--store", address):
        pass
    reads = PostgresInboxReads(PostgresLanes(address, LONG_S, SteadyClock(SystemClock(), None)))
    # The first call begins to listen.
    await reads.changed(LONG_S)
    waiting = asyncio.create_task(reads.changed(10 * LONG_S))
    with writing(address) as connection:
        connection.execute(INSERT, [document()])
    await asyncio.wait_for(waiting, LONG_S)
    # A connection that is lost is opened again.
    with writing(address, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
    await asyncio.wait_for(reads.changed(10 * LONG_S), LONG_S)
    await asyncio.wait_for(reads.changed(10 * LONG_S), LONG_S)
    await reads.stop_listening()


async def test_a_role_that_may_only_insert_can_do_nothing_else(
    address: str, tmp_path: Path
) -> None:
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        with writing(address, autocommit=True) as owner:
            name = f"shop_{owner.info.dbname}"
            owner.execute(f"CREATE ROLE {name} LOGIN".encode())
            owner.execute(f"GRANT USAGE ON SCHEMA zq TO {name}".encode())
            owner.execute(f"GRANT INSERT (document) ON zq.inbox TO {name}".encode())
        with writing(address.replace("zq@", f"{name}@"), autocommit=True) as shop:
            shop.execute(INSERT, [document(1)])
            shop.execute("SELECT zq.enqueue('q', 't', '2')")
            for refused in ("SELECT * FROM zq.inbox", "DELETE FROM zq.inbox", "TABLE zq.jobs"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    shop.execute(refused.encode())
        await arrived(client, 2)


async def test_a_payload_is_json_in_any_type_of_postgresql(address: str, tmp_path: Path) -> None:
    given = [
        ("'1'", "'{\"priority\": 5}'"),
        ("'2'::json", "'{\"priority\": 5}'"),
        ("to_jsonb(3)", "jsonb_build_object('priority', 5)"),
        ("json_build_object('n', 4)", "'{\"priority\": 5}'::json"),
        ("'5'::text", "' { \"priority\" : 5 } '::text"),
        ("NULL", "'{\"priority\": 5}'"),
        ("NULL::jsonb", "'{\"priority\": 5}'"),
    ]
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        with writing(address, autocommit=True) as connection:
            for payload, options in given:
                connection.execute(f"SELECT zq.enqueue('q', 't', {payload}, {options})".encode())
            connection.execute("SELECT zq.enqueue(%s, %s, %s)", ("q", "t", Jsonb({"n": 6})))
            connection.execute("SELECT zq.enqueue(%s, %s, %s, NULL)", ("q", "t", "7"))
            for refused in ("'q', 't', '1', '[1]'", "'q', 't', '1', 'null'", "NULL, 't', '1'"):
                with pytest.raises(psycopg.errors.InvalidParameterValue, match="options"):
                    connection.execute(f"SELECT zq.enqueue({refused})".encode())
        await arrived(client, 9)
        found = await client.jobs()
        payloads = [1, 2, 3, {"n": 4}, 5, None, None, {"n": 6}, 7]
        assert sorted(map(repr, payloads)) == sorted(repr(job["payload"]) for job in found)
        assert [job["priority"] for job in found].count(5) == len(given)


async def test_the_outbox_of_a_role_that_may_only_insert_needs_no_relay(
    address: str, tmp_path: Path
) -> None:
    app = App()

    @app.task(queue="q")
    def work(number: int) -> None:
        pass

    async with running(tmp_path, "--store", address) as server, server.client() as client:
        with writing(address, autocommit=True) as owner:
            name = f"seller_{owner.info.dbname}"
            for sql in (
                f"CREATE ROLE {name} LOGIN",
                f"CREATE SCHEMA AUTHORIZATION {name}",
                f"GRANT USAGE ON SCHEMA zq TO {name}",
                f"GRANT INSERT (document) ON zq.inbox TO {name}",
            ):
                owner.execute(sql.encode())
        with writing(address.replace("zq@", f"{name}@")) as shop:
            outbox.create_table(shop)
            outbox.enqueue(shop, work, 1)
        await arrived(client, 1)


async def test_the_outbox_of_the_same_database_needs_no_relay(address: str, tmp_path: Path) -> None:
    app = App()

    @app.task(queue="q")
    def work(number: int) -> None:
        pass

    async with running(tmp_path, "--store", address) as server, server.client() as client:
        with writing(address) as connection:
            outbox.create_table(connection)
            outbox.create_table(connection)
            outbox.enqueue(connection, work, 1)
        await arrived(client, 1)
        with writing(address) as connection:
            assert connection.execute("SELECT count(*) FROM zq_outbox").fetchone() == (0,)
        url = f"http://127.0.0.1:{server.port}"
        words = ("-m", "zq.cli", "relay", "--database", address, "--url", url)
        for burst in ((), ("--burst",)):
            relay = await asyncio.create_subprocess_exec(
                *(sys.executable, *words, *burst), stdout=asyncio.subprocess.PIPE
            )
            assert relay.stdout is not None
            async with asyncio.timeout(LONG_S):
                while b"no relay is needed" not in await relay.stdout.readline():
                    assert not relay.stdout.at_eof()
                if not burst:  # it would move rows if the table became one of its own
                    relay.terminate()
                await relay.communicate()
            assert relay.returncode == 0
