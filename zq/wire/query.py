"""What the parameters of a query mean, and a canonical form of them for the links of pages."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from zq.model.errors import InvalidRequest
from zq.model.filters import Filter, ValueRange
from zq.model.ids import IdCodec
from zq.model.job import MAX_PRIORITY, MAX_TIME, MAX_UINT32, MAX_UINT64
from zq.model.lifecycle import BY_NAME, Status
from zq.model.reach import Reach
from zq.model.words import checked_words, words_of
from zq.wire.codecs import BodyCodec

FILTERS = (
    *("status", "queue", "type", "group", "id"),
    *("priority", "ready_at", "finished_at", "attempts", "filter", "budgets.key", "error", "upto"),
    "search",
)
ZIZQS = (
    *("status", "queue", "type", "id"),
    *("priority", "ready_at", "attempts", "filter", "budgets.key"),
)
"""The filters that Zizq has. Its clients may send an empty one in a read, which filters nothing."""

CHOOSING = frozenset((*FILTERS, "who", "verb", "since", "until", "job", "types"))
"""All parameters that choose among jobs, actions or events."""

LISTS = ("status", "queue", "type", "group", "id", "budgets.key", "error")
"""Filters whose values are lists with commas."""

PAGING = ("from", "order", "limit")
ALIASES = {"budgets_key": "budgets.key"}
"""Other spellings of names that some clients need."""

TEXTS = ("filter", "search")
"""Filters whose values are no lists of names."""

MAX_LIMIT = 2000
DEFAULT_LIMIT = 50


C = TypeVar("C", bound=StrEnum)

QUERY = "invalid query parameters: "
"""The text of every refused query begins with this."""

_RANGES = {
    "priority": MAX_PRIORITY,
    "ready_at": MAX_UINT64,
    "finished_at": MAX_UINT64,
    "attempts": MAX_UINT32,
}
_NUMBER = re.compile(r"\+?0*(\d{1,20})", re.ASCII)
_RANGE = re.compile(r"(\+?\d{1,40})|(\+?\d{1,40})?\.\.(\+?\d{1,40})?", re.ASCII)
_ZIZQ_ID = re.compile("[0-9a-z]{25}")


class Paging(NamedTuple):
    """The place where a page begins (exclusive), its direction and its length."""

    cursor: str | None
    descending: bool
    limit: int


class PageShown(NamedTuple):
    """The cursors of the first and last row of a page, and whether more rows follow."""

    first: str | None
    last: str | None
    more: bool


def refuse_filter_in_body(body: bytes, sent: BodyCodec, own: Collection[str] = ()) -> None:
    """Raise `InvalidRequest` if the body of a change by filter has a filter, which is not read.

    `own` are the fields of the body that are called as filters are.
    """
    if not body or not sent.begins_object(body):
        return
    fields = msgspec.json.decode(sent.to_json(body), type=dict[str, msgspec.Raw])
    lost = [name for name in fields if ALIASES.get(name, name) in FILTERS and name not in own]
    if lost:
        raise InvalidRequest(
            f"`{lost[0]}` in the body filters nothing: put it into the query, as ?{lost[0]}=…"
        )


def names(text: str | None) -> tuple[str, ...]:
    """The names in a comma list. Empty parts are ignored."""
    return tuple(segment for segment in (text or "").split(",") if segment)


def whole_number(name: str, text: str, high: int, low: int = 0) -> int:
    """A number from `low` to `high`. A plus sign is allowed. Raises `InvalidRequest`."""
    match = _NUMBER.fullmatch(text)
    if match is None or not low <= int(match[1]) <= high:
        raise invalid_query(f"`{name}` must be a whole number from {low} to {high}, not {text!r}")
    return int(match[1])


def switch(name: str, values: Mapping[str, str]) -> bool:
    """True if a query has `true` under a name; `false` and nothing mean no.

    Raises `InvalidRequest`.
    """
    text = values.get(name, "false")
    if text not in ("true", "false"):
        raise invalid_query(f"`{name}` must be true or false, not {text!r}")
    return text == "true"


def choice(values: Mapping[str, str], name: str, kind: type[C], default: C) -> C:
    """The choice that a query has under a name. Raises `InvalidRequest`."""
    text = values.get(name, default)
    if text not in list(kind):
        raise invalid_query(f"`{name}` must be one of {', '.join(kind)}, not {text!r}")
    return kind(text)


def paging(values: Mapping[str, str]) -> Paging:
    """The paging part of a query."""
    order = values.get("order", "asc")
    if order not in ("asc", "desc"):
        raise invalid_query(f"`order` must be asc or desc, not {order!r}")
    limit = limit_in(values, DEFAULT_LIMIT, MAX_LIMIT)
    return Paging(values.get("from"), order == "desc", limit)


def limit_in(values: Mapping[str, str], usual: int, most: int) -> int:
    """How many rows a query asks for: from 1 to `most`. Raises `InvalidRequest`."""
    text = values.get("limit", str(usual))
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        raise invalid_query(f"`limit` must be a whole number, not {text!r}")
    match = _NUMBER.fullmatch(text)
    limit = 0 if match is None else int(match[1])
    if not 1 <= limit <= most:
        raise InvalidRequest(f"limit must be between 1 and {most}")
    return limit


def job_filter(values: Mapping[str, str], ids: IdCodec, reach: Reach) -> Filter:
    """The filter in a query, for the jobs within reach."""
    return Filter(
        statuses=tuple(sorted({_status(name) for name in names(values.get("status"))})),
        queues=_sorted_names(values, "queue"),
        types=_sorted_names(values, "type"),
        groups=_sorted_names(values, "group"),
        keys=_keys(_sorted_names(values, "id"), ids),
        upto=_upper_key(values.get("upto"), ids),
        priority=_range(values, "priority"),
        ready_at=_range(values, "ready_at"),
        finished_at=_range(values, "finished_at"),
        attempts=_range(values, "attempts"),
        program=values.get("filter"),
        words=checked_words(values.get("search")),
        budgets=_sorted_names(values, "budgets.key"),
        errors=_sorted_names(values, "error"),
        reach=reach,
    )


def canonical(values: Mapping[str, str], paging: Paging) -> str:
    """The query of a link to a page with these filters. Parsing it gives the same filters."""
    parts: list[tuple[str, str]] = []
    if paging.cursor is not None:
        parts.append(("from", paging.cursor))
    parts += [("order", "desc" if paging.descending else "asc"), ("limit", str(paging.limit))]
    for name in FILTERS:
        if name in values:
            parts.append((name, _echo(name, values[name])))
    return "&".join(f"{name}={quote(value, safe=',')}" for name, value in parts)


def links(
    path: str, query: Callable[[Paging], str], paging: Paging, shown: PageShown
) -> dict[str, str | None]:
    """`self`, `next` and `prev`. The last two are null if there is no such page.

    The previous page is read backwards from this page's first row, so its rows come reversed.
    """

    def link(cursor: str | None, descending: bool) -> str:
        return f"{path}?{query(Paging(cursor, descending, paging.limit))}"

    has_previous = paging.cursor is not None and shown.first is not None
    return {
        "self": link(paging.cursor, paging.descending),
        "next": link(shown.last, paging.descending) if shown.more else None,
        "prev": link(shown.first, not paging.descending) if has_previous else None,
    }


def filters_nothing(name: str, text: str) -> bool:
    """True if a filter with this text lets everything through, as an empty one does."""
    if name == "filter":
        return False  # the filter itself refuses an empty program
    if name == "search":
        return not words_of(text)
    if name in _RANGES:
        return text in ("", "..")
    return not names(text)


def _echo(name: str, text: str) -> str:
    if name in _RANGES:
        bounds = _bounds(name, text)
        low = "" if bounds.low is None else str(bounds.low)
        high = "" if bounds.high is None else str(bounds.high)
        return low if low == high and low else f"{low}..{high}"
    if name in TEXTS:
        return text
    return ",".join(sorted(set(names(text))))


def _sorted_names(values: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(sorted(set(names(values.get(name)))))


def _status(name: str) -> Status:
    if name not in BY_NAME:
        raise invalid_query(f"unknown status {name!r}, expected one of: {', '.join(BY_NAME)}")
    return BY_NAME[name]


def _keys(texts: Iterable[str], ids: IdCodec) -> tuple[int, ...] | None:
    texts = tuple(texts)
    if not texts:
        return None
    keys = []
    for text in texts:
        key = ids.key(text)
        if key is not None:
            keys.append(key)
        elif not (is_ulid(text) or _ZIZQ_ID.fullmatch(text)):
            raise InvalidRequest(f'invalid job ID: "{text[:64]}"')
    return tuple(keys)


def _upper_key(text: str | None, ids: IdCodec) -> int | None:
    """The key of the newest job that is meant. An id of another database bounds nothing here."""
    key = None if text is None else ids.key(text)
    if text is not None and key is None:
        raise invalid_query(f"`upto` must be an id of this server, not {text[:64]!r}")
    return key


def is_ulid(text: str) -> bool:
    """True if the text has the form of an id. An id of another database names no job here.

    `IdCodec.key` recognises this database's own ids, five times as fast; the package knows all.
    """
    import ulid  # few clients have ids of other databases

    try:
        return str(ulid.from_str(text)) == text
    except ValueError:
        return False


def _range(values: Mapping[str, str], name: str) -> ValueRange | None:
    if name not in values:
        return None
    bounds = _bounds(name, values[name])
    low = None if bounds.low is None else min(bounds.low, MAX_TIME)
    high = None if bounds.high is None else min(bounds.high, MAX_TIME)
    return ValueRange(low, high)


def _bounds(name: str, text: str) -> ValueRange:
    """The range in a text. A bound that excludes nothing is None."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise invalid_query(
            f"`{name}` must be a number or a range like 1..9, 1.. or ..9, not {text!r}"
        )
    first, last = (match[1], match[1]) if match[1] else (match[2], match[3])
    high = _RANGES[name]
    low_bound = whole_number(name, first, high) if first else 0
    high_bound = whole_number(name, last, high) if last else high
    if low_bound > high_bound:
        raise invalid_query(f"`{name}`: {low_bound} is more than {high_bound}")
    if low_bound == high_bound:
        return ValueRange(low_bound, high_bound)
    return ValueRange(low_bound or None, None if high_bound == high else high_bound)


def invalid_query(message: str) -> InvalidRequest:
    """The error for a query that cannot be read."""
    return InvalidRequest(f"{QUERY}{message}")
