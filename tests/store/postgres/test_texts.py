"""PostgreSQL knows the texts of all statements, and there is one for each that SQLite has."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.on_postgres import database_at
from zq.rooms import ROOMS, parts
from zq.store.postgres import snapshot, transaction
from zq.store.postgres.connection import SESSION, Connection, connect
from zq.store.postgres.queries import compiled, load
from zq.store.sqlite import snapshot as sqlite_snapshot
from zq.store.sqlite import transaction as sqlite_transaction
from zq.store.texts import folder

WORDS = {
    "CONDITIONS": "true",
    "WORDS": "true",
    "MATCHES": "true",
    "OTHERS": "true",
    "LIST": "status = 1 AND held = 0",
    "PLACE": "priority",
    "ORDERED": "2",
    "SOME": "SELECT ''",
    "SOURCE": "SELECT 1 AS n, '[]'::json AS records",
}
"""Words in texts, each with a meaning that leaves the text a statement."""

NO_STATEMENTS = {
    *("contains", "others", "jobs_others", "one", "first_by_turn", "first_by_age"),
    *("claim_arm", "claim_bounded_arm", "claim_merged", "count_merged"),
    *("line_arm", "aging_arm", "lines_merged"),
}
"""Texts that are parts of others, or made of others. Claims of several queues run these."""

OF_SQLITE = {
    *("acknowledge_damage", "count_down", "count_up"),
    *("make_lost_shared_queues", "make_lost_budgets", "note_lost_budgets", "make_lost_shares"),
}
"""Statements of rows that were set aside, and what PostgreSQL does by others."""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with connect(database_at(tmp_path_factory.mktemp("texts")), SESSION) as connection:
        yield connection


def modules(store: str = "postgres") -> Iterator[str]:
    """The modules of the texts of a store, without migrations."""
    for file in sorted(folder(f"zq.store.{store}").glob("*.sql")):
        yield f"zq.store.{store}.{file.stem}"
    for room in ROOMS:
        stems = {file.stem for file in folder(room).glob("*.sql")}
        for other in {"sqlite", "postgres"} - {store}:
            stems = {stem for stem in stems if not stem.startswith(other)}
        for stem in sorted({stem.removeprefix(f"{store}_") for stem in stems}):
            yield f"{room}.{store}_{stem}"


def named_in(file: Path) -> list[str]:
    """The names of the texts of one file."""
    return re.findall(r"^-- name: (\w+)$", file.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("module", [*modules()])
def test_every_text_is_prepared(connection: Connection, module: str) -> None:
    for name, text in load(module).items():
        if name in NO_STATEMENTS or text.startswith("APPEND "):
            continue
        for word, meaning in WORDS.items():
            text = text.replace(word, meaning)
        result = connection.pgconn.prepare(b"", compiled(text).sql)
        assert not result.error_message, (name, result.error_message.decode())


def test_a_tick_has_every_statement_on_each_store() -> None:
    known = set(transaction.TEXTS).union(*map(load, modules()))
    assert sqlite_transaction.QUERIES.keys() - known == OF_SQLITE


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_what_reads_alike_in_both_stores_is_written_once(store: str) -> None:
    for module in modules(store):
        package, _, name = module.rpartition(".")
        own = folder(package) / f"{name}.sql"
        if package == f"zq.store.{store}":
            shared = own.parent.with_name(own.name)
        else:
            shared = own.with_name(own.name.removeprefix(f"{store}_"))
        if own.exists() and shared.exists():
            assert not set(named_in(own)) & set(named_in(shared)), module


def test_a_room_has_its_reads_on_each_store() -> None:
    assert snapshot.reads_of_rooms().keys() == sqlite_snapshot.reads_of_rooms().keys()


def test_shared_reads_have_the_same_texts_on_each_store() -> None:
    from zq.store.sqlite.queries import load as load_of_sqlite

    for kind, *_ in parts("store", "READS", tuple):
        room = kind.__module__.removesuffix(".store")
        own = load(f"{room}.postgres_reads").keys()
        assert own == load_of_sqlite(f"{room}.sqlite_reads").keys(), room
