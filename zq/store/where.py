"""Filters as SQL conditions: the parts that are alike in every store."""

from collections.abc import Iterator, Sequence

from zq.model.filters import Filter, ValueRange
from zq.model.lifecycle import Status


def names_of(filter: Filter) -> dict[str, Sequence[str]]:
    """The names that a filter has, by the columns of jobs in which one of them must be."""
    named = {
        "queue": filter.queues,
        "type": filter.types,
        "group_id": filter.groups,
        "unique_key": filter.unique_keys,
    }
    return {column: names for column, names in named.items() if names}


def ranges_of(filter: Filter) -> dict[str, ValueRange | None]:
    """The ranges of a filter by their columns, without that of `ready_at`."""
    return {
        "priority": filter.priority,
        "attempts": filter.attempts,
        "finished_at": filter.finished_at,
    }


def in_steady_time(bounds: ValueRange, filter: Filter) -> ValueRange:
    """Dates as steady times, by which jobs are stored that wait for a duration."""
    return ValueRange(*[bound and bound + filter.ahead for bound in (bounds.low, bounds.high)])


def conditions_of(statuses: Sequence[Status]) -> Iterator[str]:
    """The conditions by which an index of jobs by status finds those with one of these."""
    if len(statuses) == 1:
        # An equality lets a database walk the index by status in the order of ids.
        yield f"status = {statuses[0].value}"
    elif statuses:
        yield f"status IN ({', '.join(str(status.value) for status in statuses)})"
    if statuses and Status.READY not in statuses:
        # This adds no condition, but a database recognises its partial index by these words.
        yield f"status <> {Status.READY.value}"
