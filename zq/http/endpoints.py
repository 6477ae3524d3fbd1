"""What every endpoint needs: the answer's format, the body and its format."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from zq.http.bodies import Bodies
from zq.http.negotiation import answer_codec, body_codec
from zq.wire.codecs import Codec

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Plain = Callable[[web.Request, Codec], Awaitable[web.StreamResponse]]
WithBody = Callable[[web.Request, Codec, bytes, Codec], Awaitable[web.StreamResponse]]


def endpoint(serve: Plain) -> Handler:
    """An endpoint without a body: ``serve(request, answer format)``."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return await serve(request, answer_codec(request))

    return handler


def body_endpoint(serve: WithBody, bodies: Bodies, *, reserved: bool) -> Handler:
    """An endpoint that reads a body: ``serve(request, answer format, body, body's format)``.

    `reserved` marks what has a reserved share of memory: everything but new jobs.
    """

    async def handler(request: web.Request) -> web.StreamResponse:
        accepted = answer_codec(request)
        sent = body_codec(request)
        body = await bodies.read(request, reserved=reserved)
        try:
            return await serve(request, accepted, body, sent)
        finally:
            bodies.release(len(body))

    return handler
