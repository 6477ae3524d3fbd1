"""Query strings: parsed strictly, echoed canonically."""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple
from urllib.parse import quote

from aiohttp import web

from zq.model.errors import InvalidRequest, NotBuilt, NotCancellable, Unprocessable
from zq.model.filters import Filter, Range
from zq.model.ids import IdCodec, is_ulid
from zq.model.job import MAX_PRIORITY, MAX_TIME, MAX_UINT32
from zq.model.lifecycle import BY_NAME, NAMES, TERMINAL, Move, Status, sources
from zq.model.reach import Reach

FILTERS = (
    *("status", "queue", "type", "group", "id"),
    *("priority", "ready_at", "attempts", "filter"),
)
PAGING = ("from", "order", "limit")
UNBUILT = ("budgets.key", "budgets_key")

MAX_LIMIT = 2000
DEFAULT_LIMIT = 50

_READS = ("GET", "HEAD")
_RANGES = {"priority": MAX_PRIORITY, "ready_at": 2**64 - 1, "attempts": MAX_UINT32}
_RANGE = re.compile(r"(\d{0,20})(\.\.)?(\d{0,20})", re.ASCII)


class Paging(NamedTuple):
    """Where a page begins (exclusive), which way it goes and how long it may be."""

    cursor: str | None
    descending: bool
    limit: int


def parameters(request: web.BaseRequest, allowed: Collection[str]) -> dict[str, str]:
    """The query's parameters; an empty value is as good as none. Raises `InvalidRequest`.

    But a filter that is given, and filters nothing, is a mistake where jobs change: taken for no
    filter it could delete everything. A `filter` without an expression is one everywhere.
    """
    found: dict[str, str] = {}
    for name, value in request.rel_url.query.items():
        if name in UNBUILT:
            raise NotBuilt("budgets are not supported by this version of zq: leave them out")
        if name not in allowed:
            raise _invalid(f"unknown parameter `{name}`, expected one of: {', '.join(allowed)}")
        if name in found:
            raise _invalid(f"`{name}` is given twice")
        if name in FILTERS and request.method not in _READS and _filters_nothing(name, value):
            raise _invalid(
                f"`{name}` is empty: say which jobs are meant, or leave it out, which means any"
            )
        found[name] = value
    return {name: value for name, value in found.items() if value or name == "filter"}


def names(text: str | None) -> tuple[str, ...]:
    """A comma list; empty segments do not count."""
    return tuple(segment for segment in (text or "").split(",") if segment)


def whole_number(name: str, text: str, high: int, low: int = 0) -> int:
    """A number from `low` to `high`. Raises `InvalidRequest`."""
    if not (text.isascii() and text.isdigit() and low <= int(text[:20]) <= high):
        raise _invalid(f"`{name}` must be a whole number from {low} to {high}, not {text!r}")
    return int(text)


def paging(values: dict[str, str]) -> Paging:
    """The paging part of a query."""
    order = values.get("order", "asc")
    if order not in ("asc", "desc"):
        raise _invalid(f"`order` must be asc or desc, not {order!r}")
    text = values.get("limit", str(DEFAULT_LIMIT))
    if not re.fullmatch(r"-?\d+", text, re.ASCII):
        raise _invalid(f"`limit` must be a whole number, not {text!r}")
    if not 1 <= int(text[:10]) <= MAX_LIMIT:
        raise InvalidRequest(f"limit must be between 1 and {MAX_LIMIT}")
    return Paging(values.get("from"), order == "desc", int(text))


def job_filter(values: dict[str, str], ids: IdCodec, reach: Reach) -> Filter:
    """The filter part of a query, over the jobs within reach."""
    return Filter(
        statuses=tuple(sorted({_status(name) for name in names(values.get("status"))})),
        queues=_sorted_names(values, "queue"),
        types=_sorted_names(values, "type"),
        groups=_sorted_names(values, "group"),
        keys=_keys(_sorted_names(values, "id"), ids),
        priority=_range(values, "priority"),
        ready_at=_range(values, "ready_at"),
        attempts=_range(values, "attempts"),
        program=values.get("filter"),
        reach=reach,
    )


def refuse_uncancellable(filter: Filter, force: bool) -> None:
    """Raise `Unprocessable` for a cancellation that names jobs which it cannot cancel."""
    for status in filter.statuses:
        if status not in sources(Move.FORCE if force else Move.CANCEL):
            raise Unprocessable(NotCancellable(NAMES[status]).message)


def refuse_terminal_statuses(filter: Filter) -> None:
    """Raise `Unprocessable` for a patch that names finished jobs."""
    for status in filter.statuses:
        if status in TERMINAL:
            raise Unprocessable(f"cannot patch jobs in {NAMES[status].capitalize()} status")


def canonical(values: dict[str, str], paging: Paging) -> str:
    """The query of a link to a page with these filters; parsing it gives the same again."""
    parts: list[tuple[str, str]] = []
    if paging.cursor is not None:
        parts.append(("from", paging.cursor))
    parts += [("order", "desc" if paging.descending else "asc"), ("limit", str(paging.limit))]
    for name in FILTERS:
        if name in values:
            parts.append((name, _echo(name, values[name])))
    return "&".join(f"{name}={quote(value, safe=',')}" for name, value in parts)


def _filters_nothing(name: str, text: str) -> bool:
    if name == "filter":
        return False  # an empty program is refused by the filter itself
    if name in _RANGES:
        return text in ("", "..")
    return not names(text)


def _echo(name: str, text: str) -> str:
    if name in _RANGES:
        bounds = _bounds(name, text)
        low = "" if bounds.low is None else str(bounds.low)
        high = "" if bounds.high is None else str(bounds.high)
        return low if low == high and low else f"{low}..{high}"
    if name == "filter":
        return text
    return ",".join(sorted(set(names(text))))


def _sorted_names(values: dict[str, str], name: str) -> tuple[str, ...]:
    return tuple(sorted(set(names(values.get(name)))))


def _status(name: str) -> Status:
    if name not in BY_NAME:
        raise _invalid(f"unknown status {name!r}, expected one of: {', '.join(BY_NAME)}")
    return BY_NAME[name]


def _keys(texts: Iterable[str], ids: IdCodec) -> tuple[int, ...] | None:
    texts = tuple(texts)
    for text in texts:
        if not is_ulid(text):
            raise InvalidRequest(f'invalid job ID: "{text[:64]}"')
    if not texts:
        return None
    # An id of another database names no job here; that is no error.
    return tuple(key for key in map(ids.key, texts) if key is not None)


def _range(values: dict[str, str], name: str) -> Range | None:
    if name not in values:
        return None
    bounds = _bounds(name, values[name])
    low = None if bounds.low is None else min(bounds.low, MAX_TIME)
    high = None if bounds.high is None else min(bounds.high, MAX_TIME)
    return Range(low, high)


def _bounds(name: str, text: str) -> Range:
    """A range as written; a bound that excludes nothing is None."""
    match = _RANGE.fullmatch(text)
    if match is None or not (match[2] or match[1]):
        raise _invalid(f"`{name}` must be a number or a range like 1..9, 1.. or ..9, not {text!r}")
    first = match[1]
    last = match[3] if match[2] else first
    high = _RANGES[name]
    low_bound = whole_number(name, first, high) if first else 0
    high_bound = whole_number(name, last, high) if last else high
    if low_bound > high_bound:
        raise _invalid(f"`{name}`: {low_bound} is more than {high_bound}")
    if low_bound == high_bound:
        return Range(low_bound, high_bound)
    return Range(low_bound or None, None if high_bound == high else high_bound)


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(f"invalid query parameters: {message}")
