"""How much of a kind callers with a bounded reach may make, so that others find room too."""

from collections.abc import Iterable

from zq.model.queue_errors import QuotaReached
from zq.model.reach import Reach

MOST_WITHIN_REACH = 1_000
"""The things of a kind within a caller's prefixes from which on it makes no more."""


def require_room(what: str, queues: Iterable[str], reach: Reach, more: int) -> None:
    """Raise `QuotaReached` unless a caller may make more of a kind.

    `queues` has the queue of each thing of that kind that there is. What a caller without bounds
    has made within the prefixes counts too.
    """
    have = sum(map(reach.covers, queues))
    if more > 0 and have + more > MOST_WITHIN_REACH:
        raise QuotaReached(what, have, MOST_WITHIN_REACH)
