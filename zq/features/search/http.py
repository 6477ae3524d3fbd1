"""GET /suggest: what completes a filter, and GET /queues/{queue}/near: names like this one."""

from aiohttp import web

from zq.features.search.service_suggestions import Suggestions
from zq.features.search.wire import NearQueuesDocument, suggestions_document
from zq.http.api.endpoints import answer, endpoint
from zq.http.api.parts import ApiParts
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.wire.codecs import BodyCodec
from zq.wire.query import QUERY

LONGEST = 200


class SuggestApi:
    """The endpoints."""

    def __init__(self, parts: ApiParts) -> None:
        self._suggestions = parts.services[Suggestions]

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/suggest", endpoint(self.suggest), KeyScope.READ, query=True),
            Route("GET", "/queues/{queue}/near", endpoint(self.near), KeyScope.READ),
        ]

    async def suggest(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Up to 20 values for a filter: those that begin with `q`, then those that contain it.

        `field` says what is completed: `queue`, `type`, `cause`, `status`, or `payload`, which has
        the keys of payloads. Types and keys are those of the latest jobs, of the latest dead ones
        and of the next ones of `queue`. `n` counts jobs, or the failures of a cause.
        """
        values = parameters(request, ("field", "q", "queue"))
        field, typed = values.get("field", ""), values.get("q", "")
        if field not in self._suggestions.fields:
            known = ", ".join(self._suggestions.fields)
            raise InvalidRequest(f"{QUERY}`field` must be one of {known}, not {field[:64]!r}")
        if len(typed) > LONGEST:
            raise InvalidRequest(f"{QUERY}`q` is longer than {LONGEST} characters: shorten it")
        queue = check_name("queue", values["queue"]) if "queue" in values else None
        found = await self._suggestions.complete(field, typed, queue, reach_of(request))
        return answer(suggestions_document(found), accepted)

    async def near(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """True if a queue is `known`, and else up to three names that are `near` its own.

        A queue is known by its jobs, its recent traffic, its settings or its workers.
        """
        parameters(request, ())
        queue = check_name("queue", request[PATH]["queue"])
        found = await self._suggestions.near(queue, reach_of(request))
        return answer(NearQueuesDocument(found.known, list(found.near)), accepted)


APIS = (SuggestApi,)
