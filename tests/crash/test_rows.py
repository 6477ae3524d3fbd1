"""A row changes on the disk in any table beside those of jobs: everything else goes on.

The rows of jobs and what lies beside them have `test_columns.py`.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conformance.client import JSON, Client
from conformance.keyed import BODIES
from conformance.site import Site
from conformance.streams import PATIENCE_S
from rooms import needs
from tiers import sizes

from .furnished import EMPTY, REQUESTS, WAITING, furnish

pytestmark = [needs("doors.topics"), needs("features.forward"), needs("features.fair")]

SETTINGS = {"http2_engine": "h2", "history": 86_400_000}

APART = {"jobs", "payloads", "results", "errors", "log_batches", "topic_records"} | {
    *("meta", "queue_counts")
}
"""Tables whose rows have checksums, and those without which a start is refused."""

PLACES = {
    "queue": "shared",
    "target": "x",
    "id": "01JD0000000000000000000000",
    "group": "c",
    "entry": "e",
    "key": "b",
    "name": "d",
    "attempt": "1",
}
READS = [
    path + {"/jobs/by-key": "?key=u", "/suggest": "?field=queue"}.get(path, "")
    for method, path in BODIES
    if method == "GET" and path not in ("/jobs/take", "/events")
]


class Harm(NamedTuple):
    """A value of a column that the disk has changed."""

    table: str
    column: str
    old: Any


def values_in(file: Path) -> Iterator[Harm]:
    """The texts and numbers of one row of each table."""
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        for (table,) in tables.fetchall():
            columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
            names = ", ".join(column["name"] for column in columns)  # no generated ones
            row = connection.execute(f"SELECT {names} FROM {table}").fetchone()
            assert (row is None) == (table in EMPTY), table
            if row is not None and table not in APART:
                for column in row.keys():  # noqa: SIM118 - it has values otherwise
                    if isinstance(row[column], str | int) and row[column] != "":
                        yield Harm(table, column, row[column])


def change(connection: sqlite3.Connection, harm: Harm, flips: str) -> None:
    """Change one value as one bit would change it."""
    if isinstance(harm.old, int):
        new: object = harm.old - 2**63 if harm.old >= 0 else harm.old
        value = "?"
    else:
        text = bytearray(harm.old.encode())
        if flips == "no text":
            text[len(text) // 2] |= 0x80
        else:
            text[0] ^= 2
        new, value = bytes(text), "CAST(? AS TEXT)"
    connection.execute(
        f"UPDATE {harm.table} SET {harm.column} = {value} WHERE {harm.column} = ?", [new, harm.old]
    )


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a server that has ended."""

    async def live() -> Path:
        site = Site(tmp_path_factory.mktemp("rows") / "furnished", SETTINGS)
        await site.start()
        async with Client(site, JSON) as client:
            await furnish(client)
        await site.stop()
        return site.root

    return asyncio.run(live())


@pytest.fixture
def sound(furnished: Path, tmp_path: Path) -> Path:
    """A copy of it, for one test to damage."""
    return shutil.copytree(furnished, tmp_path / "sound")


async def look_at_everything(client: Client) -> None:
    """Ask for whatever can be read, and store all things once more: nothing is an error of zq."""
    for path in READS:
        for name, value in PLACES.items():
            path = path.replace(f"{{{name}}}", value)
        reply = await client.get(path)
        assert reply.status < 500, (path, reply.doc)
    for method, path, doc in REQUESTS:
        reply = await client.call(method, path, doc)
        assert reply.status < 500, (method, path, reply.doc)


async def delivered(client: Client) -> set[str]:
    """The queues whose jobs come before one that comes last."""
    await client.enqueue(queue="last", priority=65_535)
    stream = await client.take(prefetch=1_000)
    queues: set[str] = set()
    async with asyncio.timeout(PATIENCE_S):
        while "last" not in queues:
            queues.add((await stream.job())["queue"])
    return queues


def set_aside(root: Path) -> set[str]:
    """The tables of the rows that were set aside."""
    with closing(sqlite3.connect(root / "zq.db")) as connection:
        return {source for (source,) in connection.execute("SELECT source FROM quarantine")}


def rounds(harms: list[Harm], most: int) -> Iterator[list[Harm]]:
    """Harms that are tried together: one of each table."""
    of_tables = [[h for h in harms if h.table == table] for table in {h.table for h in harms}]
    for number in range(most):
        yield [some[number] for some in of_tables if number < len(some)]


def named(root: Path) -> set[str]:
    """The keys of the rows that were set aside."""
    with closing(sqlite3.connect(root / "zq.db")) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM quarantine")}


@pytest.mark.parametrize("flips", ["no text", "other text"])
@sizes("most", 3, 20)
async def test_rows_that_have_changed_stop_nothing_else(
    most: int, flips: str, sound: Path, tmp_path: Path
) -> None:
    harms = list(values_in(sound / "zq.db"))
    for number, together in enumerate(rounds(harms, most)):
        root = tmp_path / f"{number}"
        shutil.copytree(sound, root)
        with closing(sqlite3.connect(root / "zq.db", isolation_level=None)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            for harm in together:
                change(connection, harm, flips)
        texts = {harm.table for harm in together if isinstance(harm.old, str)}
        site = Site(root, SETTINGS)
        await site.start()
        async with Client(site, JSON) as client:
            await look_at_everything(client)
            assert await delivered(client) >= WAITING.keys() - {"drawn", "timed"}, together
            told = (await client.get("/health")).doc.get("quarantined")
        await site.stop()
        if flips == "no text" and texts:
            assert told and told["rows"] >= len(texts)
            assert texts <= set_aside(root)


async def test_notes_that_have_changed_are_set_aside(sound: Path) -> None:
    with closing(sqlite3.connect(sound / "zq.db", isolation_level=None)) as connection:
        notes = {name for (name,) in connection.execute("SELECT name FROM meta") if ":" in name}
        assert notes == {
            "note:marks",
            "note:history epochs",
            "note:instances at http://127.0.0.1:9",
        }
        connection.execute("UPDATE meta SET value = '[' WHERE name LIKE 'note:%'")
    site = Site(sound, SETTINGS)
    await site.start()
    async with Client(site, JSON) as client:
        assert not (await client.get("/trends")).doc.get("marks")
        assert (await client.post("/marks", {"text": "m"})).status == 201
    await site.stop()
    assert named(sound) >= notes


@pytest.mark.parametrize(
    "numbers", ["last_seq = last_seq | 1 << 40", "first_seq = -1", "last_seq = 0"]
)
async def test_a_write_with_numbers_that_cannot_be_comes_anew(numbers: str, sound: Path) -> None:
    (again,) = (each for each in REQUESTS if each[:2] == ("POST", "/v0/topics/log"))
    with closing(sqlite3.connect(sound / "zq.db", isolation_level=None)) as connection:
        assert connection.execute(f"UPDATE topic_writes SET {numbers}").rowcount == 1
    site = Site(sound, SETTINGS)
    await site.start()
    async with Client(site, JSON) as client:
        told = [(await client.call(*again)).doc for _ in range(2)]
    await site.stop()
    assert [(doc["first_seq"], doc["count"]) for doc in told] == [(2, 1), (2, 1)]
    assert "topic_writes" in set_aside(sound)


TOPIC_NUMBERS = ("head_seq", "count", "bytes", "dead_lettered")


@pytest.mark.parametrize("column", TOPIC_NUMBERS)
async def test_a_topic_whose_numbers_cannot_be_goes_on(column: str, sound: Path) -> None:
    with closing(sqlite3.connect(sound / "zq.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE topics SET {column} = {column} - 9000000000000000000")
    site = Site(sound, SETTINGS)
    await site.start()
    async with Client(site, JSON) as client:
        record = {"records": [{"data": 2}]}
        told = [(await client.post(f"/v0/topics/{name}", record)).doc for name in ("log", "near")]
        read = (await client.post("/v0/topics/log/diff", {"from_seq": 0})).doc
    await site.stop()
    assert [doc["first_seq"] for doc in told] == [2, 2]
    assert [record["$seq"] for record in read["records"]] == [1, 2]


async def test_the_records_of_a_topic_that_is_set_aside_keep_its_id(sound: Path) -> None:
    with closing(sqlite3.connect(sound / "zq.db", isolation_level=None)) as connection:
        last = "(SELECT max(topic) FROM (SELECT key >> 41 AS topic FROM topic_jobs))"
        connection.execute(f"UPDATE topics SET config = '[' WHERE id = {last}")
        connection.execute(f"DELETE FROM topics WHERE id > {last}")
    site = Site(sound, SETTINGS)
    await site.start()
    async with Client(site, JSON) as client:
        for method, path, doc in REQUESTS:
            if path == "/v0/topics/near":
                reply = await client.call(method, path, doc)
                assert reply.status < 300, reply.doc
    await site.stop()
    assert "topics" in set_aside(sound)
