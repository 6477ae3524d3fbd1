"""What is peculiar to the store on PostgreSQL: its lock, its connections, and its texts."""

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from random import Random
from string import ascii_letters
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from conformance.streams import PATIENCE_S, pause
from msgspec.structs import replace
from outbox.postgres import the_server
from process.server import refused

from store.on_postgres import PostgresTicker, database_at, end_connections
from store.rig import FOREVER, POLICY, Orders, new_job
from zq import instance
from zq.features.batches.model import BatchRule
from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import PutBudget
from zq.model.commands import Claim, DeleteJob, Fail, SetAside, SetQueue, Succeed
from zq.model.errors import NotOnThisStore, ReadTimeout
from zq.model.filters import Filter
from zq.model.job import DedupeRule, Extras, JobSettings
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.model.settings import QueueSettings
from zq.model.settling import Failure
from zq.model.unique import Scope
from zq.store import lookups
from zq.store.api import as_json
from zq.store.errors import (
    DatabaseTooNew,
    DirectoryInUse,
    ForeignDatabase,
    StoreAway,
    StoreDamaged,
    StoreFailed,
)
from zq.store.postgres import owning, ticking
from zq.store.postgres import store as store_module
from zq.store.postgres.connection import SESSION, TICK_SESSION, Connection, connect, store_error
from zq.store.postgres.owning import refuse_pooler, refuse_unfit
from zq.store.postgres.queries import compiled
from zq.store.postgres.store import PostgresStore, open_store
from zq.store.postgres.texts import sent, shown
from zq.tick.runner import make_ticks

Opening = Callable[[], Coroutine[Any, Any, PostgresStore]]


@pytest.fixture
async def opening(tmp_path: Path) -> AsyncIterator[Opening]:
    """Opens the database of the test. What is open at its end is closed."""
    opened: list[PostgresStore] = []

    async def open_one(read_timeout: float = 60.0, servers: int = 1) -> PostgresStore:
        ticks = make_ticks(POLICY, Random(1), {})
        store = await open_store(
            database_at(tmp_path), ticks, read_timeout=read_timeout, servers=servers
        )
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        if not store.is_closed:
            await store.abandon()


async def test_what_was_acknowledged_and_held_is_there_after_a_restart(opening: Opening) -> None:
    store = await opening()
    orders = Orders(store.at_start.last_key)
    await store.tick(orders.tick([orders.enqueue([new_job(), new_job(group="g")])]))
    result = await store.tick(orders.tick([], [Claim(None, [(1, 10)])]))
    assert len(result.claimed[0]) == 2
    await store.close()

    again = await opening()
    assert again.at_start.returned == 2
    assert again.at_start.epoch == store.at_start.epoch
    assert again.at_start.last_key >= orders.mint.last
    counts = await again.reads.counts(orders.now)
    assert counts == {("q", Status.READY): 2}


async def test_one_server_at_a_time_has_a_database(opening: Opening, tmp_path: Path) -> None:
    store = await opening()
    with pytest.raises(DirectoryInUse, match="another server uses this database"):
        await opening()
    # The lock is the connection's: whoever takes it away leaves nothing that could still commit.
    end_connections(tmp_path)
    again = await opening()
    orders = Orders(store.at_start.last_key)
    with pytest.raises(StoreFailed):
        await store.tick(orders.tick([orders.enqueue([new_job()])]))
    assert await again.reads.counts(orders.now) == {}


@pytest.mark.parametrize("servers", [1, 2])
async def test_a_start_waits_while_postgresql_ends_a_connection_that_is_lost(
    opening: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: int
) -> None:
    monkeypatch.setattr(owning, "PATIENCE_S", PATIENCE_S)
    opened = [await opening(servers=servers) for _ in range(servers)]
    process = opened[0]._pipeline.process
    os.kill(process, signal.SIGSTOP)
    try:
        await opened[0].abandon()
        starting = asyncio.create_task(opening(servers=servers))
        with connect(database_at(tmp_path), SESSION) as other:
            tried = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                f" AND pid <> {process} AND query LIKE 'SELECT pg_try_advisory_lock(%'"
            )
            async with asyncio.timeout(PATIENCE_S):
                while not owning.value_of(other, tried):
                    await pause()
    finally:
        os.kill(process, signal.SIGCONT)
    assert (await starting).slot == 0


@pytest.mark.parametrize("servers", [1, 2])
async def test_a_start_need_not_wait_for_the_connection_of_a_server_that_has_stopped(
    opening: Any, monkeypatch: pytest.MonkeyPatch, servers: int
) -> None:
    """PostgreSQL does not see that the connection is closed, for as long as a start is patient."""
    stopping = await opening(servers=servers)
    process, abandon = stopping._pipeline.process, stopping.abandon

    async def unseen() -> None:
        os.kill(process, signal.SIGSTOP)
        await abandon()

    monkeypatch.setattr(stopping, "abandon", unseen)
    try:
        await stopping.close()
        assert (await opening(servers=servers)).slot == 0
    finally:
        os.kill(process, signal.SIGCONT)


LOOK = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND"


async def test_race_an_attempt_to_connect_again_is_lost_and_postgresql_does_not_see_it(
    opening: Opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The locks that it had taken are still those of this server."""
    patient = TICK_SESSION | {"lock_timeout": f"{PATIENCE_S}s"}
    monkeypatch.setattr(ticking, "TICK_SESSION", patient)
    made: list[Connection] = []

    def connecting(*args: Any) -> Connection:
        made.append(connect(*args))
        return made[-1]

    monkeypatch.setattr(ticking, "connect", connecting)
    store = await opening()
    address = database_at(tmp_path)

    async def checks() -> None:
        """Look whether the connection is there until an attempt to make another one fails."""
        while True:
            await store.check()
            await pause()

    async def seen(what: str) -> int:
        async with asyncio.timeout(PATIENCE_S):
            while not (found := owning.value_of(reader, f"{LOOK} {what}")):
                await pause()
        return int(str(found))

    with connect(address, SESSION) as reader, connect(address, SESSION) as other:
        with other.transaction():
            other.execute("SELECT FROM servers FOR UPDATE")
            owning.value_of(reader, f"SELECT pg_terminate_backend({store._pipeline.process}, 5000)")
            first = asyncio.create_task(checks())
            # It has taken the locks, and waits for its row.
            process = await seen("query LIKE 'UPDATE servers%' AND wait_event_type = 'Lock'")
            os.kill(process, signal.SIGSTOP)
            lose(made[-1])
            with pytest.raises(StoreAway):
                await first
        second = asyncio.create_task(store.check())
        try:
            await asyncio.wait(
                [second, asyncio.create_task(seen(f"query LIKE '%end({process}, 1000)'"))],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            os.kill(process, signal.SIGCONT)
        await second


def lose(connection: Connection) -> None:
    """Cut a connection of this process, which waits for an answer."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


async def test_a_connection_for_reads_is_opened_again(opening: Opening, tmp_path: Path) -> None:
    store = await opening()
    assert await store.reads.row(1, EVERYWHERE, 0) is None
    with connect(database_at(tmp_path), SESSION) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
        )
    assert await store.reads.row(1, EVERYWHERE, 0) is None


async def test_a_read_that_takes_too_long_ends(opening: Any) -> None:
    store = await opening(read_timeout=0.2)

    def sleep(connection: psycopg.Connection[Any]) -> None:
        connection.execute("SELECT pg_sleep(60)")

    with pytest.raises(ReadTimeout):
        await store.lanes.looks(sleep)


async def test_a_read_that_nobody_waits_for_delays_only_its_lane(opening: Opening) -> None:
    store = await opening()
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def sleep(connection: psycopg.Connection[Any]) -> None:
        loop.call_soon_threadsafe(began.set)
        connection.execute("SELECT pg_sleep(0.3)")

    reading = asyncio.create_task(store.lanes.looks(sleep))
    await began.wait()
    reading.cancel()
    assert await store.reads.row(1, EVERYWHERE, 0) is None


def test_a_newer_schema_and_strange_databases_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = database_at(tmp_path)
    monkeypatch.setattr(owning, "OLDEST_VERSION", 99)
    with pytest.raises(ForeignDatabase, match="zq needs 99 or newer"):
        store_module._connected(address)
    monkeypatch.undo()
    with connect(address, SESSION) as other:
        other.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    with pytest.raises(DatabaseTooNew, match="schema version 99"):
        store_module._connected(address)


def test_what_only_looks_like_postgresql_is_refused(tmp_path: Path) -> None:
    with connect(database_at(tmp_path), SESSION) as connection:
        text = "'CockroachDB CCL v23.1.0 (x86_64-pc-linux-gnu)'"
        connection.execute(f"CREATE FUNCTION version() RETURNS text RETURN {text}".encode())
        connection.execute("SET search_path = zq, pg_catalog")
        with pytest.raises(ForeignDatabase, match="no PostgreSQL but CockroachDB CCL"):
            refuse_unfit(connection)


@pytest.mark.parametrize(
    ("user", "database", "told"),
    [
        ("zq", "nowhere", "does not exist: create it with `createdb"),
        ("nobody_there", "", "does not exist: create it with `createuser"),
        ("locked_out", "", "is not permitted to log in: ALTER ROLE"),
        ("careful", "", "authentication failed for user .*: see PGPASSWORD"),
        ("guest", "", "permission denied for database .*must be the owner"),
    ],
)
def test_who_is_not_let_in_learns_what_to_do(
    tmp_path: Path, user: str, database: str, told: str
) -> None:
    address = the_server().new_database()
    rules = the_server().socket / "data" / "pg_hba.conf"
    if "careful" not in rules.read_text():
        rules.write_text(f"local all careful scram-sha-256\n{rules.read_text()}")
        with connect(address, SESSION) as connection:
            for role in ("locked_out NOLOGIN", "careful LOGIN PASSWORD 'x'", "guest LOGIN"):
                connection.execute(f"CREATE ROLE {role}".encode())
            connection.execute("SELECT pg_reload_conf()")
    parts = urlsplit(address)
    path = f"/{database}" if database else parts.path
    wrong = parts._replace(netloc=f"{user}:wrong@", path=path).geturl()
    with pytest.raises(ForeignDatabase, match=told):
        store_module._connected(wrong)


def test_a_postgresql_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(StoreAway, match="PostgreSQL cannot be reached"):
        store_module._connected(f"postgresql://zq@/queue?host={tmp_path}")


def test_a_pooler_is_refused(tmp_path: Path) -> None:
    address = database_at(tmp_path)
    with connect(address, SESSION) as connection, connect(address, SESSION) as other:
        refuse_pooler(connection, other)
        # Two clients of a pooler in transaction mode share what is free.
        with pytest.raises(ForeignDatabase, match="a pooler answers there"):
            refuse_pooler(connection, connection)
        connection.execute("SET search_path = public")
        with pytest.raises(ForeignDatabase, match="a pooler answers there"):
            refuse_pooler(connection, other)
    refused = psycopg.OperationalError("FATAL:  unsupported startup parameter: options")
    assert isinstance(store_error(refused), ForeignDatabase)


ADDRESSES = {
    "postgresql://zq:abc#def@db/queue": "postgresql://zq@db/queue",
    "postgres://zq:abc?def@db:5433/queue?sslmode=require&sslpassword=abc": (
        "postgresql://zq@db:5433/queue?sslmode=require"
    ),
    "postgresql://zq:abc@db1:5433,db2/q": "postgresql://zq@/q?host=db1,db2&port=5433,",
    "postgresql://zq@/q%20r?host=/run/pg": "postgresql://zq@/q%20r?host=/run/pg",
    "postgresql://[::1]:5433/q?password=abc": "postgresql:///q?host=%3A%3A1&port=5433",
    "postgresql:///q": "postgresql:///q",
    **dict.fromkeys(
        (
            *("postgresql://zq:abc%xdef@db/queue", "postgresql://zq:abc@def@db/queue"),
            *("postgresql://zq:abc/def@db/queue", "postgresql://zq:12/def@db/queue"),
            *("postgresql://zq:abc/queue", "postgresql://db/queue?abc=1"),
        ),
        "postgresql://…",
    ),
}
"""What is shown of addresses. Those of the last kind are cut within their passwords, or unknown."""


@pytest.mark.parametrize(("address", "shown"), ADDRESSES.items())
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert instance.shown_address(address) == shown
    if "…" not in shown:
        assert instance.shown_address(shown) == shown
        return
    with pytest.raises(ForeignDatabase, match="the address of the database cannot be read") as told:
        connect(address, SESSION)
    assert not re.search("abc|def|12", str(told.value))


@pytest.mark.parametrize(
    ("store", "code"),
    [
        ("postgresql://zq:abc#def@127.0.0.1:1/queue", 75),
        ("postgresql://zq:abc%xdef@127.0.0.1:1/queue", 78),
        ("host=127.0.0.1 password=abc", 78),
    ],
)
async def test_no_part_of_a_password_is_in_the_log(tmp_path: Path, store: str, code: int) -> None:
    found, server = await refused(tmp_path, "--store", store)
    assert (found, "abc" in "".join(server.raw_log), "def" in "".join(server.raw_log)) == (
        *(code, False, False),
    )


TEXTS = [
    "",
    "a\0b",
    "\uffff",
    "\uffff0",
    "\0\uffff1\0",
    "\\\"{},'",
    "\\u0000",
    "\\\\u0000",
    "\uffff2",
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_comes_back(tmp_path: Path, text: str) -> None:
    assert shown(sent(text)) == text
    ticker = PostgresTicker(tmp_path)
    # JSON has no NUL, but it may have the noncharacter that stands for one.
    payload, rule = as_json([text]), BatchRule(text, "true", ".")
    extras = replace(Extras(meta=as_json([text]), content_type=text), batch=rule)
    queue = f"q{text}".replace("\0", "").replace(",", "")
    job = new_job(
        queue=queue,
        type=f"t{text}".replace("\0", ""),
        unique_key=text,
        unique_while=Scope.EXISTS,
        payload=payload,
        extras=extras,
    )
    ticker.run(ticker.enqueue([job]))
    twin = ticker.run(ticker.enqueue([job])).replies[0]
    (stored,) = ticker.jobs().values()
    assert (stored.type, stored.unique_key) == (job.type, text)
    assert (stored.queue, stored.payload, stored.extras) == (queue, payload, extras)
    assert twin.owners[0].key == stored.key  # type: ignore[attr-defined]
    (key,) = ticker.take(1, queues=(queue,))
    ticker.run(Fail(key, Failure(f"m{text}", text, None)))
    (error,), _ = lookups.errors_page(ticker.core, key, 0, False, 10)
    assert (error.message, error.error_type) == (f"m{text}", text)
    ticker.close()


def test_jobs_that_draw_from_many_budgets_wait_in_lines(tmp_path: Path) -> None:
    """What they draw is part of the name of their line, and larger than a row of an index."""
    ticker = PostgresTicker(tmp_path)
    names = ["".join(Random(seed).choices(ascii_letters, k=500)) for seed in range(8)]
    ticker.run(*(PutBudget(name, BudgetPolicy(5)) for name in names))
    draws = replace(JobSettings(), budgets=tuple(Draw(name, 1) for name in names))
    ticker.run(ticker.enqueue([new_job(options=draws)] * 2))
    assert ticker.value("SELECT count(*) FROM lines") == 1
    assert len(ticker.take(5)) == 2
    ticker.close()


def test_large_payloads_names_and_results_are_stored(tmp_path: Path) -> None:
    ticker = PostgresTicker(tmp_path)
    large = '"' + "é" * 100_000 + '"'
    ticker.run(ticker.enqueue([new_job(payload=large, dedupe=DedupeRule("n"))]))
    copy = ticker.run(ticker.enqueue([new_job(dedupe=DedupeRule("n"))])).replies[0]
    assert list(copy.owners) == [0]  # type: ignore[attr-defined]
    (job,) = ticker.jobs().values()
    assert job.payload == large
    ticker.run(Succeed(ticker.take(1)))
    assert ticker.value("SELECT count(*) FROM payloads") == 0
    ticker.close()


def test_a_job_that_was_deleted_while_it_was_read_is_no_damage(tmp_path: Path) -> None:
    ticker = PostgresTicker(tmp_path)
    kept, deleted = ticker.store(2)
    ticker.run(DeleteJob(deleted, EVERYWHERE))
    assert ticker.run(SetAside("jobs", [deleted])).replies == [None]
    with pytest.raises(StoreDamaged, match=f"rows of jobs cannot be read: {kept}$"):
        ticker.run(SetAside("jobs", [deleted, kept]))
    ticker.close()


async def test_a_tick_takes_keys_while_requests_take_theirs(opening: Opening) -> None:
    """The twins of a job get theirs in the tick, which has a thread of its own."""
    store = await opening()
    orders = Orders(store.at_start.last_key)
    await store.tick(orders.tick([SetQueue("q", QueueSettings(fan_out=("q", "r")))]))
    commands = [orders.enqueue([new_job()]) for _ in range(50)]
    ticking = asyncio.create_task(store.tick(orders.tick(commands)))
    taken: list[int] = []
    while not ticking.done():
        taken += orders.mint.take(1, orders.now)
        await asyncio.sleep(0)
    await ticking
    stored = await store.reads.keys(Filter(), 0, FOREVER, 1_000)
    assert len(stored) == 100
    assert not set(stored) & set(taken)


async def test_backups_and_compactions_are_refused_by_naming_what_makes_them(
    opening: Opening,
) -> None:
    store = await opening()
    with pytest.raises(NotOnThisStore, match="pg_dump"):
        await store.backup(0)
    with pytest.raises(NotOnThisStore, match="VACUUM FULL"):
        await store.tidy(spare=False)
    assert not await store.tidy()


def test_parameters_are_numbered_by_what_is_sent() -> None:
    statement = compiled("SELECT :a, :a::bigint, :rows.0::text[], :map.values::json[], b::text, :a")
    assert statement.sql == b"SELECT $1, $2::bigint, $3::text[], $4::json[], b::text, $1"
    bound = statement.bound({"a": 1, "rows": [('x,"', 1), (None, 2)], "map": {1: {"k": "v"}}})
    assert bound == ["1", "1", '{"x,\\"",NULL}', '{"{\\"k\\":\\"v\\"}"}']
