"""What may be read of fair keys, whichever the store is."""

from typing import NamedTuple, Protocol

from zq.features.fair.model import FairKeyState, FairLimit, FairOrder
from zq.store.api import Recovery


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


class FairReads(Protocol):
    """The reads of fair keys."""

    async def keys(self, queue: str, order: FairOrder, skip: int, limit: int) -> list[FairKeyState]:
        """Up to `limit` keys of a queue with unfinished jobs, in this order, without the first."""

    async def key(self, queue: str, key: str) -> tuple[FairKeyState | None, FairLimit | None]:
        """One key, as far as it has unfinished jobs, and what is set for it."""

    async def limits(self, queue: str, keys: list[str]) -> dict[str, FairLimit]:
        """The weights and the limits that are set for some keys of a queue."""

    async def tally(self) -> dict[str, int]:
        """For how many keys something is set, by queue."""

    async def sums(self, queue: str) -> FairSums:
        """The keys of a queue together, up to a number of them."""

    async def longest_waiting(self, limit: int) -> list[KeyOfQueue]:
        """The keys of all queues whose first job waits for the longest time."""


RECOVERY = Recovery(
    begin=("open_every_key",),
    returned=("return_shares", "place_returned"),
    lost=(
        *("make_lost_shares", "make_lost_shared_queues"),
        *("count_shares", "count_shared_queues"),
    ),
)
"""Jobs that were given back wait again, and are charged with nothing."""
