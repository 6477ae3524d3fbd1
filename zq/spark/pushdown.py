"""Filters that Spark leaves to the source: which of them it takes, and what they let through."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class Condition(NamedTuple):
    """One filter: the name of Spark's class, the column, and what that is compared with."""

    kind: str
    column: str
    value: Any = None


_ORDERED = {
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
}


def condition(filter: Any, columns: Mapping[str, type]) -> Condition | None:
    """A filter of Spark as a condition over columns (name → int or str); None where it is none.

    Filters are known by the names of their classes: PySpark 4.0 has none yet. Order is compared
    only of numbers.
    """
    path: tuple[str, ...] = getattr(filter, "attribute", ())
    if len(path) != 1 or path[0] not in columns:
        return None
    kind, column = type(filter).__name__, path[0]
    wanted = columns[column]
    if kind in ("IsNull", "IsNotNull"):
        return Condition(kind, column)
    value = filter.value
    if kind == "In":
        fits = all(type(each) is wanted for each in value)
        return Condition(kind, column, tuple(value)) if fits else None
    if type(value) is not wanted:
        return None
    if kind == "EqualTo" or (kind in _ORDERED and wanted is int):
        return Condition(kind, column, value)
    return None


def split(filters: Iterable[Any], columns: Mapping[str, type]) -> tuple[list[Condition], list[Any]]:
    """The conditions that can be taken, and the filters that are given back."""
    taken: list[Condition] = []
    rest: list[Any] = []
    for each in filters:
        found = condition(each, columns)
        if found is None:
            rest.append(each)
        else:
            taken.append(found)
    return taken, rest


def kept(table: pa.Table, conditions: Sequence[Condition]) -> pa.Table:
    """The rows that meet all conditions. As in SQL, null meets none but IsNull."""
    for each in conditions:
        table = table.filter(_mask(table.column(each.column), each))
    return table


def bounds(conditions: Sequence[Condition], column: str) -> tuple[int | None, int | None]:
    """The least and the greatest value of a column of numbers that the conditions let through."""
    least: list[int] = []
    most: list[int] = []
    for kind, name, value in conditions:
        if name != column:
            continue
        if kind == "EqualTo":
            least.append(value)
            most.append(value)
        elif kind == "In" and value:
            least.append(min(value))
            most.append(max(value))
        elif kind.startswith("Greater"):
            least.append(value + (kind == "GreaterThan"))
        elif kind.startswith("Less"):
            most.append(value - (kind == "LessThan"))
    return max(least, default=None), min(most, default=None)


def _mask(column: pa.ChunkedArray, condition: Condition) -> pa.ChunkedArray:
    if condition.kind == "IsNull":
        return pc.is_null(column)
    if condition.kind == "IsNotNull":
        return pc.is_valid(column)
    if condition.kind == "In":
        return pc.is_in(column, value_set=pa.array(condition.value, type=column.type))
    compare = _ORDERED.get(condition.kind, pc.equal)
    return compare(column, pa.scalar(condition.value, type=column.type))
