"""The identity of a database: the name of its history, and the suffix of its ids."""

import secrets
import sqlite3
from collections.abc import Sequence

import msgspec

from zq.model.ids import ALPHABET, SUFFIX_LENGTH, FormerSuffix, IdCodec, codec_of
from zq.store.api import as_json
from zq.store.sqlite.queries import load

QUERIES = load("zq.store.sqlite.upkeep")


def new_identity() -> dict[str, str]:
    """Make an identity that no other database has."""
    return {
        "epoch": secrets.token_hex(16),
        "id_suffix": "".join(secrets.choice(ALPHABET) for _ in range(SUFFIX_LENGTH)),
    }


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
    meta = dict(connection.execute(QUERIES["read_meta"]))
    highest: int = connection.execute(QUERIES["highest_key"]).fetchone()[0]
    last = FormerSuffix(max(meta["high_water"], highest), meta["id_suffix"])
    former = [*read_former_suffixes(connection), last]
    changed: dict[str, object] = {
        **new_identity(),
        "high_water": last.last_key,
        "former_suffixes": as_json(former),
    }
    for name, value in changed.items():
        connection.execute(QUERIES["rewrite_meta"], {"name": name, "value": value})
