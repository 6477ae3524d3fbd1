"""The relay: what is committed is enqueued once and in order, whatever ends in between."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from conformance.streams import PATIENCE_S, pause

import zq
from zq import outbox
from zq.client.app import App
from zq.client.values import JobQuery
from zq.model.settings import SettingsPatch
from zq.outbox import postgres, relay, sqlite
from zq.testing import TestServer

from .conftest import Database, Mail
from .postgres import the_server
from .relayed import relaying, sent, until_sent


async def test_what_is_committed_is_enqueued_and_what_is_rolled_back_is_not(
    zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    outbox.enqueue(connection, mail, 1)
    connection.rollback()
    outbox.enqueue(connection, mail, 2)
    assert await outbox.Relay(zq_app, database.url).run_until_empty() == 0
    connection.commit()
    assert await outbox.Relay(zq_app, database.url).run_until_empty() == 1

    assert await sent(zq_app) == [2]
    assert database.left == 0


def limit(monkeypatch: pytest.MonkeyPatch, read: int, sent: int) -> None:
    """Have so many rows read at once, and sent at once."""
    for module in (sqlite, postgres):
        monkeypatch.setattr(module, "MOST_ROWS", read)
    monkeypatch.setattr(relay, "MOST_AT_ONCE", sent)


async def test_rows_keep_their_order_over_many_requests(
    zq_app: App,
    mail: Mail,
    database: Database,
    connection: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit(monkeypatch, 1000, 300)
    grouped = mail.options(group="g")
    outbox.enqueue_many(connection, grouped, (grouped.args(n) for n in range(4500)))
    outbox.enqueue(connection, grouped, 4500)
    connection.commit()

    assert await outbox.Relay(zq_app, database.url).run_until_empty() == 4501

    assert await sent(zq_app) == list(range(4501))


async def test_a_row_of_many_bytes_goes_alone(
    zq_app: App, database: Database, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite, postgres):
        monkeypatch.setattr(module, "MOST_BYTES", 1000)
    monkeypatch.setattr(relay, "MOST_BYTES_AT_ONCE", 1000)
    texts = zq_app.queue("texts")
    for n in range(3):
        outbox.enqueue(connection, texts, str(n), "x" * 2000)
    connection.commit()

    assert await outbox.Relay(zq_app, database.url).run_until_empty() == 3

    assert await zq_app.backend.count() == 3


async def test_options_and_ids_arrive(
    zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    orders = zq_app.queue("orders")
    outbox.enqueue(connection, mail.options(delay=60, priority=7), 1)
    outbox.enqueue(connection, orders, "A-1", {"paid": True})
    outbox.enqueue(connection, orders, "A-1", {"paid": False})
    connection.commit()

    await outbox.Relay(zq_app, database.url).run_until_empty()

    (later,) = (await zq_app.backend.jobs(JobQuery(queues=("mail",)))).jobs
    assert (later.status, later.priority) == ("scheduled", 7)
    (order,) = (await zq_app.backend.jobs(JobQuery(queues=("orders",)))).jobs
    assert order.payload == {"paid": True}
    status = await orders.status("A-1")
    assert status is not None
    assert status.state == "ready"


@pytest.mark.parametrize("kind", ["postgresql"])
async def test_a_row_that_commits_after_one_with_a_larger_id_is_not_lost(
    zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    outbox.enqueue(connection, mail, 1)
    other = database.connect()
    outbox.enqueue(other, mail, 2)
    other.commit()
    await outbox.Relay(zq_app, database.url).run_until_empty()
    connection.commit()
    await outbox.Relay(zq_app, database.url).run_until_empty()
    other.close()

    assert await sent(zq_app) == [2, 1]
    assert database.left == 0


@pytest.mark.parametrize("kind", ["postgresql"])
async def test_a_row_that_commits_while_others_are_under_way_goes_before_later_ones(
    zq_app: App,
    mail: Mail,
    database: Database,
    connection: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit(monkeypatch, 4, 2)
    outbox.enqueue(connection, mail, 1)
    other, locking = database.connect(), database.connect()
    outbox.enqueue_many(other, mail, [mail.args(n) for n in range(2, 7)])
    other.commit()
    # The relay has read the rows 2 to 5, has sent 2 and 3, and cannot delete them.
    locking.execute("SELECT FROM zq_outbox ORDER BY id LIMIT 1 FOR UPDATE")
    async with relaying(zq_app, database):
        await until_sent(zq_app, 2)
        connection.commit()
        outbox.enqueue(other, mail, 7)
        other.commit()
        locking.rollback()
        await until_sent(zq_app, 7)
    other.close()
    locking.close()

    assert await sent(zq_app) == [2, 3, 4, 5, 1, 6, 7]


END_OF_RELAYS = """\
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE application_name = 'zq relay' AND datname = current_database()"""


async def test_two_relays_enqueue_each_row_once_and_one_goes_on_without_the_other(
    zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    grouped = mail.options(group="g")
    async with relaying(zq_app, database), contextlib.AsyncExitStack() as first:
        await first.enter_async_context(relaying(zq_app, database))
        for start in range(0, 1000, 50):
            calls = [grouped.args(n) for n in range(start, start + 50)]
            outbox.enqueue_many(connection, grouped, calls)
            connection.commit()
        await until_sent(zq_app, 1000)
        await first.aclose()
        outbox.enqueue(connection, grouped, 1000)
        connection.commit()
        await until_sent(zq_app, 1001)

    assert await sent(zq_app) == list(range(1001))


async def test_a_commit_wakes_the_relay(
    zq_app: App,
    mail: Mail,
    database: Database,
    connection: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (sqlite, postgres):
        monkeypatch.setattr(module, "IDLE_S", 3600.0)
    async with relaying(zq_app, database):
        for n in range(20):
            outbox.enqueue(connection, mail, n)
            connection.commit()
            await until_sent(zq_app, n + 1)

    assert await sent(zq_app) == list(range(20))


async def test_a_row_that_the_server_refuses_is_set_aside_and_holds_nothing_up(
    zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    refused = '{"queue":"a,b","type":"t","payload":1}'
    for n, document in enumerate((refused, "no job", refused)):
        outbox.enqueue(connection, mail, n)
        connection.execute(f"INSERT INTO zq_outbox (document) VALUES ('{document}')")
    outbox.enqueue_many(connection, mail, [mail.args(n) for n in range(3, 20)])
    connection.commit()

    await outbox.Relay(zq_app, database.url).run_until_empty()

    assert await sent(zq_app) == list(range(20))
    errors = [row[0] for row in database.fetch("SELECT error FROM zq_outbox ORDER BY id")]
    assert "must not contain ','" in errors[0]
    assert "not a job" in errors[1]
    assert "must not contain ','" in errors[2]


async def test_a_full_queue_gets_as_many_rows_as_it_has_room_for(
    zq_app: App, mail: Mail, database: Database, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zq.client.http.backend.TRIES", 1)
    await zq_app.backend.change_settings("mail", SettingsPatch(max_depth=3))
    outbox.enqueue_many(connection, mail, [mail.args(n) for n in range(8)])
    connection.commit()
    for stored in (3, 6):
        with pytest.raises(zq.Unavailable, match="the queue 'mail' is full"):
            await outbox.Relay(zq_app, database.url).run_until_empty()
        assert await sent(zq_app) == list(range(stored))
        await zq.Worker(zq_app).run_until_idle()

    assert await outbox.Relay(zq_app, database.url).run_until_empty() == 2

    assert await sent(zq_app) == list(range(8))
    assert database.left == 0


DEEP = '{"queue":"q","type":"t","payload":' + "[" * 5000 + "]" * 5000 + "}"
NUL = '{"queue":"q","type":"t","payload":1,"a\\u0000":1}'
LATIN = b'{"queue":"q","type":"t","payload":"\xe4"}'.hex()


async def test_a_row_that_cannot_be_read_is_set_aside_and_holds_nothing_up(
    zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    bad = {f"'{DEEP}'": "recursion", f"'{NUL}'": "unknown field"}
    if database.kind == "sqlite":  # PostgreSQL takes no text in another encoding
        bad |= {f"CAST(x'{LATIN}' AS TEXT)": "can't decode byte 0xe4", f"x'{LATIN}'": "byte 0xe4"}
    for n, document in enumerate(bad):
        outbox.enqueue(connection, mail, n)
        connection.execute(f"INSERT INTO zq_outbox (document) VALUES ({document})")
    outbox.enqueue_many(connection, mail, [mail.args(n) for n in range(len(bad), 10)])
    connection.commit()
    async with relaying(zq_app, database):
        await until_sent(zq_app, 10)
    # It may have ended before it deleted the rows that are stored.
    await outbox.Relay(zq_app, database.url).run_until_empty()

    assert await sent(zq_app) == list(range(10))
    errors = [row[0] for row in database.fetch("SELECT error FROM zq_outbox ORDER BY id")]
    assert len(errors) == len(bad)
    assert all(said in error for said, error in zip(bad.values(), errors, strict=True))


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_of_any_encoding_has_an_outbox(
    zq_app: App, mail: Mail, encoding: str
) -> None:
    database = Database("postgresql", the_server().new_database("template0", encoding))
    with contextlib.closing(database.connect()) as connection:
        outbox.create_table(connection)
        bad = [rb'{"queue":"q","type":"t","payload":1,"\u0416":1}']
        if encoding == "SQL_ASCII":  # which takes any bytes as text
            bad.append(bytes.fromhex(LATIN))
        for n, document in enumerate(bad):
            connection.execute(b"INSERT INTO zq_outbox (document) VALUES ('%b')" % document)
            outbox.enqueue(connection, mail, n)
        connection.commit()
        await outbox.Relay(zq_app, database.url).run_until_empty()

        assert await sent(zq_app) == [*range(len(bad))]
        found = connection.execute("SELECT error IS NOT NULL FROM zq_outbox").fetchall()
        assert found == [(True,)] * len(bad)


async def test_a_relay_says_what_has_failed_and_tries_again(
    zq_app: App,
    mail: Mail,
    database: Database,
    connection: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    outbox.enqueue(connection, mail, 1)
    connection.execute("INSERT INTO zq_outbox_lane VALUES (1, 'outbox-1', 'e', 1, 'no list')")
    connection.commit()
    async with relaying(zq_app, database):
        async with asyncio.timeout(PATIENCE_S):
            while "the relay has failed and tries again" not in caplog.messages:
                await pause()
        connection.execute("DELETE FROM zq_outbox_lane")
        connection.commit()
        await until_sent(zq_app, 1)


async def test_a_row_that_was_mended_is_moved(
    zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    outbox.enqueue(connection, mail, 1)
    connection.execute("UPDATE zq_outbox SET error = 'too large'")
    connection.commit()
    async with relaying(zq_app, database):
        outbox.enqueue(connection, mail, 2)
        connection.commit()
        await until_sent(zq_app, 1)
        connection.execute("UPDATE zq_outbox SET error = NULL")
        connection.commit()
        await until_sent(zq_app, 2)

    assert await sent(zq_app) == [2, 1]


async def test_rows_wait_while_the_server_is_away(
    zq_server: TestServer, zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    await zq_server.stop()
    outbox.enqueue(connection, mail, 1)
    connection.commit()
    with pytest.raises(zq.Unavailable):
        await outbox.Relay(zq_app, database.url).run_until_empty()
    async with relaying(zq_app, database):
        await zq_server.start()
        await until_sent(zq_app, 1)

    assert await sent(zq_app) == [1]


async def test_a_key_that_may_not_enqueue_refuses_no_row(
    zq_server: TestServer, zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    # A server of another kind answers 404 at this address.
    astray = App(f"{zq_server.url}/nowhere")
    outbox.enqueue(connection, mail, 1)
    connection.commit()
    async with astray:
        with pytest.raises(zq.BackendError):
            await outbox.Relay(astray, database.url).run_until_empty()

    assert database.fetch("SELECT error FROM zq_outbox") == [(None,)]


@pytest.mark.parametrize("kind", ["postgresql"])
async def test_a_broken_connection_is_opened_again(
    zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    async with relaying(zq_app, database):
        outbox.enqueue(connection, mail, 1)
        connection.commit()
        await until_sent(zq_app, 1)
        assert database.fetch(END_OF_RELAYS) == [(True,)]
        outbox.enqueue(connection, mail, 2)
        connection.commit()
        await until_sent(zq_app, 2)

    assert await sent(zq_app) == [1, 2]


@pytest.mark.parametrize("kind", ["sqlite"])
async def test_a_file_that_is_replaced_by_another_is_opened(
    zq_app: App,
    mail: Mail,
    database: Database,
    connection: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqlite, "IDLE_S", 3600.0)
    outbox.enqueue(connection, mail, 1)
    connection.commit()
    file = Path(database.url.removeprefix("sqlite://"))
    restored = file.with_name("restored.db")
    async with relaying(zq_app, database):
        await until_sent(zq_app, 1)
        with contextlib.closing(sqlite3.connect(restored)) as copy:
            connection.backup(copy)
            outbox.enqueue(copy, mail, 2)
            copy.commit()
        connection.close()
        for part in ("-wal", "-shm"):
            file.with_name(f"{file.name}{part}").unlink(missing_ok=True)
        restored.replace(file)
        await until_sent(zq_app, 2)

    assert await sent(zq_app) == [1, 2]


async def test_a_worker_moves_rows_while_it_works(
    zq_app: App, database: Database, connection: Any
) -> None:
    done: asyncio.Queue[int] = asyncio.Queue()

    @zq_app.task
    async def note(n: int) -> None:
        done.put_nowait(n)

    zq_app.while_working(outbox.Relay(zq_app, database.url).run)
    worker = zq.Worker(zq_app)
    working = asyncio.create_task(worker.run())
    outbox.enqueue(connection, note, 5)
    connection.commit()
    async with asyncio.timeout(PATIENCE_S):
        assert await done.get() == 5
    await worker.stop()
    await working


async def test_a_missing_table_and_a_missing_file_are_told(zq_app: App, database: Database) -> None:
    connection = database.connect()
    connection.execute("DROP TABLE zq_outbox")
    connection.commit()
    connection.close()
    with pytest.raises(outbox.DatabaseUnavailable, match=r"zq_outbox.*: create it by outbox"):
        await outbox.Relay(zq_app, database.url).run_until_empty()
    with pytest.raises(outbox.DatabaseUnavailable, match="does not exist"):
        await outbox.Relay(zq_app, "sqlite:///nowhere/shop.db").run_until_empty()
    with pytest.raises(zq.InvalidOption, match="not the address of a database") as told:
        outbox.Relay(zq_app, "mysql://shop:abc@db")
    assert "abc" not in str(told.value)
    for password in ("abc%zz", "x@abc", "12/abc"):
        with pytest.raises(zq.InvalidOption, match="the address of the database cannot") as told:
            outbox.Relay(zq_app, f"postgresql://shop:{password}@127.0.0.1:1/shop")
        assert "abc" not in str(told.value)
