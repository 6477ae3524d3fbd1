"""Sets aside entries whose jobs cannot be read."""

import sqlite3
from collections.abc import Iterator

import msgspec

from zq.features.crons.model import Template
from zq.model.checksums import check_text, checksum
from zq.model.effects import Misfit
from zq.store.sqlite.checksums import CheckedTable
from zq.store.sqlite.quarantine import move, reason_of
from zq.store.sqlite.queries import load

QUERIES = load(__name__)


def _entry(connection: sqlite3.Connection, key: tuple[str, str], now: int) -> Iterator[Misfit]:
    place: dict[str, object] = {"cron": key[0], "name": key[1]}
    try:
        for text, stored in connection.execute(QUERIES["cron"], place):
            check_text("its job", text, stored)
            msgspec.json.decode(text, type=Template)
    except Exception as error:
        yield move(connection, "cron_entries", place, reason_of("its job", error), now)


ASIDE = {"cron_entries": _entry}

CHECKED = CheckedTable("cron_entries", QUERIES["cron_entries"], checksum, columns=2, key=2)
