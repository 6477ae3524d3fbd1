"""The reads of fair keys."""

from zq.features.fair.model import FairKeyState, FairLimit, FairOrder
from zq.features.fair.store import FairReads, FairSums, KeyOfQueue
from zq.store.snapshot import Snapshot, SnapshotLanes

MOST_SUMMED = 10_000
"""The most keys of a queue that are counted. With more, the sums are those of so many."""

MOST_LINES = 5_000
"""The most lines among which those are found that wait longest, and as many of keys at a limit."""

MOST_SORTED = 5_000
"""A page sorts the keys of so many lines, which an index finds, and so many others. That takes some
60 ms. A queue with fewer keys is sorted as a whole."""

_ORDERS = {
    FairOrder.SHARE: ("first_by_turn", "waiting = 0, finish, oldest IS NOT NULL, oldest"),
    FairOrder.WAIT: ("first_by_age", "oldest IS NULL, oldest"),
    FairOrder.DEPTH: ("first_by_age", "waiting DESC, s.fair_key"),
}


class StoredFairReads(FairReads):
    """The reads of fair keys by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def keys(self, queue: str, order: FairOrder, skip: int, limit: int) -> list[FairKeyState]:
        return await self._lanes.scans(_keys, queue, order, skip, limit)

    async def key(self, queue: str, key: str) -> tuple[FairKeyState | None, FairLimit | None]:
        return await self._lanes.looks(_key, queue, key)

    async def limits(self, queue: str, keys: list[str]) -> dict[str, FairLimit]:
        return await self._lanes.looks(_limits, queue, keys)

    async def tally(self) -> dict[str, int]:
        return await self._lanes.scans(_tally)

    async def sums(self, queue: str) -> FairSums:
        return await self._lanes.scans(_sums, queue)

    async def longest_waiting(self, limit: int) -> list[KeyOfQueue]:
        return await self._lanes.views(_longest_waiting, limit)


def _keys(
    snapshot: Snapshot,
    queue: str,
    order: FairOrder,
    skip: int,
    limit: int,
) -> list[FairKeyState]:
    some, ordered = _ORDERS[order]
    names = {"queue": queue, "most": MOST_SORTED, "skip": skip, "limit": limit}
    return _states_of(snapshot, some, ordered, names)


def _states_of(
    snapshot: Snapshot, some: str, ordered: str, names: dict[str, object]
) -> list[FairKeyState]:
    words = {"SOME": snapshot.text(some), "ORDERED": ordered}
    return [FairKeyState(*row) for row in snapshot.rows("keys", words, **names)]


def _key(snapshot: Snapshot, queue: str, key: str) -> tuple[FairKeyState | None, FairLimit | None]:
    names = {"queue": queue, "key": key, "skip": 0, "limit": 1}
    found = _states_of(snapshot, "one", "s.fair_key", names)
    return found[0] if found else None, _limits(snapshot, queue, [key]).get(key)


def _limits(snapshot: Snapshot, queue: str, keys: list[str]) -> dict[str, FairLimit]:
    found = snapshot.rows("limits", queue=queue, keys=keys)
    return {key: FairLimit(*set) for key, *set in found}


def _tally(snapshot: Snapshot) -> dict[str, int]:
    return dict(snapshot.rows("tally"))


def _sums(snapshot: Snapshot, queue: str) -> FairSums:
    (row,) = snapshot.rows("sums", queue=queue, most=MOST_SUMMED)
    return FairSums(*row)


def _longest_waiting(snapshot: Snapshot, limit: int) -> list[KeyOfQueue]:
    found = snapshot.rows("longest_waiting", limit=limit, most=MOST_LINES)
    return [KeyOfQueue(*row) for row in found]


READS = {FairReads: StoredFairReads}
