"""What may be read of fair keys, whichever the store is."""

from typing import NamedTuple

from zq.features.fair.model import FairKeyState, FairLimit, FairOrder
from zq.store.api import Recovery
from zq.store.snapshot import Snapshot, SnapshotLanes


class FairSums(NamedTuple):
    """The keys of a queue with unfinished jobs, and the jobs of all keys together."""

    keys: int
    waiting: int
    in_flight: int
    weights: float
    """The sum of the weights of the keys that have waiting jobs."""


class KeyOfQueue(NamedTuple):
    """A key and its queue. `oldest_ready` is in milliseconds since the epoch."""

    queue: str
    key: str
    waiting: int
    oldest_ready: int


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


class FairReads:
    """The reads of fair keys."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def keys(self, queue: str, order: FairOrder, skip: int, limit: int) -> list[FairKeyState]:
        """Up to `limit` keys of a queue with unfinished jobs, in this order, without the first."""
        return await self._lanes.scans(_keys, queue, order, skip, limit)

    async def key(self, queue: str, key: str) -> tuple[FairKeyState | None, FairLimit | None]:
        """One key, as far as it has unfinished jobs, and what is set for it."""
        return await self._lanes.looks(_key, queue, key)

    async def limits(self, queue: str, keys: list[str]) -> dict[str, FairLimit]:
        """The weights and the limits that are set for some keys of a queue."""
        return await self._lanes.looks(_limits, queue, keys)

    async def tally(self) -> dict[str, int]:
        """For how many keys something is set, by queue."""
        return await self._lanes.scans(_tally)

    async def sums(self, queue: str) -> FairSums:
        """The keys of a queue together, up to a number of them."""
        return await self._lanes.scans(_sums, queue)

    async def longest_waiting(self, limit: int) -> list[KeyOfQueue]:
        """The keys of all queues whose first job waits for the longest time."""
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


READS = (FairReads,)

RECOVERY = Recovery(
    begin=("open_every_key",),
    returned=("return_shares", "place_returned"),
    lost=(
        *("make_lost_shares", "make_lost_shared_queues"),
        *("count_shares", "count_shared_queues"),
    ),
)
"""Jobs that were given back wait again, and are charged with nothing."""
