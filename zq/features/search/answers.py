"""What the verbs do that complete what somebody types."""

from zq.answers import Asked, VerbAnswers
from zq.features.search import verbs
from zq.features.search.service import Suggestions
from zq.features.search.verbs import NearQueuesDocument, SuggestionsDocument, suggestions_document
from zq.model.errors import InvalidRequest
from zq.model.names import check_name
from zq.wire.query import QUERY

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.SUGGEST)
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
    if len(typed) > verbs.LONGEST:
        raise InvalidRequest(f"{QUERY}`q` is longer than {verbs.LONGEST} characters: shorten it")
    queue = check_name("queue", values["queue"]) if "queue" in values else None
    return suggestions_document(await suggestions.complete(field, typed, queue, asked.reach))


@ANSWERS.to(verbs.NEAR)
async def near(asked: Asked) -> NearQueuesDocument:
    """True if a queue is `known`, and else up to three names that are `near` its own.

    A queue is known by its jobs, its recent traffic, its settings or its workers.
    """
    queue = check_name("queue", asked.path["queue"])
    found = await asked.services[Suggestions].near(queue, asked.reach)
    return NearQueuesDocument(found.known, list(found.near))
