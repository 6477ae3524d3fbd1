"""Databases with an outbox, of both kinds."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from zq import outbox
from zq.client.app import App
from zq.client.task import AsyncTask

from .postgres import the_server

Mail = AsyncTask[[int], None]


@dataclass(frozen=True)
class Database:
    """A database of the caller, with the table."""

    kind: str
    url: str

    def connect(self) -> Any:
        """A connection of the caller's: of sqlite3, or of psycopg."""
        if self.kind == "postgresql":
            return psycopg.connect(self.url)
        connection = sqlite3.connect(self.url.removeprefix("sqlite://"))
        connection.execute("PRAGMA journal_mode=WAL")
        return connection

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        connection = self.connect()
        try:
            found: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
            return found
        finally:
            connection.close()

    @property
    def left(self) -> int:
        """The number of rows that the relay has not moved."""
        return int(self.fetch("SELECT count(*) FROM zq_outbox")[0][0])


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(kind: str, tmp_path: Path) -> Database:
    """A new database of each kind."""
    if kind == "postgresql":
        url = the_server().new_database()
    else:
        url = f"sqlite://{tmp_path / 'shop.db'}"
    made = Database(kind, url)
    connection = made.connect()
    outbox.create_table(connection)
    outbox.create_table(connection)  # it may be repeated
    connection.commit()
    connection.close()
    return made


@pytest.fixture
def connection(database: Database) -> Iterator[Any]:
    connection = database.connect()
    yield connection
    connection.close()


@pytest.fixture
def mail(zq_app: App) -> Mail:
    @zq_app.task(queue="mail")
    async def mail(n: int) -> None: ...

    return mail
