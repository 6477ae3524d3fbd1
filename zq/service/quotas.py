"""How much of a kind callers with a bounded reach may make, so that others find room too."""

from collections.abc import Mapping

from zq.model.errors import QuotaReached
from zq.model.reach import Reach

MOST_WITHIN_REACH = 1_000
"""The things of a kind within a caller's prefixes from which on it makes no more."""


def require_room(what: str, queues: Mapping[str, int], reach: Reach, more: int) -> None:
    """Raise `QuotaReached` unless a caller may make more of a kind.

    `queues` says how many things of that kind there are, by their queues. What a caller without
    bounds has made within the prefixes counts too.
    """
    have = sum(count for queue, count in queues.items() if reach.covers(queue))
    if more > 0 and have + more > MOST_WITHIN_REACH:
        raise QuotaReached(what, have, MOST_WITHIN_REACH)
