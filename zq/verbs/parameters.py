"""Parameters that routes share, with their JSON schemas."""

from enum import StrEnum
from typing import Any

from zq.model.job import MAX_PRIORITY
from zq.model.lifecycle import NAMES
from zq.model.outcome import MOST_WAIT_MS
from zq.model.words import MOST_WORDS
from zq.verbs.verb import Parameter
from zq.wire.filters import DEFAULT_LIMIT, MAX_LIMIT, ZIZQS

WHOLE = {"type": "integer", "minimum": 0}
TEXT = {"type": "string"}
_RANGE = {"type": "string", "pattern": r"^(\d*|\d*\.\.\d*)$"}
_BOUNDED = {"type": "string", "pattern": r"^(\d+|\d+\.\.|\.\.\d+|\d+\.\.\d+)$"}
_PLACE = {"type": "string", "pattern": "^([0-9A-Z]{26})?$"}
_PROGRAM = {"type": "string", "minLength": 1}


def names(*known: str) -> dict[str, Any]:
    """The schema of a list of names: any names, or some of the known ones."""
    return {
        "type": "array",
        "items": {"type": "string", "enum": list(known)} if known else TEXT,
    }


def choices(kind: type[StrEnum]) -> dict[str, Any]:
    """The schema of a choice among these."""
    return {"type": "string", "enum": list(kind)}


_FILTERS = (
    Parameter("status", names(*NAMES.values()), "Any of these statuses."),
    Parameter("queue", names(), "Any of these queues."),
    Parameter("type", names(), "Any of these types."),
    Parameter("group", names(), "Any of these groups."),
    Parameter("id", names(), "Any of these jobs."),
    Parameter(
        "priority", _RANGE, f"A number up to {MAX_PRIORITY}, or a range: `5`, `5..`, `1..5`."
    ),
    Parameter("ready_at", _RANGE, "A time in milliseconds, or a range."),
    Parameter("finished_at", _RANGE, "When it was completed, died, was cancelled or expired."),
    Parameter("attempts", _RANGE, "A number of failures, or a range."),
    Parameter("budgets.key", names(), "Any of these budgets."),
    Parameter("error", names(), "A latest failure of any of these groups, by signature."),
    Parameter("filter", _PROGRAM, "A jq program over the payload that answers true."),
    Parameter("upto", _PLACE, "Only jobs up to this id: none that arrived after that one."),
    Parameter(
        "search",
        _PROGRAM,
        f"Words that all occur in the type, the message of the latest failure or the payload: up to"
        f" {MOST_WORDS}. Words in double quotes are one.",
    ),
)


def _choosing(parameter: Parameter) -> Parameter:
    """A filter of a request that changes its jobs. It must not be empty."""
    schema = parameter.schema
    if schema["type"] == "array":
        some = {"items": {"minLength": 1, **schema["items"]}, "minItems": 1}
        return parameter._replace(schema={**schema, **some})
    if schema is _PLACE:
        return parameter._replace(schema={"type": "string", "pattern": "^[0-9A-Z]{26}$"})
    return parameter._replace(schema=_BOUNDED) if schema is _RANGE else parameter


CHOICE = tuple(map(_choosing, _FILTERS))
FILTERS = tuple(each if each.name in ZIZQS else _choosing(each) for each in _FILTERS)
"""Filters for reading. An empty value of one that Zizq has filters nothing, except for `filter`."""

PAGING = (
    Parameter("from", TEXT, "Begin after this place: the `id` or number of the last row shown."),
    Parameter("order", {"type": "string", "enum": ["asc", "desc"]}, "The direction: `asc`."),
    Parameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
        f"Rows a page, {DEFAULT_LIMIT}.",
    ),
)
WAIT = Parameter(
    "wait_ms",
    {"type": "integer", "minimum": 0, "maximum": MOST_WAIT_MS},
    "How long to wait for the job to be finished, in milliseconds.",
)
KEY = Parameter("key", TEXT, "The unique key.", required=True)
KEY_QUEUE = Parameter("queue", TEXT, "The queue to which the key belongs, if it belongs to one.")
SEARCH = Parameter(
    "search_ms",
    {"type": "integer", "minimum": 0, "maximum": 60_000},
    "How long to search by `search` or `filter` before the answer ends with what was found.",
)
LAST_ERROR = Parameter("last_error", {"type": "boolean"}, "With the latest failure of each job.")
ONWARD = Parameter("from", TEXT, "With a search: count the jobs after this place.")
FIFTY = Parameter(
    "limit", {"type": "integer", "minimum": 1, "maximum": 500}, "How many at most: 50."
)
HUNDRED = Parameter("limit", WHOLE, "How many at most: 1 to 1,000; 100 by default.")
