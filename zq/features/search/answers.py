"""The verbs that complete what somebody types."""

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

from zq.answers import Asked, VerbAnswers
from zq.features.search.service import Suggestions
from zq.model.errors import InvalidRequest
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.verbs import TEXT, Parameter, Verb
from zq.wire.query import QUERY


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


ANSWERS = VerbAnswers()


@ANSWERS.to(SUGGEST)
async def suggest(asked: Asked) -> SuggestionsDocument:
    """Up to 20 values for a filter: those that begin with `q`, then those that contain it.

    `field` says what is completed: `queue`, `type`, `cause`, `status`, or `payload`, which has
    the keys of payloads. Types and keys are those of the latest jobs, of the latest dead ones
    and of the next ones of `queue`. `n` counts jobs, or the failures of a cause.
    """
    values, suggestions = asked.query, asked.services[Suggestions]
    field, typed = values.get("field", ""), values.get("q", "")
    if field not in suggestions.fields:
        known = ", ".join(suggestions.fields)
        raise InvalidRequest(f"{QUERY}`field` must be one of {known}, not {field[:64]!r}")
    if len(typed) > LONGEST:
        raise InvalidRequest(f"{QUERY}`q` is longer than {LONGEST} characters: shorten it")
    queue = check_name("queue", values["queue"]) if "queue" in values else None
    return suggestions_document(await suggestions.complete(field, typed, queue, asked.reach))


@ANSWERS.to(NEAR)
async def near(asked: Asked) -> NearQueuesDocument:
    """True if a queue is `known`, and else up to three names that are `near` its own.

    A queue is known by its jobs, its recent traffic, its settings or its workers.
    """
    queue = check_name("queue", asked.path["queue"])
    found = await asked.services[Suggestions].near(queue, asked.reach)
    return NearQueuesDocument(found.known, list(found.near))
