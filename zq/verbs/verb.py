"""What a verb of the API is: its path, the scope that a key needs, and what it takes and answers.

A room declares each of its verbs once, in `verbs.py`. Routes, their description and the Python
client, over HTTP and embedded, follow from the declaration. What a verb does is a function in the
room's `answers.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from zq.model.keys import KeyScope

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
