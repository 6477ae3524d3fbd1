"""Rows whose answer got lost: they are sent again for a day, and then no more."""

import time
from typing import Any

import pytest

import zq
from zq import outbox
from zq.client.app import App
from zq.outbox import relay
from zq.testing import TestServer

from .conftest import Database, Mail
from .relayed import sent

KEPT = {
    "sqlite": """\
        CREATE TRIGGER kept BEFORE DELETE ON zq_outbox BEGIN SELECT RAISE(ABORT, 'kept'); END""",
    "postgresql": """\
        CREATE OR REPLACE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN RAISE EXCEPTION ''kept''; END';
        CREATE TRIGGER kept BEFORE DELETE ON zq_outbox EXECUTE FUNCTION kept()""",
}
"""What lets relays send rows and not delete them."""

RELEASED = {"sqlite": "DROP TRIGGER kept", "postgresql": "DROP TRIGGER kept ON zq_outbox"}


async def send_without_deleting(app: App, database: Database, number: int) -> None:
    """Have a relay end between sending the rows that are there and deleting them."""
    connection = database.connect()
    connection.execute(KEPT[database.kind])
    connection.commit()
    with pytest.raises(outbox.DatabaseUnavailable, match="kept"):
        await outbox.Relay(app, database.url).run_until_empty()
    assert (await app.backend.count(), database.left) == (number, number)
    connection.execute(RELEASED[database.kind])
    connection.commit()
    connection.close()


async def test_a_relay_that_ends_between_sending_and_deleting_enqueues_nothing_twice(
    zq_app: App, mail: Mail, database: Database, connection: Any
) -> None:
    outbox.enqueue_many(connection, mail, [mail.args(n) for n in range(10)])
    connection.commit()
    await send_without_deleting(zq_app, database, 10)

    await outbox.Relay(zq_app, database.url).run_until_empty()

    assert await sent(zq_app) == list(range(10))
    assert database.left == 0


class Later:
    """The clocks of the server and of relays, which go on together."""

    def __init__(self, server: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self._server = server
        self._ms = 0
        monkeypatch.setattr(relay, "now_ms", lambda: time.time_ns() // 1_000_000 + self._ms)

    async def by(self, hours: int) -> None:
        self._ms += hours * 3_600_000
        await self._server.advance(hours * 3600)


@pytest.fixture
def later(zq_server: TestServer, monkeypatch: pytest.MonkeyPatch) -> Later:
    return Later(zq_server, monkeypatch)


async def test_what_may_have_been_sent_over_a_day_ago_is_set_aside_and_not_sent_again(
    zq_app: App, mail: Mail, database: Database, connection: Any, later: Later
) -> None:
    outbox.enqueue_many(connection, mail, [mail.args(n) for n in range(3)])
    connection.commit()
    await send_without_deleting(zq_app, database, 3)
    outbox.enqueue_many(connection, mail, [mail.args(n) for n in range(3, 6)])
    connection.commit()
    await later.by(25)

    await outbox.Relay(zq_app, database.url).run_until_empty()

    assert await sent(zq_app) == list(range(6))
    errors = [row[0] for row in database.fetch("SELECT error FROM zq_outbox")]
    assert errors == [relay.LATE] * 3

    connection.execute("UPDATE zq_outbox SET error = NULL")  # somebody wants them sent
    connection.commit()
    assert await outbox.Relay(zq_app, database.url).run_until_empty() == 3
    assert await sent(zq_app) == [*range(6), *range(3)]


async def test_the_first_time_counts_and_not_a_later_one(
    zq_app: App, mail: Mail, database: Database, connection: Any, later: Later
) -> None:
    outbox.enqueue(connection, mail, 1)
    connection.commit()
    await send_without_deleting(zq_app, database, 1)
    await later.by(20)
    await send_without_deleting(zq_app, database, 1)
    await later.by(5)

    await outbox.Relay(zq_app, database.url).run_until_empty()

    assert (await sent(zq_app), database.left) == ([1], 1)


async def test_rows_wait_for_days_while_no_server_answers(
    zq_server: TestServer,
    zq_app: App,
    mail: Mail,
    database: Database,
    connection: Any,
    later: Later,
) -> None:
    outbox.enqueue_many(connection, mail, [mail.args(n) for n in range(3)])
    connection.commit()
    await zq_server.stop()
    with pytest.raises(zq.Unavailable):
        await outbox.Relay(zq_app, database.url).run_until_empty()
    await zq_server.start()
    await later.by(72)

    assert await outbox.Relay(zq_app, database.url).run_until_empty() == 3

    assert await sent(zq_app) == [0, 1, 2]


async def test_a_row_of_another_program_is_recognised_as_long_as_any(
    zq_app: App, database: Database, connection: Any, later: Later
) -> None:
    row = '{"queue":"mail","type":"t","payload":{"args":[1]},"dedupe":{"id":"x","window_ms":1}}'
    connection.execute(f"INSERT INTO zq_outbox (document) VALUES ('{row}')")
    connection.commit()
    await send_without_deleting(zq_app, database, 1)
    await later.by(22)

    await outbox.Relay(zq_app, database.url).run_until_empty()

    assert (await sent(zq_app), database.left) == ([1], 0)
