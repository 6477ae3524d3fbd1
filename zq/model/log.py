"""Logs: records numbered without gaps, kept until one of three bounds is reached."""

from collections.abc import Iterable
from typing import NamedTuple

HISTORY_LOG = "history"
"""The name of the history's log in the store."""


class Bounds(NamedTuple):
    """How much of a log is kept: the age, the number and the bytes of its records.

    None means no bound.
    """

    age_ms: int | None = None
    records: int | None = None
    bytes: int | None = None


class HistoryOptions(NamedTuple):
    """The name of the history, and how much of it is kept."""

    device: str
    bounds: Bounds


class Stored(NamedTuple):
    """A batch of records in a log. It was written `at` a time in milliseconds."""

    last_seq: int
    records: int
    at: int
    size: int


def outworn(oldest: Iterable[Stored], records: int, size: int, bounds: Bounds, now: int) -> int:
    """How many of the oldest batches must go from a log of this many records and bytes.

    They go in order and as a whole, so the rest has no gap. If a clock has dated a batch into the
    future, it keeps those behind it until then, or until another bound is reached.
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
