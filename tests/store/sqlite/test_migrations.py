"""Migrations: a fresh file, an old one, one from the future, a script that fails half way."""

import contextlib
import sqlite3
from importlib.resources import files
from pathlib import Path

import pytest

from zq.model.ids import ALPHABET, SUFFIX_LENGTH
from zq.model.lifecycle import Status
from zq.store.errors import DatabaseTooNew, ForeignDatabase
from zq.store.sqlite.lock import DirectoryLock
from zq.store.sqlite.migrate import APPLICATION_ID, migrate, printed_schema

from ..rig import Rig

SCHEDULED, READY, IN_FLIGHT, COMPLETED, DEAD, *_ = Status

Shape = dict[str, str | None]

MIGRATIONS = files("zq.store.sqlite").joinpath("migrations")


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def shape(connection: sqlite3.Connection) -> Shape:
    """Everything that the schema consists of, by name."""
    return dict(connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name"))


def version(connection: sqlite3.Connection) -> int:
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return number


def meta(connection: sqlite3.Connection) -> dict[str, object]:
    return dict(connection.execute("SELECT name, value FROM meta"))


def scripts() -> list[str]:
    return sorted(file.name for file in MIGRATIONS.iterdir() if file.name.endswith(".sql"))


def test_each_migration_has_the_number_after_the_one_before() -> None:
    numbers = sorted(int(file.name[:4]) for file in MIGRATIONS.iterdir() if file.name[4] == "_")
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_fresh_database_gets_every_table_and_an_identity(tmp_path: Path) -> None:
    connection = connect(tmp_path / "zq.db")
    migrate(connection)
    assert {"jobs", "payloads", "results", "errors", "queue_counts", "meta"} <= shape(
        connection
    ).keys()
    assert version(connection) == len(scripts())
    known = meta(connection)
    assert known.keys() == {"epoch", "id_suffix", "high_water"}
    assert isinstance(known["epoch"], str)
    assert len(bytes.fromhex(known["epoch"])) == 16
    suffix = known["id_suffix"]
    assert isinstance(suffix, str)
    assert len(suffix) == SUFFIX_LENGTH
    assert set(suffix) <= set(ALPHABET)
    assert known["high_water"] == 0
    assert not connection.in_transaction
    connection.close()


def test_every_table_is_strict(tmp_path: Path) -> None:
    connection = connect(tmp_path / "zq.db")
    migrate(connection)
    tables = connection.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'")
    assert {name: strict for name, strict in tables if not name.startswith("sqlite_")} == {
        "jobs": 1,
        "users": 1,
        "user_grants": 1,
        "producers": 1,
        "producer_ends": 1,
        "devices": 1,
        "shares": 1,
        "shared_queues": 1,
        "fair_limits": 1,
        "payloads": 1,
        "results": 1,
        "errors": 1,
        "error_groups": 1,
        "failure_counts": 1,
        "trends": 1,
        "type_trends": 1,
        "sweeps": 1,
        "quarantine": 1,
        "budgets": 1,
        "lines": 1,
        "queue_counts": 1,
        "queue_settings": 1,
        "queue_rates": 1,
        "cron_groups": 1,
        "cron_entries": 1,
        "dedupe": 1,
        "logs": 1,
        "log_batches": 1,
        "open_batches": 1,
        "topics": 1,
        "lane_batches": 1,
        "lanes": 1,
        "schemas": 1,
        "topic_records": 1,
        "topic_jobs": 1,
        "topic_writes": 1,
        "topic_routers": 1,
        "meta": 1,
    }
    connection.close()


def test_a_new_database_is_what_all_scripts_make() -> None:
    kept = MIGRATIONS.joinpath("../schema.sql").read_text(encoding="utf-8")
    # Versions of SQLite write names that a script changes with quotes, or without.
    assert sqlite3.complete_statement(kept)
    remedy = "print it anew: python -m zq.store.sqlite.migrate > zq/store/sqlite/schema.sql"
    assert kept.replace('"', "") == f"{printed_schema()}\n".replace('"', ""), remedy


def test_a_migration_says_that_it_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with contextlib.closing(connect(tmp_path / "zq.db")) as connection:
        migrate(connection, upto=1)
        assert caplog.messages == []
        migrate(connection)
    assert caplog.messages == ["migrating the database"]


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    connection = connect(tmp_path / "zq.db")
    migrate(connection)
    before, identity = shape(connection), meta(connection)
    connection.close()
    connection = connect(tmp_path / "zq.db")
    changes = connection.total_changes
    migrate(connection)
    assert (shape(connection), meta(connection)) == (before, identity)
    assert connection.total_changes == changes
    connection.close()


def test_two_databases_have_different_identities(tmp_path: Path) -> None:
    identities = []
    for name in ("one.db", "other.db"):
        connection = connect(tmp_path / name)
        migrate(connection)
        identities.append(meta(connection))
        connection.close()
    assert identities[0]["epoch"] != identities[1]["epoch"]
    assert identities[0]["id_suffix"] != identities[1]["id_suffix"]


def test_a_database_of_a_newer_zq_is_refused_untouched(tmp_path: Path) -> None:
    connection = connect(tmp_path / "zq.db")
    migrate(connection)
    newer = len(scripts()) + 1
    connection.execute(f"PRAGMA user_version = {newer}")
    connection.execute("CREATE TABLE of_the_future (x)")
    before = shape(connection)
    with pytest.raises(DatabaseTooNew, match=f"version {newer}, .* up to {len(scripts())}"):
        migrate(connection)
    assert (shape(connection), version(connection)) == (before, newer)
    assert not connection.in_transaction
    connection.close()


def test_a_script_that_fails_half_way_leaves_nothing_behind(tmp_path: Path) -> None:
    connection = connect(tmp_path / "zq.db")
    # In the way of a table that comes after others in the script.
    connection.execute("CREATE TABLE errors (in_the_way)")
    before = shape(connection)
    with pytest.raises(sqlite3.OperationalError, match="errors already exists"):
        migrate(connection)
    assert (shape(connection), version(connection)) == (before, 0)
    assert not connection.in_transaction
    connection.execute("DROP TABLE errors")
    migrate(connection)
    assert version(connection) == len(scripts())
    connection.close()


def test_the_scripts_are_numbered_without_gaps_and_end_in_whole_statements() -> None:
    names = scripts()
    assert [name.split("_")[0] for name in names] == [f"{n + 1:04}" for n in range(len(names))]
    for name in names:
        text = MIGRATIONS.joinpath(name).read_text(encoding="utf-8")
        assert sqlite3.complete_statement(text), f"the end of {name} would not run"


# A job in each state as the first version stored it: columns that are not null, and their values.
FIRST_ROWS = [
    "16, 'a', 't', 1, 0, 9, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 4, 'null'",
    "32, 'a', 't', 1, 1, 5, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'k', 2, 1, 600, NULL",
    "48, 'b', 't', 1, 2, 5, 0, 1, 7, 6, NULL, NULL, NULL, NULL, NULL, NULL, 0, 4, 'null'",
    "64, 'b', 't', 1, 3, 5, 0, 1, NULL, 6, NULL, 7, 8, NULL, NULL, NULL, 0, 4, 'null'",
    "80, 'b', 't', 1, 4, 5, 1, 1, NULL, 6, 7, NULL, 9, '{\"retry_limit\":0}', NULL, NULL, 0, 4,"
    " 'null'",
]


def test_a_database_of_the_first_version_keeps_its_jobs(tmp_path: Path) -> None:
    connection = connect(tmp_path / "zq.db")
    first = MIGRATIONS.joinpath(scripts()[0]).read_text(encoding="utf-8")
    connection.executescript(first)
    for row in FIRST_ROWS:
        connection.execute(f"INSERT INTO jobs VALUES ({row})")
    connection.execute("INSERT INTO payloads VALUES (32, 'large')")
    connection.execute("PRAGMA user_version = 1")
    connection.row_factory = sqlite3.Row
    before = [dict(row) for row in connection.execute("SELECT * FROM jobs ORDER BY id")]

    migrate(connection)

    assert {row.pop("completed_at") for row in before} == {None, 7}
    after = [dict(row) for row in connection.execute("SELECT * FROM jobs ORDER BY id")]
    finished = {SCHEDULED: None, READY: None, IN_FLIGHT: None, COMPLETED: 7, DEAD: 7}
    for now, old in zip(after, before, strict=True):
        assert old.items() <= now.items()
        assert now["finished_at"] == finished[now["status"]]
        new = now.keys() - old.keys() - {"finished_at", "key_lock"}
        assert {now[column] for column in new} == {None, 0}
    assert [tuple(row) for row in connection.execute("SELECT * FROM payloads")] == [
        (32, "large", None)
    ]
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.row_factory = None
    fresh = connect(tmp_path / "fresh.db")
    migrate(fresh, len(scripts()))
    assert shape(connection) == shape(fresh)
    assert version(connection) == version(fresh)
    connection.close()
    fresh.close()


def at_version(path: Path, number: int) -> sqlite3.Connection:
    """An empty database as an earlier version has left it."""
    connection = connect(path)
    for name in scripts()[:number]:
        connection.executescript(MIGRATIONS.joinpath(name).read_text())
    connection.execute(f"PRAGMA user_version = {number}")
    return connection


def test_jobs_of_an_earlier_version_that_cannot_be_read_are_set_aside(tmp_path: Path) -> None:
    connection = at_version(tmp_path / "zq.db", 4)
    plain = "INSERT INTO jobs (id, queue, type, priority, status, ready_at, payload_size, payload"
    connection.execute(f"{plain}) VALUES (16, 'a', 't', 1, 1, 5, 4, 'null')")
    connection.execute(f"{plain}, options) VALUES (32, 'a', 't', 1, 1, 5, 4, 'null', '{{it''s')")
    connection.execute(f"{plain}, extras) VALUES (48, 'b', 't', 1, 1, 5, 4, 'null', '[]')")
    connection.execute("INSERT INTO queue_counts VALUES ('a', 1, 2), ('b', 1, 1)")

    migrate(connection)

    assert [key for (key,) in connection.execute("SELECT id FROM jobs")] == [16]
    counts = connection.execute("SELECT queue, n FROM queue_counts ORDER BY queue")
    assert counts.fetchall() == [("a", 1), ("b", 0)]
    rows = connection.execute("SELECT source, key, CAST(row AS TEXT) FROM quarantine ORDER BY key")
    (_, first, statement), (_, second, _) = rows.fetchall()
    assert (first, second) == ("32", "48")
    with pytest.raises(sqlite3.IntegrityError, match="json_valid"):
        connection.execute(statement)
    connection.execute(statement.replace("{it''s", "{}"))
    row = connection.execute("SELECT queue, status, options FROM jobs WHERE id = 32").fetchone()
    assert row == ("a", 1, "{}")
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE visits (at)",
        "PRAGMA application_id = 7",
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY)",
    ],
)
async def test_a_database_of_another_program_is_refused_untouched(
    statement: str, tmp_path: Path
) -> None:
    connection = connect(tmp_path / "zq.db")
    connection.execute("PRAGMA user_version = 999")
    connection.execute(statement)
    connection.close()
    before = (tmp_path / "zq.db").read_bytes()
    with pytest.raises(ForeignDatabase, match="not zq's"):
        await Rig(tmp_path).open()
    assert (tmp_path / "zq.db").read_bytes() == before
    assert not (tmp_path / "zq.db-wal").exists()


@pytest.mark.parametrize("number", range(1, 5))
async def test_a_database_from_before_the_mark_is_known_and_gets_it(
    number: int, tmp_path: Path
) -> None:
    connection = at_version(tmp_path / "zq.db", number)
    suffix = ALPHABET[:SUFFIX_LENGTH]
    identity = f"('epoch', 'e'), ('id_suffix', '{suffix}'), ('high_water', 0)"
    connection.execute(f"INSERT INTO meta VALUES {identity}")
    connection.close()
    rig = Rig(tmp_path)
    await rig.open()
    await rig.close()
    connection = connect(tmp_path / "zq.db")
    assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    connection.close()


async def test_a_store_refuses_a_newer_database_and_lets_go_of_the_directory(rig: Rig) -> None:
    await rig.close()
    connection = connect(rig.directory / "zq.db")
    known = version(connection)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(DatabaseTooNew):
        await rig.open()
    DirectoryLock(rig.directory).release()
    connection = connect(rig.directory / "zq.db")
    connection.execute(f"PRAGMA user_version = {known}")
    connection.close()
    await rig.open()


async def test_a_store_keeps_its_identity_over_reopening(rig: Rig) -> None:
    before = (rig.store.at_start.epoch, rig.store.at_start.id_suffix)
    await rig.reopen()
    assert (rig.store.at_start.epoch, rig.store.at_start.id_suffix) == before


async def test_a_new_file_can_give_space_back_in_slices_and_has_a_wal(rig: Rig) -> None:
    def pragma(connection: sqlite3.Connection, name: str) -> object:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    incremental = 2
    assert await rig.look(pragma, "auto_vacuum") == incremental
    assert await rig.look(pragma, "journal_mode") == "wal"
