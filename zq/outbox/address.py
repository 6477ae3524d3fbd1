"""Addresses of databases with an outbox."""

from zq.client.errors import InvalidOption
from zq.outbox.source import Source
from zq.outbox.table import Dialect


def source_at(url: str) -> Source:
    """The source for an address. Nothing is opened yet. Raises `InvalidOption`."""
    rest = url.partition(":")[2]
    if dialect_of(url) == "postgresql":
        from zq.outbox.postgres import PostgresSource

        return PostgresSource(f"postgresql:{rest}")
    from zq.outbox.sqlite import SqliteSource

    path = rest.removeprefix("//")
    # Other libraries write an absolute path behind three slashes, so that there are four.
    return SqliteSource(f"/{path.lstrip('/')}" if path.startswith("/") else path)


def dialect_of(url: str) -> Dialect:
    """The dialect of the database at an address. Raises `InvalidOption`."""
    scheme, colon, _ = url.partition(":")
    scheme = scheme.partition("+")[0]  # SQLAlchemy's addresses name a driver there
    if colon and scheme in ("postgresql", "postgres"):
        return "postgresql"
    if colon and scheme == "sqlite":
        return "sqlite"
    raise InvalidOption(
        f"{url!r} is not the address of a database: write postgresql://user@host/name, or"
        " sqlite:///path/of/the/file"
    )
