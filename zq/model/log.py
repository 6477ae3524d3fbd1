"""Logs: records with numbers that have no gaps, kept until one of three bounds is reached."""

from collections.abc import Iterable
from typing import NamedTuple


class Bounds(NamedTuple):
    """How much of a log is kept: records up to this age, so many, and so many bytes of them.

    None is no bound.
    """

    age_ms: int | None = None
    records: int | None = None
    bytes: int | None = None


class HistoryOptions(NamedTuple):
    """Whose history is kept, and how much of it."""

    device: str
    bounds: Bounds


class Stored(NamedTuple):
    """A batch of records as it lies in a log, written `at` a time in milliseconds."""

    last_seq: int
    records: int
    at: int
    size: int


def outworn(oldest: Iterable[Stored], records: int, size: int, bounds: Bounds, now: int) -> int:
    """How many of the oldest batches are to go from a log of so many records and bytes.

    They go in their order and as a whole, so that what is left has no gap. A batch that a clock
    has dated into the future keeps those behind it until then, or until the other bounds are met.
    """
    gone = 0
    for batch in oldest:
        is_old = bounds.age_ms is not None and now - batch.at >= bounds.age_ms
        too_many = bounds.records is not None and records > bounds.records
        too_large = bounds.bytes is not None and size > bounds.bytes
        if not (is_old or too_many or too_large):
            break
        records -= batch.records
        size -= batch.size
        gone += 1
    return gone
