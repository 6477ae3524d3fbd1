"""The verbs that complete what somebody types."""

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

from zq.model.keys import KeyScope
from zq.verbs.parameters import TEXT
from zq.verbs.verb import Parameter, Verb


class SuggestedValue(msgspec.Struct):
    """One value, and how many jobs or failures have it, if that is known.

    A filter takes the `value` in its place, where it is another text: the signature of a cause.
    """

    text: str
    n: int | UnsetType = UNSET
    value: str | UnsetType = UNSET


class SuggestionsDocument(msgspec.Struct):
    """The values that complete what was typed."""

    values: list[SuggestedValue]


class NearQueuesDocument(msgspec.Struct):
    """True if a queue is known, and else the names of known queues that are like its own."""

    known: bool
    near: list[str]


def suggestions_document(
    found: Iterable[tuple[str, int | None, str | None]],
) -> SuggestionsDocument:
    """Suggestions, in their order."""
    return SuggestionsDocument(
        [
            SuggestedValue(text, UNSET if n is None else n, UNSET if value is None else value)
            for text, n, value in found
        ]
    )


LONGEST = 200

SUGGEST = Verb(
    "GET",
    "/suggest",
    KeyScope.READ,
    SuggestionsDocument,
    query=(
        Parameter(
            "field",
            {"type": "string", "enum": ["queue", "type", "cause", "status", "payload"]},
            "What is completed.",
            required=True,
        ),
        Parameter("q", {"type": "string", "maxLength": LONGEST}, "What was typed."),
        Parameter("queue", TEXT, "For jobs of this queue."),
    ),
)
NEAR = Verb("GET", "/queues/{queue}/near", KeyScope.READ, NearQueuesDocument)
