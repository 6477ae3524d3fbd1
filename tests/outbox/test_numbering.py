"""Rows that are sent again, however late and by whomever: under the numbers that they had."""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zq
from zq import outbox
from zq.client.app import App
from zq.features.producers.client import NumberedJobs, ServerProducers
from zq.features.producers.model import EpochEnd
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


def change(database: Database, *statements: str) -> None:
    with contextlib.closing(database.connect()) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def write(database: Database, mail: Mail, *numbers: int) -> None:
    with contextlib.closing(database.connect()) as connection:
        outbox.enqueue_many(connection, mail, [mail.args(n) for n in numbers])
        connection.commit()


async def move(app: App, database: Database) -> int:
    return await outbox.Relay(app, database.url).run_until_empty()


async def send_without_deleting(app: App, database: Database) -> None:
    """Have a relay end between sending the rows that are there and deleting them."""
    change(database, KEPT[database.kind])
    with pytest.raises(outbox.DatabaseUnavailable, match="kept"):
        await move(app, database)
    change(database, RELEASED[database.kind])


async def test_rows_that_were_sent_and_not_deleted_are_recognised_after_months(
    zq_server: TestServer, zq_app: App, mail: Mail, database: Database
) -> None:
    write(database, mail, *range(10))
    await send_without_deleting(zq_app, database)
    assert (await zq_app.backend.count(), database.left) == (10, 10)
    write(database, mail, *range(10, 15))
    await zq_server.advance(60 * 86_400)

    await move(zq_app, database)

    assert await sent(zq_app) == list(range(15))
    assert database.left == 0
    (producer,), _ = await ServerProducers(zq_app.backend.ask).page()
    assert producer.last == 15 and producer.name.startswith("outbox-")


async def test_rows_wait_for_days_while_no_server_answers(
    zq_server: TestServer, zq_app: App, mail: Mail, database: Database
) -> None:
    write(database, mail, 0, 1, 2)
    await zq_server.stop()
    with pytest.raises(zq.Unavailable):
        await move(zq_app, database)
    await zq_server.start()
    await zq_server.advance(72 * 3600)

    assert await move(zq_app, database) == 3

    assert await sent(zq_app) == [0, 1, 2]


async def test_a_refused_row_spends_no_number_and_loses_none(
    zq_app: App, mail: Mail, database: Database
) -> None:
    write(database, mail, 0, 1)
    change(
        database,
        """INSERT INTO zq_outbox (document) VALUES ('{"queue":"a,b","type":"t","payload":1}')""",
    )
    write(database, mail, 2)
    assert await move(zq_app, database) == 4
    (producer,), _ = await ServerProducers(zq_app.backend.ask).page()
    assert producer.last == 1  # of the epoch that began after the refused row

    change(
        database,
        """UPDATE zq_outbox SET error = NULL,
            document = '{"queue":"mail","type":"t","payload":{"args":[3]}}'""",
    )
    await move(zq_app, database)
    assert await sent(zq_app) == [0, 1, 2, 3]


@pytest.mark.parametrize("gone", [1, 3, 5])
async def test_rows_that_somebody_deletes_leave_no_gap(
    zq_app: App, mail: Mail, database: Database, gone: int
) -> None:
    write(database, mail, *range(5))
    await send_without_deleting(zq_app, database)
    write(database, mail, *range(5, 10))
    change(database, f"DELETE FROM zq_outbox WHERE id = {gone}")

    await move(zq_app, database)

    assert await sent(zq_app) == list(range(10))


async def test_numbered_rows_that_were_not_sent_may_be_deleted(
    zq_server: TestServer, zq_app: App, mail: Mail, database: Database
) -> None:
    """The relay has numbered the rows, and the server goes away before they come."""
    write(database, mail, 0)
    await move(zq_app, database)
    write(database, mail, *range(1, 6))
    ids = [row[0] for row in database.fetch("SELECT id FROM zq_outbox ORDER BY id")]
    change(database, f"UPDATE zq_outbox_lane SET first = 2, ids = '{json.dumps(ids)}'")
    change(database, f"DELETE FROM zq_outbox WHERE id = {ids[2]}")

    await move(zq_app, database)

    assert await sent(zq_app) == [0, 1, 2, 4, 5]


async def test_a_relay_that_ends_between_the_new_epoch_and_its_note_loses_nothing(
    zq_app: App, mail: Mail, database: Database
) -> None:
    write(database, mail, 0, 1)
    await move(zq_app, database)
    write(database, mail, 2, 3)
    ((lane,),) = database.fetch("SELECT producer || ' ' || epoch FROM zq_outbox_lane")
    name, epoch = lane.split()

    await NumberedJobs(zq_app.backend, name, "unknown", EpochEnd(epoch, 2)).store(1, ())

    await move(zq_app, database)

    assert await sent(zq_app) == [0, 1, 2, 3]
    assert database.left == 0


async def test_a_server_that_has_forgotten_the_producer_gets_what_is_left(
    zq_app: App, mail: Mail, database: Database
) -> None:
    """As after a restore from a backup of the server: it expects a smaller number."""
    write(database, mail, 0, 1)
    await move(zq_app, database)
    (producer,), _ = await ServerProducers(zq_app.backend.ask).page()
    await ServerProducers(zq_app.backend.ask).forget(producer.name)
    write(database, mail, 2, 3)

    await move(zq_app, database)

    assert await sent(zq_app) == [0, 1, 2, 3]


async def test_a_relay_that_begins_while_another_one_sends_takes_no_numbers_away(
    zq_app: App, mail: Mail, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(database, mail, 0, 1)
    await move(zq_app, database)
    end = NumberedJobs.end

    async def late_end(self: NumberedJobs) -> EpochEnd:
        """The end that the server tells, after another relay has gone on."""
        monkeypatch.setattr(NumberedJobs, "end", end)
        write(database, mail, 2, 3)
        await send_without_deleting(zq_app, database)
        return await end(self)

    write(database, mail, 9)
    monkeypatch.setattr(NumberedJobs, "end", late_end)
    await move(zq_app, database)

    assert await sent(zq_app) == [0, 1, 9, 2, 3]
    assert database.left == 0


@pytest.mark.parametrize("kind", ["sqlite"])
async def test_new_rows_of_a_restored_database_are_not_taken_for_old_ones(
    zq_app: App, mail: Mail, database: Database, tmp_path: Path
) -> None:
    file = Path(database.url.removeprefix("sqlite://"))
    write(database, mail, 0)
    await move(zq_app, database)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(file, tmp_path / "backup.db")
    write(database, mail, 1, 2, 3)
    await move(zq_app, database)
    shutil.copy(tmp_path / "backup.db", file)
    file.with_name(f"{file.name}-wal").unlink(missing_ok=True)
    file.with_name(f"{file.name}-shm").unlink(missing_ok=True)
    write(database, mail, 4, 5)

    await move(zq_app, database)

    assert await sent(zq_app) == [0, 1, 2, 3, 4, 5]


@pytest.fixture
def held(database: Database) -> Iterator[Any]:
    with contextlib.closing(database.connect()) as connection:
        yield connection


@pytest.mark.parametrize("kind", ["sqlite"])
async def test_a_relay_without_work_waits_for_no_writer(
    zq_app: App, database: Database, held: Any
) -> None:
    held.execute("BEGIN IMMEDIATE")
    assert await move(zq_app, database) == 0
