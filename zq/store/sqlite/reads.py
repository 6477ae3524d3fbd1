"""How the reads of a SQLite store are made."""

from functools import cache, partial

from zq.model.clock import SteadyClock
from zq.rooms import parts
from zq.store.dates import Dates
from zq.store.reads import StoredReads
from zq.store.snapshot import MakeReads, reads_by
from zq.store.sqlite.queries import load
from zq.store.sqlite.readers import ReaderPool
from zq.store.sqlite.snapshot import CORE, SqliteSnapshot


class ReadLanes(Dates):
    """The lanes of a pool. A read uses the one in which it delays no shorter read."""

    def __init__(self, pool: ReaderPool, steady: SteadyClock) -> None:
        super().__init__(steady)
        self.looks = pool.looks.read
        self.scans = pool.scans.read
        self.sweeps = pool.sweeps.read
        self.deliveries = pool.deliveries.read
        self.views = pool.views.read
        self.pages = pool.topics.read
        self.followers = pool.followers.read


@cache
def reads_of_rooms() -> dict[type, MakeReads]:
    """How the reads of each room are made, by the class that says what they are."""
    shared = parts("store", "READS", tuple)
    own = parts("sqlite_reads", "READS", dict)
    return reads_by("sqlite", shared, own, load, SqliteSnapshot)


def make_reads(lanes: ReadLanes) -> StoredReads:
    """The reads by the lanes of a pool."""
    return StoredReads(lanes, partial(SqliteSnapshot, CORE), reads_of_rooms)
