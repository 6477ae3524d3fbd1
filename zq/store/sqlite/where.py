"""Filters as SQL conditions with named parameters."""

from collections.abc import Iterable

from zq.model.filters import Filter, ValueRange
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.store.api import as_json
from zq.store.where import conditions_of, in_steady_time, names_of, ranges_of

_FREE = f"status = {Status.READY.value} AND held = 0"
_HELD = f"held > 0 AND group_id IS NOT NULL AND status <= {Status.IN_FLIGHT.value}"
_IN_LINE = (
    f"held = 2 AND group_id IS NULL AND status = {Status.READY.value}"
    " AND line IN (SELECT id FROM lines WHERE {})"
)
"""Ready jobs of a queue are in one of three indexes. SQLite recognises these by this condition."""

_DRAWS_FROM = (
    "(options IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(options -> '$.budgets') AS d"
    " WHERE d.value ->> 0 IN ({})))"
)

_FAILED_LAST = "(id, attempts) IN (SELECT job_id, attempt FROM errors WHERE signature IN ({}))"

_REVIVABLE = (
    f"(status = {Status.DEAD.value}"
    f" OR status <= {Status.READY.value} AND extras ->> '$.origin' IS NOT NULL)"
)


def where(
    filter: Filter, hide_purged_at: int | None = None, *, by_time: bool = False
) -> tuple[str, dict[str, object]]:
    """Conditions over `jobs`, joined by AND, and their parameters.

    With `hide_purged_at` (now, in milliseconds) rows whose retention is over do not match, whether
    or not they have been deleted yet. `by_time` finds scheduled jobs by their times first, whatever
    their order.
    """
    by_time &= filter.ready_at is not None and filter.statuses == (Status.SCHEDULED,)
    # With its status beside their times, SQLite would look at all scheduled jobs.
    conditions = ["true", *([] if by_time else conditions_of(filter.statuses))]
    parameters: dict[str, object] = {}
    _add_names(conditions, parameters, filter)
    if filter.revivable:
        conditions.append(_REVIVABLE)
    if filter.keys is not None:
        conditions.append("id IN (SELECT value FROM json_each(:ids))")
        parameters["ids"] = as_json(filter.keys)
    if filter.swept is not None:
        conditions.append("swept = :swept")
        parameters["swept"] = filter.swept
    if filter.upto is not None:
        conditions.append("id <= :newest")
        parameters["newest"] = filter.upto
    if filter.ready_at is not None:
        _add_ready_at(conditions, parameters, filter, filter.ready_at, by_time=by_time)
    for column, bounds in ranges_of(filter).items():
        _add_range(conditions, parameters, column, bounds)
    if hide_purged_at is not None:
        conditions.append("(purge_at IS NULL OR purge_at > :hidden)")
        parameters["hidden"] = hide_purged_at
    return " AND ".join(conditions), parameters


def pattern(prefix: str) -> str:
    """The GLOB of a prefix: no character of a name has a special meaning in one."""
    return f"{prefix}*"


def _add_names(conditions: list[str], parameters: dict[str, object], filter: Filter) -> None:
    """Add what a filter names: each name has a parameter, for json_each cuts names at a NUL."""
    for column, names in names_of(filter).items():
        values = _numbered(column, names)
        among = f"{column} IN ({_listed(values)})"
        if column == "queue" and filter.statuses == (Status.READY,):
            in_line = _IN_LINE.format(among)
            among = f"({_FREE} AND {among} OR {_HELD} AND {among} OR {in_line})"
        conditions.append(among)
        parameters |= values
    if filter.budgets:
        values = _numbered("budget", filter.budgets)
        conditions.append(_DRAWS_FROM.format(_listed(values)))
        parameters |= values
    if filter.errors:
        values = _numbered("error", filter.errors)
        conditions.append(_FAILED_LAST.format(_listed(values)))
        parameters |= values
    if filter.reach is not EVERYWHERE:
        values = _numbered("reach", map(pattern, filter.reach.prefixes))
        conditions.append(f"({' OR '.join(f'queue GLOB :{name}' for name in values)})")
        parameters |= values


def _numbered(prefix: str, values: Iterable[str]) -> dict[str, object]:
    return {f"{prefix}_{number}": value for number, value in enumerate(values)}


def _listed(parameters: Iterable[str]) -> str:
    return ", ".join(f":{name}" for name in parameters)


def _add_ready_at(
    conditions: list[str],
    parameters: dict[str, object],
    filter: Filter,
    bounds: ValueRange,
    *,
    by_time: bool,
) -> None:
    """Add the times at which jobs are shown to be ready. Those that wait have a steady time.

    Each kind of scheduled jobs has an index of its times, which SQLite takes where it is asked for
    these jobs alone.
    """
    scheduled = f"status = {Status.SCHEDULED.value}"
    dates: list[str] = []
    waits: list[str] = []
    _add_range(dates, parameters, "ready_at", bounds)
    steady = in_steady_time(bounds, filter)
    _add_range(waits, parameters, "due_at", steady)
    dated, waiting = (" AND ".join(["true", *words]) for words in (dates, waits))
    if by_time:
        conditions.append(
            f"id IN (SELECT id FROM jobs WHERE {scheduled} AND due_at IS NULL AND {dated} UNION ALL"
            f" SELECT id FROM jobs WHERE {scheduled} AND due_at IS NOT NULL AND {waiting})"
        )
    else:
        conditions.append(f"iif({scheduled} AND due_at IS NOT NULL, {waiting}, {dated})")


def _add_range(
    conditions: list[str], parameters: dict[str, object], column: str, bounds: ValueRange | None
) -> None:
    if bounds is None:
        return
    if bounds.low is not None:
        conditions.append(f"{column} >= :{column}_low")
        parameters[f"{column}_low"] = bounds.low
    if bounds.high is not None:
        conditions.append(f"{column} <= :{column}_high")
        parameters[f"{column}_high"] = bounds.high
