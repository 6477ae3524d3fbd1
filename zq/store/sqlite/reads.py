"""How the reads of a SQLite store are made."""

from functools import cache, partial

from zq.rooms import parts
from zq.store.reads import StoredReads
from zq.store.snapshot import MakeReads, reads_by
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.queries import load
from zq.store.sqlite.snapshot import CORE, SqliteSnapshot


@cache
def reads_of_rooms() -> dict[type, MakeReads]:
    """How the reads of each room are made, by the class that says what they are."""
    shared = parts("store", "READS", tuple)
    own = parts("sqlite_reads", "READS", dict)
    return reads_by("sqlite", shared, own, load, SqliteSnapshot)


def make_reads(lanes: ReadLanes) -> StoredReads:
    """The reads by the lanes of a pool."""
    return StoredReads(lanes, partial(SqliteSnapshot, CORE), reads_of_rooms)
