"""What a verb of the API is, and the parameters and refusals that verbs share.

A room declares each of its verbs once, in `verbs.py`: its path, the scope that a key needs, and
what it takes and answers. Routes, their description and the Python client, over HTTP and embedded,
follow from the declaration. What a verb does is a function in the room's `answers.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import NoneType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from zq.model.job import MAX_PRIORITY
from zq.model.keys import KeyScope
from zq.model.lifecycle import NAMES
from zq.model.settling import MOST_WAIT_MS
from zq.model.words import MOST_WORDS
from zq.wire.query import DEFAULT_LIMIT, MAX_LIMIT, ZIZQS

NO_JOB = {404: "There is no such job."}
ENDED = {409: "The job's status does not allow that."}
FULL = {
    429: "A queue is full: try again after `Retry-After` seconds.",
    507: "There is no room for new jobs.",
}
UNBUILT = {422: "A feature that this version does not have."}


T = TypeVar("T")
S = TypeVar("S")

REPEATABLE = ("GET", "PUT", "PATCH")
"""Methods of verbs that have the same effect if they are sent again."""


class Parameter(NamedTuple):
    """One parameter of a query, or a header, with its JSON schema."""

    name: str
    schema: Mapping[str, Any]
    text: str
    required: bool = False
    place: str = "query"


@dataclass(frozen=True, eq=False)
class Verb(Generic[T]):
    """One verb. `answer` is the type of its document; `NoneType` means that there is none.

    `body` is the type of what it takes, which may be left out if it is `optional`. `refusals` are
    the errors, by status, besides those of all verbs. A verb about the `whole` server is not for
    keys with queue prefixes. Clients may have the list in the field `lines` of its document as
    NDJSON, and may compress the body of one that `takes_gzip`.
    """

    method: str
    path: str
    scope: KeyScope
    answer: type[T]
    body: Any = None
    optional: bool = False
    query: tuple[Parameter, ...] = ()
    refusals: Mapping[int, str] = field(default_factory=dict)
    whole: bool = False
    created: bool = False
    lines: str = ""
    takes_gzip: bool = False

    @property
    def status(self) -> int:
        """The status of a success: 201 if something is `created`, 204 without a document."""
        if self.answer is NoneType:
            return 204
        return 201 if self.created else 200

    @property
    def is_repeatable(self) -> bool:
        """True if a client may send it again when it does not know whether it was carried out."""
        return self.method in REPEATABLE

    def at(self, names: Mapping[str, str]) -> str:
        """The path with these names in it, percent-encoded."""
        return self.path.format_map({name: quote(said, safe="") for name, said in names.items()})

    def read_as(self, answer: type[S]) -> "Verb[S]":
        """This verb for a client that reads the answer as another type. `NoneType` ignores it."""
        return replace(self, answer=answer)  # type: ignore[arg-type, return-value]


class Deleted(msgspec.Struct):
    """How many jobs were deleted."""

    deleted: int


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


class Operation(NamedTuple):
    """The parameters and answers of a route that is no verb.

    `answers` maps a status to the types of its document; None means no document.
    `refusals` are the errors, by status, besides those of all routes. A route with `streams`
    answers with one document after the other, in these media types. With `plain_refusal` a 400 is
    plain text.
    """

    answers: Mapping[int, Any]
    body: Any = None
    optional_body: bool = False
    parameters: tuple[Parameter, ...] = ()
    refusals: Mapping[int, str] = {}
    streams: tuple[str, ...] = ()
    plain_refusal: bool = False
