"""PostgreSQL knows the texts of all statements, and there is one for each that SQLite has."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from store.on_postgres import database_at
from zq.rooms import ROOMS, parts
from zq.store.postgres import reads, transaction
from zq.store.postgres.connection import SESSION, Connection, connect
from zq.store.postgres.queries import compiled, load
from zq.store.sqlite import reads as sqlite_reads
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


def files() -> Iterator[Path]:
    """The files of texts for PostgreSQL, without migrations."""
    yield from folder("zq.store.postgres").glob("*.sql")
    for room in ROOMS:
        yield from folder(room).glob("postgres*.sql")


def texts_of(file: Path) -> dict[str, str]:
    place = file.with_suffix("").parts
    return load(".".join(place[len(place) - place[::-1].index("zq") - 1 :]))


@pytest.mark.parametrize("file", [pytest.param(f, id=f"{f.parent.name}-{f.stem}") for f in files()])
def test_every_text_is_prepared(connection: Connection, file: Path) -> None:
    for name, text in texts_of(file).items():
        if name in NO_STATEMENTS or text.startswith("APPEND "):
            continue
        for word, meaning in WORDS.items():
            text = text.replace(word, meaning)
        result = connection.pgconn.prepare(b"", compiled(text).sql)
        assert not result.error_message, (name, result.error_message.decode())


def test_a_tick_has_every_statement_on_each_store() -> None:
    known = set(transaction.TEXTS).union(*map(texts_of, files()))
    assert sqlite_transaction.QUERIES.keys() - known == OF_SQLITE


def test_a_room_has_its_reads_on_each_store() -> None:
    assert reads.reads_of_rooms().keys() == sqlite_reads.reads_of_rooms().keys()


def test_shared_reads_have_the_same_texts_on_each_store() -> None:
    from zq.store.sqlite.queries import load as load_of_sqlite

    for kind, *_ in parts("store", "READS", tuple):
        room = kind.__module__.removesuffix(".store")
        own = load(f"{room}.postgres_reads").keys()
        assert own == load_of_sqlite(f"{room}.sqlite_reads").keys(), room
