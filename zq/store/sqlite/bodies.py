"""Reads the payloads and results that are stored apart from their jobs."""

import sqlite3
from collections.abc import Sequence

from zq.model.checksums import fits
from zq.store.api import as_json
from zq.store.sqlite.connection import is_corrupt
from zq.store.sqlite.quarantine import ON_PAGE, UnreadableRows, is_unreadable
from zq.store.sqlite.queries import load

QUERIES = load("zq.store.sqlite.lookups")


def is_on_bad_page(connection: sqlite3.Connection, sql: str, keys: str) -> bool:
    """True if a query for the rows of some keys meets a page that cannot be read."""
    try:
        connection.execute(sql, {"keys": keys}).fetchall()
    except sqlite3.DatabaseError as error:
        return is_corrupt(error)
    return False


def read_bodies(connection: sqlite3.Connection, name: str, keys: Sequence[int]) -> dict[int, str]:
    """Large `payloads` or `results` by key. Deleted jobs are missing."""
    try:
        return _fitting(connection, name, keys)
    except sqlite3.DatabaseError as error:
        if not is_unreadable(error):
            raise
        if not is_corrupt(error):
            raise UnreadableRows("jobs", keys) from None
    bad = [key for key in keys if is_on_bad_page(connection, QUERIES[name], as_json([key]))]
    if left := _existing(connection, bad):
        raise UnreadableRows(f"{ON_PAGE}{name}", left)
    return _fitting(connection, name, [key for key in keys if key not in set(bad)])


def _fitting(connection: sqlite3.Connection, name: str, keys: Sequence[int]) -> dict[int, str]:
    """Bodies by key. Raises `UnreadableRows` if some are not what was stored."""
    rows = connection.execute(QUERIES[name], {"keys": as_json(keys)}).fetchall()
    found = {key: body for key, body, stored in rows if fits(body, stored)}
    if len(found) < len(rows):
        bad = [key for key, _, _ in rows if key not in found]
        if left := _existing(connection, bad):
            raise UnreadableRows("jobs", left)
    return found


def _existing(connection: sqlite3.Connection, keys: Sequence[int]) -> list[int]:
    """The jobs, among some, that still exist. What lies beside one that has gone interests
    nobody."""
    some = {"keys": as_json(keys)}
    return [key for (key,) in connection.execute(QUERIES["existing"], some)]
