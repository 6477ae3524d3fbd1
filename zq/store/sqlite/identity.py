"""Reads and changes the identity of a database."""

import sqlite3
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from zq.model.ids import ALPHABET, SUFFIX_LENGTH, FormerSuffix, IdCodec, codec_of
from zq.store.identity import former_in, renewed
from zq.store.sqlite.queries import load

QUERIES = load("zq.store.sqlite.upkeep")

_NEEDED: Mapping[str, Any] = {
    "epoch": str,
    "id_suffix": Annotated[str, Meta(pattern=f"^[{ALPHABET}]{{{SUFFIX_LENGTH}}}$")],
    "high_water": Annotated[int, Meta(ge=0)],
}
"""What no start can do without, and its type."""


def read_meta(connection: sqlite3.Connection) -> dict[str, Any]:
    """What a database says of itself, by name."""
    return dict(connection.execute(QUERIES["read_meta"]))


def check_meta(name: str, value: object) -> None:
    """Raise `msgspec.MsgspecError` if a row of `meta` holds something else than it should."""
    if kind := _NEEDED.get(name):
        msgspec.convert(value, type=kind)
    elif name == "former_suffixes":
        msgspec.json.decode(msgspec.convert(value, type=str), type=list[FormerSuffix])


def lost_in(meta: Mapping[str, object]) -> str | None:
    """The finding that a row is missing or wrong which no start can do without; None if none is."""
    for name in _NEEDED:
        try:
            check_meta(name, meta.get(name))
        except msgspec.MsgspecError:
            return f"it has lost its {name}"
    return None


def codec_in(connection: sqlite3.Connection) -> IdCodec:
    """The codec of the ids in a database."""
    meta = read_meta(connection)
    return codec_of(meta["id_suffix"], former_in(meta))


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
