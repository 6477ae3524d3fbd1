"""Lets pages of named sites read answers: CORS, as in the Fetch standard (fetch.spec.whatwg.org).

The guard says whether such a page may send a request at all. Here the browser learns that the page
may see the answer.
"""

from collections.abc import Iterable, Mapping

from aiohttp import hdrs, web

from zq.http.transport.answer import EXTRA_HEADERS, Answer, Responder, Response
from zq.model.errors import ZqError

METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
SHOWN = "Allow, Content-Location, Location, Retry-After, Vary, Zq-Error, Zq-Error-Index"
"""Headers of answers that a page may read besides those that every page may read."""

MAX_AGE_S = 600
"""The time after which a browser asks again about the requests that it may send, in seconds."""


class CrossOrigin:
    """Answers as `responder` does, and tells browsers that pages of some origins may read it."""

    def __init__(self, responder: Responder, origins: Iterable[str]) -> None:
        self._responder = responder
        self._origins = frozenset(origins)

    async def __call__(self, request: web.BaseRequest) -> Response:
        """Answer a request, or the question that a browser asks before it sends one."""
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None or origin.lower() not in self._origins:
            return await self._responder(request)
        shown: dict[str, str] = {hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: origin, hdrs.VARY: hdrs.ORIGIN}
        if request.method == "OPTIONS" and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers:
            return Answer(204, headers={**shown, **_permitted(request)})
        request[EXTRA_HEADERS] = {**shown, hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: SHOWN}
        response = await self._responder(request)
        if isinstance(response, Answer) and not response.sent:
            response.add_headers_of(request)
        return response

    def malformed(self, status: int, text: str) -> Answer:
        """The answer to a request that is not valid HTTP."""
        return self._responder.malformed(status, text)

    def refusal(self, error: ZqError) -> Answer:
        """The answer for a connection on which no request was read."""
        return self._responder.refusal(error)


def _permitted(request: web.BaseRequest) -> Mapping[str, str]:
    """Every method and header that a page may want to send. Routes and keys decide about them."""
    permitted: dict[str, str] = {
        hdrs.ACCESS_CONTROL_ALLOW_METHODS: METHODS,
        hdrs.ACCESS_CONTROL_MAX_AGE: str(MAX_AGE_S),
    }
    wanted = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS)
    if wanted is not None:
        permitted[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = wanted
    return permitted
