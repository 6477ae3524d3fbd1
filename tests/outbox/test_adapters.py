"""The outbox on the connections of each library, in the caller's transaction."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import zq
from zq import outbox
from zq.client.app import App

from .conftest import Database, Mail
from .postgres import the_server

Transaction = Callable[[str], AbstractAsyncContextManager[Any]]
"""Opens a connection at an address, and commits at the end of the block unless it raises."""


@asynccontextmanager
async def by_aiosqlite(url: str) -> AsyncIterator[Any]:
    async with aiosqlite.connect(url.removeprefix("sqlite://")) as connection:
        yield connection
        await connection.commit()


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[Any]:
    with psycopg.connect(url) as connection:
        yield connection


@asynccontextmanager
async def by_psycopg_async(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def by_pool_of_asyncpg(url: str) -> AsyncIterator[Any]:
    async with (
        asyncpg.create_pool(url, min_size=1) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        yield connection


@asynccontextmanager
async def by_engine(url: str) -> AsyncIterator[Any]:
    engine = sqlalchemy.create_engine(_named(url, "psycopg"))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@asynccontextmanager
async def by_session(url: str) -> AsyncIterator[Any]:
    engine = sqlalchemy.create_engine(_named(url, "psycopg"))
    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@asynccontextmanager
async def by_async_engine(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(_named(url, "asyncpg", "+aiosqlite"))
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_async_session(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(_named(url, "asyncpg", "+aiosqlite"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


def _named(url: str, driver: str, lite: str = "") -> str:
    """The address as SQLAlchemy writes it, with a driver."""
    if url.startswith("sqlite:"):
        return url.replace("sqlite:///", f"sqlite{lite}:////")
    return url.replace("postgresql:", f"postgresql+{driver}:")


WAYS: list[tuple[str, Transaction]] = [
    ("sqlite", by_aiosqlite),
    ("postgresql", by_psycopg),
    ("postgresql", by_psycopg_async),
    ("postgresql", by_asyncpg),
    ("postgresql", by_pool_of_asyncpg),
    *((kind, way) for kind in ("sqlite", "postgresql") for way in (by_engine, by_session)),
    ("sqlite", by_async_engine),
    ("sqlite", by_async_session),
    ("postgresql", by_async_engine),
    ("postgresql", by_async_session),
]


async def settled(written: Awaitable[None] | None) -> None:
    if written is not None:
        await written


@pytest.mark.parametrize(
    ("kind", "transaction"), WAYS, ids=[f"{kind}-{way.__name__}" for kind, way in WAYS]
)
async def test_a_row_is_written_in_the_transaction_of_the_connection(
    zq_app: App, database: Database, transaction: Transaction
) -> None:
    @zq_app.task(queue="mail")
    async def mail(n: int, *, text: str = "") -> None: ...

    async with transaction(database.url) as connection:
        await settled(outbox.create_table(connection))
        await settled(outbox.enqueue(connection, mail, 1, text="a 'b' \\ % :c \0 š"))
        await settled(outbox.enqueue_many(connection, mail, [mail.args(2), mail.args(3)]))
        assert database.left == 0
    with pytest.raises(ZeroDivisionError):
        async with transaction(database.url) as connection:
            await settled(outbox.enqueue(connection, mail, 4))
            raise ZeroDivisionError

    await outbox.Relay(zq_app, database.url).run_until_empty()

    jobs = (await zq_app.backend.jobs()).jobs
    assert [job.payload["args"] for job in jobs] == [[1], [2], [3]]
    assert jobs[0].payload["kwargs"] == {"text": "a 'b' \\ % :c \0 š"}


def test_a_connection_of_a_class_of_the_callers_own_is_recognised(zq_embedded: App) -> None:
    class Traced(sqlite3.Connection):
        pass

    @zq_embedded.task
    def work(n: int) -> None: ...

    connection = sqlite3.connect(":memory:", factory=Traced)
    outbox.create_table(connection)
    outbox.enqueue(connection, work, 1)

    (row,) = connection.execute("SELECT document FROM zq_outbox")
    assert '"args":[1]' in row[0]
    connection.close()


def test_what_the_outbox_cannot_take_is_refused(zq_embedded: App) -> None:
    @zq_embedded.task
    def work(n: int) -> None: ...

    connection = sqlite3.connect(":memory:")
    outbox.create_table(connection)
    with pytest.raises(zq.InvalidOption, match="no connection that the outbox knows"):
        outbox.enqueue(connection.cursor(), work, 1)
    with pytest.raises(zq.InvalidOption, match="jobs that fold cannot be"):
        outbox.enqueue(connection, work.options(batch=zq.Batch("k", ".", ".")), 1)
    with pytest.raises(TypeError, match="too many positional arguments"):
        outbox.enqueue(connection, work, 1, 2)  # type: ignore[call-overload]
    something: Any = work.function
    with pytest.raises(zq.InvalidOption, match=r"work.* is neither a task nor a queue: write"):
        outbox.enqueue(connection, something, 1)
    with pytest.raises(zq.InvalidOption, match="is neither a task nor a queue"):
        outbox.enqueue_many(connection, something, [work.args(1)])
    something = [(1,)]
    with pytest.raises(zq.InvalidOption, match=r"^\(1,\) is not a call of the task"):
        outbox.enqueue_many(connection, work, something)
    with pytest.raises(zq.InvalidOption, match=r"is not a zq.App: write outbox.Relay\(app"):
        outbox.Relay("sqlite:shop.db", something)  # type: ignore[arg-type]
    assert connection.execute("SELECT count(*) FROM zq_outbox").fetchone() == (0,)
    connection.close()


async def test_a_missing_table_is_noted_on_the_error_of_the_library(zq_embedded: App) -> None:
    @zq_embedded.task
    def work(n: int) -> None: ...

    plain = sqlite3.connect(":memory:")
    with pytest.raises(sqlite3.OperationalError) as failure:
        outbox.enqueue(plain, work, 1)
    plain.close()
    async with await psycopg.AsyncConnection.connect(the_server().new_database()) as other:
        with pytest.raises(psycopg.errors.UndefinedTable) as later:
            await outbox.enqueue(other, work, 1)

    for note in (failure.value.__notes__, later.value.__notes__):
        assert "create it by outbox.create_table(connection)" in note[0]
        assert "manage.py migrate" in note[0]


class Base(DeclarativeBase):
    """The classes of a program."""


class Order(Base):
    """What the program writes beside its jobs."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)


class Visit(Base):
    """What lies in another database."""

    __tablename__ = "visits"
    id: Mapped[int] = mapped_column(primary_key=True)


class Routing(Session):
    """Reads from a copy, and writes to the leader."""

    def get_bind(self, mapper: Any = None, clause: Any = None, **_: Any) -> Any:
        writes = self._flushing or isinstance(clause, sqlalchemy.Update | sqlalchemy.Delete)
        return self.info["leader" if writes else "copy"]


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[list[sqlalchemy.Engine]]:
    """Two databases. The first has the outbox."""
    made = [sqlalchemy.create_engine(f"sqlite:///{tmp_path / name}") for name in ("a", "b")]
    for engine in made:
        Base.metadata.create_all(engine)
    with made[0].begin() as connection:
        outbox.create_table(connection)
    yield made
    for engine in made:
        engine.dispose()


@pytest.mark.parametrize("kind", ["one", "object", "routing"])
def test_a_session_of_several_databases_writes_where_its_objects_are(
    mail: Mail, engines: list[sqlalchemy.Engine], kind: str
) -> None:
    session = Session(binds={Order: engines[0]})
    if kind == "object":
        session = Session(binds={Order: engines[0], Visit: engines[1]})
    if kind == "routing":
        session = Routing(info={"leader": engines[0], "copy": engines[1]})
    with session, session.begin():
        if kind != "one":
            session.add(Order(id=1))
        outbox.enqueue(session, mail, 1)
    with engines[0].connect() as connection:
        rows = connection.execute(sqlalchemy.text("SELECT document FROM zq_outbox")).all()
    assert len(rows) == 1


def test_a_session_in_which_the_database_is_not_decided_is_told_what_to_give(
    mail: Mail, engines: list[sqlalchemy.Engine]
) -> None:
    with Session(binds={Order: engines[0], Visit: engines[1]}) as session, session.begin():
        with pytest.raises(zq.InvalidOption, match=r"session\.connection\(bind_arguments="):
            outbox.enqueue(session, mail, 1)
        outbox.enqueue(session.connection(bind_arguments={"mapper": Order}), mail, 1)


async def test_an_async_session_with_an_engine_for_each_class(mail: Mail, tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'a'}")
    async with AsyncSession(binds={Order: engine}) as session, session.begin():
        await outbox.create_table(session)
        await outbox.enqueue(session, mail, 1)
    async with engine.connect() as connection:
        rows = (await connection.execute(sqlalchemy.text("SELECT * FROM zq_outbox"))).all()
    assert len(rows) == 1
    await engine.dispose()
