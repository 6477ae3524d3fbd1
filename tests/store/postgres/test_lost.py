"""Lost connections: the outcome of a tick is looked up, and each job is stored and given once."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from signal import SIGCONT, SIGSTOP
from typing import Any

import httpx
import psycopg
import pytest
from conformance.client import JSON, Client
from conformance.client import new_job as new_body
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause
from outbox.postgres import postgres
from process.server import refused, running

from store.on_postgres import database_at, end_connections, locked, run_on
from store.postgres.cutting import Cut, Proxy
from store.rig import FOREVER, POLICY, Orders, new_job
from zq.model.commands import Claim, Succeed
from zq.model.filters import Filter
from zq.store.errors import DirectoryInUse, StoreAway, StoreError, StoreFailed
from zq.store.postgres import owning
from zq.store.postgres.connection import SESSION, connect
from zq.store.postgres.owning import LOCK_CLASS, value_of
from zq.store.postgres.pipeline import Pipeline, Sent
from zq.store.postgres.queries import Statement
from zq.store.postgres.store import PostgresStore, open_store
from zq.tick.runner import make_ticks

TIMEOUTS = (
    *("statement_timeout", "lock_timeout", "transaction_timeout"),
    *("idle_session_timeout", "idle_in_transaction_session_timeout"),
)
"""What ends statements, transactions or connections, as far as PostgreSQL knows it."""

CLAIM = [Claim(None, [(1, 10)])]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    proxy = Proxy(database_at(tmp_path))
    yield proxy
    proxy.close()


@pytest.fixture
async def store(proxy: Proxy) -> AsyncIterator[PostgresStore]:
    store = await open_store(proxy.address, make_ticks(POLICY, Random(1), {}), read_timeout=60.0)
    yield store
    await store.abandon()


async def stored(store: PostgresStore) -> list[int]:
    return await store.reads.keys(Filter(), 0, FOREVER, 10_000)


@pytest.mark.parametrize("cut", Cut)
async def test_a_tick_is_done_once_wherever_its_commit_is_cut(
    store: PostgresStore, proxy: Proxy, cut: Cut
) -> None:
    orders = Orders(store.at_start.last_key)
    command = orders.enqueue([new_job(), new_job(group="g"), new_job(ttl_ms=10_000)])
    proxy.cut = cut
    result = await store.tick(orders.tick([command]))
    assert proxy.cut is None, "nothing was cut"
    assert await stored(store) == list(command.keys)
    # What falls due next was asked for with the COMMIT.
    assert result.deadlines

    proxy.cut = cut
    more = orders.enqueue([new_job()] * 3)
    claimed = (await store.tick(orders.tick([more], CLAIM))).claimed[0]
    assert [job.key for job in claimed] == [*command.keys, *more.keys]
    assert {job.deliveries for job in claimed} == {1}

    proxy.cut = cut
    done = [job.key for job in claimed[:5]]
    await store.tick(orders.tick([Succeed(done)], CLAIM))
    assert await stored(store) == [more.keys[-1]]
    assert (await store.tick(orders.tick([], CLAIM))).claimed == [[]]


async def test_each_job_is_stored_once_while_connections_end_at_any_time(
    store: PostgresStore, tmp_path: Path
) -> None:
    orders = Orders(store.at_start.last_key)
    sent: list[int] = []
    given: list[int] = []
    rng = random.Random(7)
    over = asyncio.Event()

    async def end_them() -> None:
        while not over.is_set():
            await asyncio.sleep(rng.uniform(0.0, 0.05))
            await asyncio.to_thread(end_connections, tmp_path)

    ending = asyncio.create_task(end_them())
    try:
        for _ in range(40):
            command = orders.enqueue([new_job()] * 20)
            settled = [Succeed(given[-5:])] if given else []
            tick = orders.tick([*settled, command], [Claim(None, [(1, 5)])])
            while True:
                try:
                    result = await store.tick(tick)
                    break
                except StoreAway:
                    await asyncio.sleep(0.01)
            sent += command.keys
            given += [job.key for job in result.claimed[0]]
    finally:
        over.set()
        await ending
    assert given == sent[:200]
    assert await stored(store) == sent[195:]


async def test_a_server_ends_whose_database_another_one_has_had(
    store: PostgresStore, proxy: Proxy, tmp_path: Path
) -> None:
    orders = Orders(store.at_start.last_key)
    ticks = make_ticks(POLICY, Random(1), {})
    proxy.is_shut = True
    proxy.end_all()
    other = await open_store(database_at(tmp_path), ticks, read_timeout=60.0)
    with pytest.raises(StoreAway, match="the connection to PostgreSQL is lost"):
        await store.tick(orders.tick([orders.enqueue([new_job()])]))
    proxy.is_shut = False
    with pytest.raises(StoreFailed, match="another server has the database"):
        await store.tick(orders.tick([orders.enqueue([new_job()])]))
    await other.close()
    with pytest.raises(StoreFailed, match="another server has had the database"):
        await store.tick(orders.tick([orders.enqueue([new_job()])]))


async def held_up(site: Site) -> None:
    """Wait until a server has seen that its database is away.

    The server's clock stands still, so that nothing is refused before its test moves it.
    """
    while site.server.services.engine.lock.since is None:
        await pause()


@pytest.mark.parametrize("cut", [None, Cut.AFTER])
async def test_changes_are_refused_with_the_cause_until_the_database_is_back(
    proxy: Proxy, tmp_path: Path, cut: Cut | None
) -> None:
    """The job whose COMMIT may have been done waits: its outcome is not guessed."""
    site = Site(tmp_path / "own", {"store": proxy.address})
    await site.start()
    async with Client(site, JSON) as client, asyncio.timeout(120):
        proxy.is_shut = True
        if cut is None:
            proxy.end_all()
        proxy.cut = cut
        first = asyncio.create_task(client.post("/jobs", new_body()))
        await held_up(site)
        told = (await client.get("/health")).doc["database_away"]
        second = asyncio.create_task(client.post("/jobs", new_body()))
        site.clock.advance(5_000)
        refused = await second
        assert refused.status == 503
        assert refused.headers["zq-error"] == "database_away"
        assert "the connection to PostgreSQL is lost" in refused.error
        assert "the connection to PostgreSQL is lost" in told["error"]
        assert (await client.get("/status")).doc["limits_reached"] == ["database_away"]
        if cut is None:
            assert (await first).status == 503
        assert first.done() is (cut is None)
        proxy.is_shut = False
        if cut is not None:
            assert (await first).status == 201
        while (again := await client.post("/jobs", new_body())).status == 503:
            await pause()
        assert again.status == 201
        assert await client.count() == (1 if cut is None else 2)
        assert "database_away" not in (await client.get("/health")).doc
    await site.stop()


async def test_callers_learn_that_the_database_is_silent(proxy: Proxy, tmp_path: Path) -> None:
    """A lost host, or a stopped process of PostgreSQL: no error comes, and no answer."""
    site = Site(tmp_path / "own", {"store": proxy.address})
    await site.start()
    async with Client(site, JSON) as client, asyncio.timeout(120):
        proxy.passes.clear()
        first = asyncio.create_task(client.post("/jobs", new_body()))
        await held_up(site)
        second = asyncio.create_task(client.post("/jobs", new_body()))
        site.clock.advance(5_000)
        refused = await second
        assert not first.done()
        assert (refused.status, refused.headers["zq-error"]) == (503, "database_away")
        assert "PostgreSQL has not answered a transaction for" in refused.error

        site.clock.advance(20_000)
        doubtful = await first
        assert (doubtful.status, doubtful.headers["zq-error"]) == (503, "outcome_unknown")
        assert "it may or may not be stored" in doubtful.error
        proxy.passes.set()
        while (again := await client.post("/jobs", new_body())).status == 503:
            await pause()
        assert again.status == 201
        assert await client.count() == 2
    await site.stop()


async def test_a_server_ends_while_the_database_is_silent(proxy: Proxy, tmp_path: Path) -> None:
    site = Site(tmp_path / "own", {"store": proxy.address})
    await site.start()
    async with Client(site, JSON) as client, asyncio.timeout(120):
        proxy.passes.clear()
        asked = asyncio.create_task(client.post("/jobs", new_body()))
        await held_up(site)
        with suppress(StoreError):
            await site.stop()
        with suppress(httpx.HTTPError):
            assert (await asked).status == 503


async def test_a_server_ends_if_the_database_has_lost_what_was_committed(
    store: PostgresStore, tmp_path: Path
) -> None:
    """So it is after a crash that took commits which were not durable, or on a copy behind."""
    orders = Orders(store.at_start.last_key)
    await store.tick(orders.tick([orders.enqueue([new_job()])]))
    with connect(database_at(tmp_path), SESSION) as other:
        other.execute("DELETE FROM ticks")
    end_connections(tmp_path)
    with pytest.raises(StoreFailed, match="PostgreSQL has lost commits"):
        await store.tick(orders.tick([orders.enqueue([new_job()])]))


async def test_a_statement_that_fails_is_no_lost_connection(
    store: PostgresStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its COMMIT was not done, and nothing has to be looked up."""
    orders = Orders(store.at_start.last_key)
    await store.tick(orders.tick([orders.enqueue([new_job()])]))
    process = store._pipeline.process
    command = orders.enqueue([new_job()])
    waits = f"FROM pg_locks WHERE pid = {process} AND waitstart IS NOT NULL"
    with locked(tmp_path):
        ticking = asyncio.create_task(store.tick(orders.tick([command])))
        async with asyncio.timeout(PATIENCE_S):
            while not (
                ended := run_on(tmp_path, f"SELECT waitstart, pg_cancel_backend(pid) {waits}")
            ):
                await pause()
            # What comes next may wait for the same lock.
            while run_on(tmp_path, f"SELECT waitstart, true {waits}") == ended:
                await pause()
    await ticking
    assert "the answer of a COMMIT was lost" not in caplog.text
    assert "InFailedSqlTransaction" not in caplog.text
    assert store._pipeline.process == process
    assert len(await stored(store)) == 2


async def test_a_server_has_no_timeouts_of_its_role(tmp_path: Path) -> None:
    """Hosters set them, and nobody's statements are to be cut off by those."""
    address = database_at(tmp_path)
    with psycopg.connect(address, autocommit=True) as owner:
        known = owner.execute("SELECT name FROM pg_settings WHERE name = ANY(%s)", [[*TIMEOUTS]])
        for (name,) in known.fetchall():
            where = f"ALTER ROLE zq IN DATABASE {owner.info.dbname}"
            owner.execute(f"{where} SET {name} = '1ms'".encode())
    store = await open_store(address, make_ticks(POLICY, Random(1), {}), read_timeout=60.0)
    try:
        orders = Orders(store.at_start.last_key)
        process = store._pipeline.process
        for _ in range(3):
            await store.tick(orders.tick([orders.enqueue([new_job()] * 3_000)]))
            await pause()
        assert len(await stored(store)) == 9_000
        assert store._pipeline.process == process
    finally:
        await store.abandon()


async def test_only_durable_ticks_wait_for_their_flush_and_a_sync_flushes_the_others(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = Orders(store.at_start.last_key)
    sent: list[bytes] = []
    send = Pipeline.send

    def sends(self: Pipeline, statement: Statement, *parameters: Any) -> Sent:
        sent.append(statement.sql)
        return send(self, statement, *parameters)

    monkeypatch.setattr(Pipeline, "send", sends)

    async def is_flushed(durable: bool) -> bool:
        sent.clear()
        result = await store.tick(orders.tick([orders.enqueue([new_job()])], durable=durable))
        assert result.durable is durable
        return b"SET LOCAL synchronous_commit = off" not in sent

    assert await is_flushed(True)
    sent.clear()
    await store.sync()
    assert not sent
    assert not await is_flushed(False)
    with connect(database_at(tmp_path), SESSION) as other:
        written = value_of(other, "SELECT pg_current_wal_insert_lsn()::text")
        await store.sync()
        assert value_of(other, f"SELECT pg_current_wal_flush_lsn() >= '{written}'")
    sent.clear()
    await store.sync()
    assert not sent


OF_TICKS = f"""
    SELECT query FROM pg_stat_activity JOIN pg_locks USING (pid)
    WHERE classid = {LOCK_CLASS} AND objid = 0 AND datname = current_database()
"""
"""The last statement of the connection that has the lock of the first slot."""

RESTING = "SELECT pg_database_size(current_database())"
"""The last statement of a server that has nothing more to do."""


async def comes_to(path: Path, query: str = "") -> None:
    """Wait until there is a connection of ticks, whose last statement begins so."""
    async with asyncio.timeout(PATIENCE_S):
        while not any(last.startswith(query) for (last,) in run_on(path, OF_TICKS)):
            await pause()


@pytest.mark.parametrize("servers", ["1", "2"])
async def test_a_server_that_rests_connects_again_and_keeps_its_jobs(
    tmp_path: Path, servers: str
) -> None:
    flags = ("--store", database_at(tmp_path), "--servers", servers)
    async with running(tmp_path / "none", *flags) as server, server.client() as client:
        stored = await client.enqueue()
        await (await client.take(prefetch=1)).job()
        await comes_to(tmp_path, RESTING)
        end_connections(tmp_path)
        await comes_to(tmp_path)
        if servers == "1":
            code, _ = await refused(tmp_path / "none", *flags)
            assert code == 75
        assert (await client.job(stored["id"]))["status"] == "in_flight"
        await client.succeed(stored["id"])


async def test_a_server_that_rests_ends_if_another_one_has_its_database(tmp_path: Path) -> None:
    flags = ("--store", database_at(tmp_path))
    async with running(tmp_path / "none", *flags) as server, server.client() as client:
        stored = await client.enqueue()
        await (await client.take(prefetch=1)).job()
        await comes_to(tmp_path, RESTING)
        server.signal(SIGSTOP)
        end_connections(tmp_path)
        async with running(tmp_path / "none", *flags) as second, second.client() as other:
            stream = await other.take(prefetch=1)
            assert (await stream.job())["id"] == stored["id"]
            server.signal(SIGCONT)
            assert await server.exited() == 75
            assert "another server has the database" in " ".join(server.messages)


async def test_a_start_waits_for_a_server_that_was_there_before_postgresql_was_started_again(
    tmp_path: Path,
) -> None:
    """Both may come at the same moment: the jobs of the first one are not to be run twice."""
    ticks = make_ticks(POLICY, Random(1), {})
    with postgres() as database:
        address = database.new_database()
        async with running(tmp_path / "none", "--store", address) as server:
            server.signal(SIGSTOP)
            await asyncio.to_thread(database.kill)
            await asyncio.to_thread(database.start, "-c listen_addresses=")
            starting = asyncio.create_task(open_store(address, ticks, read_timeout=60.0))
            await asyncio.to_thread(_has_begun, address)
            server.signal(SIGCONT)
            with pytest.raises(DirectoryInUse):
                await (await starting).abandon()


def _has_begun(address: str) -> None:
    """Wait until a start has connected."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    with connect(address, SESSION) as connection:
        while value_of(connection, asked) == 1:
            time.sleep(0.01)


async def test_a_start_waits_for_no_server_that_has_stopped_or_was_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with postgres() as database:
        address = database.new_database()

        async def start() -> PostgresStore:
            ticks = make_ticks(POLICY, Random(1), {})
            async with asyncio.timeout(PATIENCE_S):
                return await open_store(address, ticks, read_timeout=60.0)

        async def restart() -> None:
            await asyncio.to_thread(database.kill)
            await asyncio.to_thread(database.start, "-c listen_addresses=")

        monkeypatch.setattr(owning, "GRACE_S", 2 * PATIENCE_S)
        await (await start()).abandon()
        await (await start()).close()
        await restart()
        await (await start()).abandon()
        await restart()
        # That one may have been killed, or not: nobody is waited for without end.
        monkeypatch.setattr(owning, "GRACE_S", 0.0)
        await (await start()).close()
