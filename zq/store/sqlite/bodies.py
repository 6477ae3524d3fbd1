"""Reads the payloads and results that are stored apart from their jobs."""

import sqlite3
from collections.abc import Sequence

from zq.model.checksums import fits
from zq.store.api import as_json
from zq.store.sqlite.connection import is_corrupt
from zq.store.sqlite.quarantine import ON_PAGE, UnreadableRows, is_unreadable
from zq.store.sqlite.queries import load

QUERIES = load("zq.store.sqlite.lookups")


def payloads(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, str]:
    """Large payloads by key. Deleted jobs are missing."""
    return _bodies(connection, "payloads", keys)


def results(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, str]:
    """Large results by key. Deleted jobs are missing."""
    return _bodies(connection, "results", keys)


def complete(bodies: dict[int, str], keys: Sequence[int]) -> dict[int, str]:
    """Check that every job has its body. Raises `UnreadableRows`."""
    if missing := [key for key in keys if key not in bodies]:
        raise UnreadableRows("jobs", missing)
    return bodies


def is_on_bad_page(connection: sqlite3.Connection, sql: str, keys: str) -> bool:
    try:
        connection.execute(sql, {"keys": keys}).fetchall()
    except sqlite3.DatabaseError as error:
        return is_corrupt(error)
    return False


def _bodies(connection: sqlite3.Connection, name: str, keys: Sequence[int]) -> dict[int, str]:
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
