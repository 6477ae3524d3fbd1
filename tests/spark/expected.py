"""The expected contents of the lake, computed from the records one by one."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from spark.fleet import HOUR
from zq.features.history.model import OUTCOMES, HistoryRecord

Key = tuple[int, str, str]
"""When an hour began (Unix ms), queue, type."""


def is_skewed(record: HistoryRecord) -> bool:
    times = [record.ready_at, record.dequeued_at, record.finished_at]
    if record.dequeued_at is None:
        times = [record.enqueued_at, record.finished_at]
    known = [time for time in times if time is not None]
    return known != sorted(known)


def wait_of(record: HistoryRecord) -> int | None:
    if record.dequeued_at is None or is_skewed(record):
        return None
    return record.dequeued_at - record.ready_at


def run_of(record: HistoryRecord) -> int | None:
    if record.dequeued_at is None or is_skewed(record):
        return None
    return record.finished_at - record.dequeued_at


def hour_of(time: int, size: int = HOUR) -> int:
    return time // size * size


def facts(records: Iterable[HistoryRecord], size: int = HOUR) -> dict[Key, Counter[str]]:
    """The sums of gold, without those that are zero; of shorter times than hours with `size`."""
    found: dict[Key, Counter[str]] = defaultdict(Counter)
    for record in records:
        done = found[hour_of(record.finished_at, size), record.queue, record.type]
        done["attempts"] += 1
        done[record.outcome.value] += 1
        done["skewed"] += is_skewed(record)
        done["payload_bytes"] += record.payload_bytes
        wait, run = wait_of(record), run_of(record)
        if wait is not None and run is not None:
            done.update(waits=1, wait_ms=wait, runs=1, run_ms=run, run_ms_squared=run**2)
        if is_skewed(record):
            done["arrivals"] += 1
            continue
        left = record.finished_at if record.dequeued_at is None else record.dequeued_at
        found[hour_of(record.ready_at, size), record.queue, record.type]["arrivals"] += 1
        for hour in range(hour_of(record.ready_at, size), record.finished_at + 1, size):
            touched = found[hour, record.queue, record.type]
            touched["waiting_ms"] += overlap(hour, hour + size, record.ready_at, left)
            touched["waiting_at_end"] += left >= hour + size
            touched["busy_ms"] += overlap(hour, hour + size, left, record.finished_at)
    assert all(sum(each[name] for name in OUTCOMES) == each["attempts"] for each in found.values())
    return {key: +sums for key, sums in found.items()}


def overlap(begin: int, end: int, since: int, until: int) -> int:
    return max(0, min(end, until) - max(begin, since))


def most_waiting(records: Iterable[HistoryRecord], begin: int, end: int) -> int:
    """The most that waited at once at any moment of that time."""
    waits = [
        (each.ready_at, each.finished_at if each.dequeued_at is None else each.dequeued_at)
        for each in records
        if not is_skewed(each) and each.ready_at <= each.finished_at
    ]
    moments = {begin, *(ready for ready, _ in waits if begin <= ready < end)}
    return max(sum(ready <= at < left for ready, left in waits) for at in moments)


def percentile(values: Iterable[int], p: int) -> int:
    """The exact one, by nearest rank."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * p // 100) - 1]
