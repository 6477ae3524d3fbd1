"""Finds the rows whose texts are not the ones that were stored, for checks and salvages."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from zq.model.checksums import checksum, checksum_of_all, job_checksum, record_checksum
from zq.model.job import Extras
from zq.store.sqlite.queries import load

QUERIES = load(__name__)

UnfitRow = tuple[str, Any]
"""The source and the key of a row, as `quarantine.set_aside` takes them."""


def unfit_rows(connection: sqlite3.Connection) -> Iterator[UnfitRow]:
    """Visit every row that has a checksum, and yield those that it does not fit."""
    for name, (source, keys, checksum_of) in _TABLES.items():
        for row in connection.execute(QUERIES[name]):
            *texts, stored = row[keys:]
            if not _is_sound(checksum_of, texts, stored):
                key = row[:keys] if source == "cron_entries" else row[0]
                yield source, key


def _is_sound(checksum_of: Callable[..., int], texts: list[bytes | None], stored: int) -> bool:
    try:
        return checksum_of(*[None if text is None else text.decode() for text in texts]) == stored
    except (UnicodeDecodeError, msgspec.MsgspecError):
        return False


def _of_job(type: str, payload: str | None, extras: str | None) -> int:
    carried = None if extras is None else msgspec.json.decode(extras, type=Extras)
    return job_checksum(type, payload, carried)


_TABLES: dict[str, tuple[str, int, Callable[..., int]]] = {
    "jobs": ("jobs", 1, _of_job),
    "ended": ("jobs", 1, checksum),
    "payloads": ("jobs", 1, checksum),
    "results": ("jobs", 1, checksum),
    "errors": ("errors", 2, checksum_of_all),
    "topic_records": ("topic_records", 1, record_checksum),
    "cron_entries": ("cron_entries", 2, checksum),
}
"""By query: the source that is set aside, how many columns its key has, and its checksum."""
