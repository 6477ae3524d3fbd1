"""What every endpoint needs: a place, a permit, the answer's format, the body and its format."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import web

from zq.http.answer import Answer
from zq.http.bodies import Bodies
from zq.http.negotiation import answer_codec, body_codec
from zq.model.keys import KeyScope
from zq.wire.codecs import JSON, Codec

Response = Answer | web.StreamResponse
Handler = Callable[[web.BaseRequest], Awaitable[Response]]
Plain = Callable[[web.BaseRequest, Codec], Awaitable[Response]]
WithBody = Callable[[web.BaseRequest, Codec, bytes, Codec], Awaitable[Response]]


class Route(NamedTuple):
    """An endpoint's place and what a key must have for it.

    Its handler's docstring tells users what it does, and `zq.http.description` what it takes and
    answers. A `scope` of None asks for no key. A route that is about the `whole` server is not for
    keys with queue prefixes. One that `ticks` waits for a tick and hardly ever for anything else:
    it can do without a task (see `zq.http.handling`).
    """

    method: str
    path: str
    handler: Handler
    scope: KeyScope | None
    whole: bool = False
    ticks: bool = False

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it answers: where GET is one, HEAD is another."""
        return ("GET", "HEAD") if self.method == "GET" else (self.method,)


def endpoint(serve: Plain) -> Handler:
    """An endpoint without a body: ``serve(request, answer format)``."""

    async def handler(request: web.BaseRequest) -> Response:
        return await serve(request, answer_codec(request))

    handler.__doc__ = serve.__doc__
    return handler


def body_endpoint(
    serve: WithBody, bodies: Bodies, *, reserved: bool, optional: bool = False
) -> Handler:
    """An endpoint that reads a body: ``serve(request, answer format, body, body's format)``.

    `reserved` marks what has a reserved share of memory: everything but new jobs. A body that is
    `optional` may be missing, and then its format is of no account.
    """

    async def handler(request: web.BaseRequest) -> Response:
        accepted = answer_codec(request)
        sent = JSON if optional and not request.can_read_body else body_codec(request)
        body = await bodies.read(request, reserved=reserved)
        try:
            if not reserved:
                await bodies.turns.take(request.transport, len(body))
            return await serve(request, accepted, body, sent)
        finally:
            bodies.release(len(body))

    handler.__doc__ = serve.__doc__
    return handler
