"""Filters as SQL conditions with named parameters."""

from collections.abc import Iterator, Sequence
from enum import Enum, auto

from zq.model.filters import Filter, ValueRange
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.store.where import conditions_of, in_steady_time, names_of, ranges_of

_DRAWS_FROM = (
    "(options IS NOT NULL AND EXISTS (SELECT 1 FROM json_array_elements(options -> 'budgets') AS d"
    " WHERE d ->> 0 = ANY (:filter_budgets::text[])))"
)

_EVER_FAILED = (
    "id = ANY (ARRAY(SELECT job_id FROM errors WHERE signature = ANY (:filter_errors::text[])))"
)

_FAILED_LAST = (
    "(SELECT signature FROM errors WHERE job_id = jobs.id AND attempt = jobs.attempts)"
    " = ANY (:filter_errors::text[])"
)

_REVIVABLE = (
    f"(status = {Status.DEAD.value}"
    f" OR status <= {Status.READY.value} AND extras ->> 'origin' IS NOT NULL)"
)


class Finds(Enum):
    """How a query finds its rows."""

    IN_ORDER = auto()
    """In the order of their ids."""
    AT_ALL = auto()
    """In whichever order an index has them."""
    BY_STATUS = auto()
    """Status by status: it has the condition for that itself."""
    BY_KEYS = auto()
    """By the keys of all rows that may match, which it has."""


def where(
    filter: Filter, hide_purged_at: int | None = None, finds: Finds = Finds.IN_ORDER
) -> tuple[str, dict[str, object]]:
    """Conditions over `jobs`, joined by AND, and their parameters.

    With `hide_purged_at` (now, in milliseconds) rows whose retention is over do not match, whether
    or not they have been deleted yet.
    """
    if _names_keys(filter) and finds is not Finds.BY_STATUS:
        states = _of_states_of_keys(filter.statuses)
    else:
        states = _OF_STATES[finds](filter.statuses)
    conditions = ["true", *states]
    parameters: dict[str, object] = {"filter_statuses": sorted({*filter.statuses})}
    for column, names in names_of(filter).items():
        conditions.append(f"{column} = ANY (:filter_{column}::text[])")
        parameters[f"filter_{column}"] = list(names)
    if filter.budgets:
        conditions.append(_DRAWS_FROM)
        parameters["filter_budgets"] = list(filter.budgets)
    if filter.errors:
        conditions += [_FAILED_LAST] if finds is Finds.BY_KEYS else [_EVER_FAILED, _FAILED_LAST]
        parameters["filter_errors"] = list(filter.errors)
    if filter.reach is not EVERYWHERE:
        arms = []
        for number, prefix in enumerate(filter.reach.prefixes):
            arms.append(f"starts_with(queue, :reach_{number}::text)")
            parameters[f"reach_{number}"] = prefix
        conditions.append(f"({' OR '.join(arms)})")
    if filter.revivable:
        conditions.append(_REVIVABLE)
    if filter.keys is not None:
        conditions.append("id = ANY (:filter_ids::bigint[])")
        parameters["filter_ids"] = list(filter.keys)
    if filter.swept is not None:
        conditions.append("swept = :filter_swept")
        parameters["filter_swept"] = filter.swept
    if filter.upto is not None:
        conditions.append("id <= :filter_newest")
        parameters["filter_newest"] = filter.upto
    if filter.ready_at is not None:
        conditions.append(_ready_at(parameters, filter, filter.ready_at))
    for column, bounds in ranges_of(filter).items():
        conditions += _range(parameters, column, bounds)
    if hide_purged_at is not None:
        conditions.append("(purge_at IS NULL OR purge_at > :filter_hidden)")
        parameters["filter_hidden"] = hide_purged_at
    return " AND ".join(conditions), parameters


def is_listed_by_status(filter: Filter) -> bool:
    """True if the index by status finds the jobs of a filter, one status after the other."""
    states = filter.statuses
    return bool(states) and Status.READY not in states and not _names_keys(filter)


def _names_keys(filter: Filter) -> bool:
    return filter.keys is not None or bool(filter.errors)


def _of_states_in_order(statuses: Sequence[Status]) -> Iterator[str]:
    """Let no index find jobs of several statuses, all of which would be sorted."""
    in_order = len(statuses) == 1 and Status.READY not in statuses
    return conditions_of(statuses) if in_order else _of_states_of_keys(statuses)


def _of_states_of_keys(statuses: Sequence[Status]) -> Iterator[str]:
    """Let no index find jobs by their statuses, of which few have one of the keys."""
    if statuses:
        yield f"+status IN ({', '.join(str(status.value) for status in statuses)})"


def _of_no_states(_statuses: Sequence[Status]) -> Iterator[str]:
    return iter(())


_OF_STATES = {
    Finds.IN_ORDER: _of_states_in_order,
    Finds.AT_ALL: conditions_of,
    Finds.BY_STATUS: _of_no_states,
    Finds.BY_KEYS: _of_states_of_keys,
}


def _ready_at(parameters: dict[str, object], filter: Filter, bounds: ValueRange) -> str:
    """The times at which jobs are shown to be ready. Those that wait have a steady time."""
    dates = ["true", *_range(parameters, "ready_at", bounds)]
    steady = in_steady_time(bounds, filter)
    waits = ["true", *_range(parameters, "due_at", steady)]
    return (
        f"CASE WHEN status = {Status.SCHEDULED.value} AND due_at IS NOT NULL"
        f" THEN {' AND '.join(waits)} ELSE {' AND '.join(dates)} END"
    )


def _range(parameters: dict[str, object], column: str, bounds: ValueRange | None) -> Iterator[str]:
    if bounds is None:
        return
    for end, sign, bound in (("low", ">=", bounds.low), ("high", "<=", bounds.high)):
        if bound is not None:
            yield f"{column} {sign} :{column}_{end}::bigint"
            parameters[f"{column}_{end}"] = bound
