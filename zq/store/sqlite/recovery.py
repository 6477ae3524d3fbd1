"""What a start does for rooms, and what it finds."""

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache

from zq.rooms import parts
from zq.store.api import Recovery
from zq.store.sqlite.transaction import QUERIES


@cache
def recoveries() -> list[Recovery]:
    """The parts of all rooms in a start."""
    return parts("store", "RECOVERY", Recovery)


def run_all(
    connection: sqlite3.Connection, names: Sequence[str], parameters: Mapping[str, object] = {}
) -> None:
    """Run statements of the tick, one after the other."""
    for name in names:
        connection.execute(QUERIES[name], parameters)
