"""Reads and changes the identity of a database."""

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from zq.model.ids import FormerSuffix, IdCodec, codec_of
from zq.store.identity import renewed
from zq.store.sqlite.queries import load

QUERIES = load("zq.store.sqlite.upkeep")


def read_former_suffixes(connection: sqlite3.Connection) -> Sequence[FormerSuffix]:
    """The suffixes of ids from before the database was restored, the oldest first."""
    former = dict(connection.execute(QUERIES["read_meta"])).get("former_suffixes", "[]")
    return msgspec.json.decode(former, type=list[FormerSuffix])


def codec_in(connection: sqlite3.Connection) -> IdCodec:
    """The codec of the ids in a database."""
    meta = dict(connection.execute(QUERIES["read_meta"]))
    return codec_of(meta["id_suffix"], read_former_suffixes(connection))


def renew_identity(connection: sqlite3.Connection) -> None:
    """Give a database a new identity, in a transaction. Its jobs keep their ids."""
    meta = {name: str(value) for name, value in connection.execute(QUERIES["read_meta"])}
    highest: int = connection.execute(QUERIES["highest_key"]).fetchone()[0]
    rewrite_meta(connection, renewed(meta, highest))


def rewrite_meta(connection: sqlite3.Connection, values: Mapping[str, str]) -> None:
    """Store what a database says of itself, in a transaction."""
    for name, value in values.items():
        # The one number among texts.
        stored = int(value) if name == "high_water" else value
        connection.execute(QUERIES["rewrite_meta"], {"name": name, "value": stored})
