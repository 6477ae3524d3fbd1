"""Old versions of rows are removed soon, and it is told who keeps them from being removed."""

import asyncio
from pathlib import Path

import psycopg
from outbox.postgres import the_server
from process.server import running

from store.on_postgres import database_at
from zq.store.postgres.connection import SESSION, connect
from zq.store.postgres.vacuum import LEAST_DEAD, Vacuum

LONG_S = 60.0


def churn(address: str, rows: int) -> None:
    """Change every row of a table once, and have that counted."""
    with connect(address, SESSION) as connection:
        connection.execute(
            "INSERT INTO dedupe SELECT 'q', 'g', n::text, n, 0 FROM generate_series(1, $1) AS n"
            " ON CONFLICT DO NOTHING",
            (rows,),
        )
        connection.execute("UPDATE dedupe SET until = until + 1")
        connection.execute("SELECT pg_stat_force_next_flush()")


def test_a_table_with_many_dead_rows_is_vacuumed(tmp_path: Path) -> None:
    address = database_at(tmp_path)
    vacuum = Vacuum(address)
    with connect(address, SESSION) as connection:
        churn(address, LEAST_DEAD)
        assert vacuum.vacuum(connection) == []
        assert vacuum.bloat.dead_rows >= LEAST_DEAD
        churn(address, 2 * LEAST_DEAD)
        assert vacuum.vacuum(connection) == ["dedupe"]
        assert vacuum.vacuum(connection) == []
        assert vacuum.bloat.dead_rows < LEAST_DEAD
        assert vacuum.bloat.holder == ""


def test_who_keeps_them_is_named_and_vain_vacuums_are_rare(tmp_path: Path) -> None:
    address = database_at(tmp_path)
    vacuum = Vacuum(address)
    with connect(address, SESSION) as connection, connect(address, SESSION) as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM dedupe")
        churn(address, 3 * LEAST_DEAD)
        assert vacuum.vacuum(connection) == ["dedupe"]
        assert vacuum.vacuum(connection) == []
        assert vacuum.bloat.dead_rows >= 3 * LEAST_DEAD
        assert vacuum.bloat.holder == f"process {reader.info.backend_pid} (zq)"
        assert vacuum.bloat.snapshot_s > 0
        reader.execute("COMMIT")


async def test_a_server_vacuums_and_tells_of_it(tmp_path: Path) -> None:
    address = the_server().new_database()
    async with running(tmp_path, "--store", address) as server, server.client() as client:
        with psycopg.connect(address) as reader:
            reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            reader.execute("SELECT count(*) FROM zq.dedupe")
            await client.enqueue()

            async def is_told() -> bool:
                told = (await client.get("/health")).doc["bloat"]
                return bool(told["oldest_snapshot_s"] > 0)

            async with asyncio.timeout(LONG_S):
                while not await is_told():  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        disk = (await client.get("/status")).doc["disk"]
        assert set(disk) == {"database_bytes", "reserve_bytes"}
