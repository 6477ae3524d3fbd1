"""Fair shares: the rules of keys and weights, and the formula by which keys get their turns.

A queue is shared by start-time fair queueing (P. Goyal, H. M. Vin and H. Cheng, "Start-time Fair
Queueing", SIGCOMM 1996). Each queue has a virtual time V, and each key of it a finish tag F. Both
are in milliseconds of a worker's time for a key of weight 1.

    first job  F = max(V, F)               a key that had no ready job begins at V
    turn       the key with the least F is next
    delivery   F = max(F, V - mean · (in flight + 1) / weight), and V = max(V, F)
               F = F + mean / weight       a job is charged with what the jobs of its key took
    end        F = F + (ran - charged) / weight, and V falls with an F that falls below it
               mean = mean + (ran - mean) / 8

So a key that is behind comes first, one that is alone gets everything, and one that was away saves
nothing up: it begins at V. One that its limits or more urgent jobs held back saves up a job, and
one for each that it has in flight. If jobs take less than their key was charged with, F falls, and
V by as much at most: else a new key would wait at V for what that one gets back. Running time is
known at the end of a job. Until then a job counts as long as the mean of its key, so that a key
with slow jobs does not get all workers meanwhile. A key of which no job has ended has the mean of
its queue. Of the jobs of a key that are in flight, each is charged with an equal part of their sum.

Bound: while two keys both have ready jobs of the most urgent priority, what they got of the
workers' time, each by its weight, differs by at most one job of each, as long as jobs take what
their means say. What a job takes beyond the mean of its key is made up at its end. A new key stands
at V, so only keys that stand there too come before it: among n keys that nothing held back, its
first job is the n-th delivery at the latest.
"""

from enum import StrEnum
from math import ceil, floor
from typing import NamedTuple

import msgspec

from zq.model.errors import InvalidRequest, NotFound
from zq.model.settings import FairRule, Rate, Some

MAX_KEY = 200
"""The longest fair key, in characters. Pages, metrics and the index of claims repeat it."""

MIN_WEIGHT, MAX_WEIGHT = 0.01, 100.0
DEFAULT_WEIGHT = 1.0

SHORTEST_MS = 1.0
"""A job costs at least so much, in milliseconds: also a delivery takes its time."""

SMOOTHING = 8
"""A run changes the mean of its key by one part in so many."""

_ROUNDING_MS = 0.01
"""Sums of times such as 1,000 / 3 ms are off by less."""


class FairLimit(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The weight and the limits of one key of a queue.

    None leaves the weight to the jobs of the key, and a limit to the setting of its queue. A key
    has at most `max_in_flight` jobs in flight, and `rate` deliveries a second.
    """

    weight: float | None = None
    max_in_flight: Some | None = None
    rate: Rate | None = None


NO_LIMIT = FairLimit()


class FairOrder(StrEnum):
    """The orders in which the keys of a queue are shown."""

    SHARE = "share"
    """The keys that are furthest behind their share come first: they are next."""
    WAIT = "wait"
    """The keys whose first job waits for the longest time come first."""
    DEPTH = "depth"
    """The keys with most waiting jobs come first."""


class FairKeyState(msgspec.Struct, array_like=True, frozen=True):
    """A key of a queue that has unfinished jobs, at a moment.

    `start` is its start tag in milliseconds beyond the queue's virtual time, so a key at 0 is next.
    `mean_ms` is the smoothed running time of its jobs. `oldest_ready` is when its first waiting job
    became ready, in milliseconds since the epoch.
    """

    key: str
    start: float
    weight: float
    mean_ms: float
    waiting: int
    in_flight: int
    oldest_ready: int | None


def start_of(virtual: float, finish: float) -> float:
    """The tag at which the next job of a key begins."""
    return max(virtual, finish)


def least_start(virtual: float, charged: float, weight: float, in_flight: int) -> float:
    """The least tag at which a job of a key begins that had to wait although it came first."""
    return virtual - charged * (in_flight + 1) / weight


def virtual_after(virtual: float, finish: float, corrected: float) -> float:
    """The virtual time once `corrected` was added to the tag of a key that has ready jobs."""
    return min(virtual, max(finish, virtual + corrected))


def finish_of(start: float, charged: float, weight: float) -> float:
    """The finish tag of a key after a delivery that began at `start`."""
    return start + charged / weight


def counted(ran: float) -> float:
    """What a job counts that has run for so many milliseconds."""
    return max(ran, SHORTEST_MS)


def correction(charged: float, ran: float, weight: float) -> float:
    """What the end of a job adds to the finish tag of its key. Both times are in milliseconds."""
    return (ran - charged) / weight


def mean_after(mean: float | None, ran: float) -> float:
    """The mean of a key, or of a queue, after a job that counts `ran` milliseconds."""
    return ran if mean is None else mean + (ran - mean) / SMOOTHING


def paid_after(paid_until: float | None, now: int, rate: float, count: int = 1) -> float:
    """Up to when a key has used up its rate after deliveries now. Times are in milliseconds."""
    return max(paid_until or 0.0, now) + count * 1000 / rate


def opens_at(paid_until: float | None, rate: float) -> int:
    """When the rate of a key lets a delivery through: those of one second may come at once."""
    ahead = max(1000 - 1000 / rate, 0.0)
    return ceil((paid_until or 0.0) - ahead - _ROUNDING_MS)


class KeyLimits(NamedTuple):
    """The limits of a key: jobs in flight, and deliveries a second."""

    most: int | None
    rate: float | None

    def opens_at(self, paid_until: float | None) -> int:
        """When the rate lets a delivery through. It has used up the time until `paid_until`."""
        return 0 if self.rate is None else opens_at(paid_until, self.rate)

    def is_full(self, in_flight: int) -> bool:
        """True if no more jobs than these may be in flight."""
        return self.most is not None and in_flight >= self.most


UNLIMITED = KeyLimits(None, None)


def limits_of(rule: FairRule, most: int | None, rate: float | None) -> KeyLimits:
    """The limits of a key: those that are set for it, or else those of its queue."""
    return KeyLimits(
        rule.max_in_flight if most is None else most, rule.rate if rate is None else rate
    )


def let_through(paid_until: float | None, now: int, rate: float) -> int:
    """How many deliveries the rate of a key lets through now, at a time in milliseconds."""
    if opens_at(paid_until, rate) > now:
        return 0
    ahead = now + max(1000 - 1000 / rate, 0.0) - max(paid_until or 0.0, now)
    return max(floor((ahead + _ROUNDING_MS) * rate / 1000), 0) + 1


def check_key(field: str, key: str) -> str:
    """Return a fair key, or raise `InvalidRequest` that says which rule it breaks."""
    if not key:
        raise InvalidRequest(f"{field} must not be empty")
    if len(key) > MAX_KEY:
        raise InvalidRequest(
            f"{field} has {len(key)} characters, but at most {MAX_KEY} are allowed: send a digest"
        )
    if "\0" in key:
        raise InvalidRequest(f"{field} must not contain NUL")
    return key


def check_weight(field: str, weight: float) -> float:
    """Return the weight of a key, or raise `InvalidRequest` with the range."""
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise InvalidRequest(
            f"{field} must be between {MIN_WEIGHT:g} and {MAX_WEIGHT:g}, not {weight:g}"
        )
    return weight


def check_limit(limit: FairLimit) -> FairLimit:
    """Return what is to be set for a key, or raise `InvalidRequest`."""
    if limit.weight is not None:
        check_weight("weight", limit.weight)
    return limit


def key_from(value: object) -> str | None:
    """The fair key that a value in a job gives; None if it gives none.

    It may be text, a number, or true or false, which become their JSON.
    """
    if isinstance(value, bool | int | float):
        value = msgspec.json.encode(value).decode()
    if isinstance(value, str) and 0 < len(value) <= MAX_KEY and "\0" not in value:
        return value
    return None


class FairKeyNotFound(NotFound):
    """The queue has no fair key of this name with settings or jobs."""

    code = "fair_key_not_found"

    def __init__(self, queue: str, key: str) -> None:
        super().__init__(
            f"queue {queue!r} has no jobs of the fair key {key!r}, and sets nothing for it"
        )
