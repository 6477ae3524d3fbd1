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


@pytest.fixture
async def sound(tmp_path: Path) -> Path:
    """The directory of a server that has ended."""
    site = Site(tmp_path / "sound", SETTINGS)
    await site.start()
    async with Client(site, JSON) as client:
        await furnish(client)
    await site.stop()
    return site.root


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
        if flips == "no text":
            assert told and told["rows"] >= len(texts)
            assert texts <= set_aside(root)
