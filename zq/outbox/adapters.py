"""Connections of other libraries: how each executes a statement within its own transaction.

A connection is recognised by the library of its class, so no library is imported that the caller
does not use.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from zq.client.errors import InvalidOption
from zq.outbox.table import HOW_TO_CREATE, Dialect, dialect_named, insert, statements

Execute = Callable[[Any, str, str | None], Any]
"""Takes a connection, a statement and its parameter, if it has one."""


@dataclass(frozen=True)
class Adapter:
    """One library. Where its connections are asynchronous, `execute` returns an awaitable."""

    placeholder: str
    execute: Execute
    dialect: Callable[[Any], Dialect]
    is_async: bool = False

    def write(self, connection: Any, documents: str) -> Awaitable[None] | None:
        """Write rows. `documents` is a JSON list."""
        statement = insert(self.dialect(connection), self.placeholder)
        return self._run(connection, [(statement, documents)])

    def create(self, connection: Any) -> Awaitable[None] | None:
        """Create the tables."""
        return self._run(
            connection, [(each, None) for each in statements(self.dialect(connection))]
        )

    def _run(self, connection: Any, work: list[tuple[str, str | None]]) -> Awaitable[None] | None:
        if self.is_async:
            return self._run_async(connection, work)
        with _explained():
            for statement, parameter in work:
                self.execute(connection, statement, parameter)
        return None

    async def _run_async(self, connection: Any, work: list[tuple[str, str | None]]) -> None:
        with _explained():
            for statement, parameter in work:
                await self.execute(connection, statement, parameter)


@contextmanager
def _explained() -> Iterator[None]:
    """Note on the library's own error what to do if the table is missing."""
    try:
        yield
    except Exception as error:
        if any(f"{words}zq_outbox" in str(error) for words in ("no such table: ", 'relation "')):
            error.add_note(f"The outbox has no table in this database: {HOW_TO_CREATE}.")
        raise


def adapter_of(connection: object) -> Adapter:
    """The adapter for a connection. Raises `InvalidOption`."""
    for kind in type(connection).__mro__:
        library = kind.__module__.partition(".")[0]
        found = _ADAPTERS.get((library, kind.__name__))
        if found is not None:
            return found
    raise InvalidOption(
        f"a {type(connection).__module__}.{type(connection).__qualname__} is no connection that the"
        " outbox knows: give it one of sqlite3, aiosqlite, psycopg 3, asyncpg, SQLAlchemy 2 or"
        " Django"
    )


def _plainly(connection: Any, statement: str, parameter: str | None) -> Any:
    return connection.execute(statement, *(() if parameter is None else ((parameter,),)))


def _spread(connection: Any, statement: str, parameter: str | None) -> Any:
    return connection.execute(statement, *(() if parameter is None else (parameter,)))


def _by_text(connection: Any, statement: str, parameter: str | None) -> Any:
    from sqlalchemy import text

    return connection.execute(text(statement), {"documents": parameter} if parameter else {})


def _by_cursor(connection: Any, statement: str, parameter: str | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, None if parameter is None else [parameter])


def _by_session(session: Any, statement: str, parameter: str | None) -> Any:
    connection = session.connection(bind_arguments={"bind": _bind_of(session)})
    return _by_text(connection, statement, parameter)


async def _by_async_session(session: Any, statement: str, parameter: str | None) -> Any:
    connection = await session.connection(bind_arguments={"bind": _bind_of(session)})
    return await _by_text(connection, statement, parameter)


def _bound(session: Any) -> Dialect:
    return dialect_named(_bind_of(session).dialect.name)


def _bind_of(session: Any) -> Any:
    """The engine to which a session writes. Raises `InvalidOption` if that is not decided."""
    from sqlalchemy import table, update
    from sqlalchemy.exc import UnboundExecutionError

    try:
        # A change, so that a session that reads from copies goes to where it writes.
        return session.get_bind(clause=update(table("zq_outbox")))
    except UnboundExecutionError:
        pass
    if hasattr(session, "registry"):
        session = session()
    session = getattr(session, "sync_session", session)
    # It has an engine for each class: that of its objects, or the only one there is.
    binds = {session.get_bind(type(each)) for each in session}
    if not binds:
        # SQLAlchemy 2.1 has them under their name, 2.0 under a mangled one.
        known = vars(session)
        binds = set(known.get("binds", known.get("_Session__binds", {})).values())
    if len(binds) != 1:
        raise InvalidOption(
            "the session has several databases: give the connection of the one that has the outbox,"
            ' session.connection(bind_arguments={"mapper": …})'
        )
    return binds.pop()


_SQLITE3 = Adapter("?", _plainly, lambda _: "sqlite")
_AIOSQLITE = Adapter("?", _plainly, lambda _: "sqlite", is_async=True)
_PSYCOPG = Adapter("%s", _plainly, lambda _: "postgresql")
_PSYCOPG_ASYNC = Adapter("%s", _plainly, lambda _: "postgresql", is_async=True)
_ASYNCPG = Adapter("$1", _spread, lambda _: "postgresql", is_async=True)
_ENGINE = Adapter(":documents", _by_text, lambda each: dialect_named(each.dialect.name))
_ENGINE_ASYNC = Adapter(":documents", _by_text, _ENGINE.dialect, is_async=True)
_SESSION = Adapter(":documents", _by_session, _bound)
_SESSION_ASYNC = Adapter(":documents", _by_async_session, _bound, is_async=True)
_DJANGO = Adapter("%s", _by_cursor, lambda connection: dialect_named(connection.vendor))

_ADAPTERS = {
    ("sqlite3", "Connection"): _SQLITE3,
    ("aiosqlite", "Connection"): _AIOSQLITE,
    ("psycopg", "Connection"): _PSYCOPG,
    ("psycopg", "AsyncConnection"): _PSYCOPG_ASYNC,
    ("asyncpg", "Connection"): _ASYNCPG,
    ("asyncpg", "PoolConnectionProxy"): _ASYNCPG,
    ("sqlalchemy", "Connection"): _ENGINE,
    ("sqlalchemy", "AsyncConnection"): _ENGINE_ASYNC,
    ("sqlalchemy", "Session"): _SESSION,
    ("sqlalchemy", "scoped_session"): _SESSION,
    ("sqlalchemy", "AsyncSession"): _SESSION_ASYNC,
    ("sqlalchemy", "async_scoped_session"): _SESSION_ASYNC,
    ("django", "BaseDatabaseWrapper"): _DJANGO,
    ("django", "ConnectionProxy"): _DJANGO,
}
"""By the library and the name of a class."""
