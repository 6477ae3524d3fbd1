"""How the reads of a store on PostgreSQL are made."""

from functools import cache, partial

from zq.rooms import parts
from zq.store.postgres.queries import load
from zq.store.postgres.readers import PostgresLanes
from zq.store.postgres.snapshot import CORE, PostgresSnapshot
from zq.store.reads import StoredReads
from zq.store.snapshot import MakeReads, reads_by


@cache
def reads_of_rooms() -> dict[type, MakeReads]:
    """How the reads of each room are made, by the class that says what they are."""
    shared = parts("store", "READS", tuple)
    own = parts("postgres_reads", "READS", dict)
    return reads_by("postgres", shared, own, load, PostgresSnapshot)


def make_reads(lanes: PostgresLanes) -> StoredReads:
    """The reads by the lanes of a store."""
    return StoredReads(lanes, partial(PostgresSnapshot, CORE), reads_of_rooms)
