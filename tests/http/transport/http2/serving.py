"""A listener without a queue behind it."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web

from zq.engine.inbox import PendingReply
from zq.http.transport.answer import Answer, Response
from zq.http.transport.gate import Gate
from zq.http.transport.h2.codec import codec_by
from zq.http.transport.listener import Listener
from zq.http.transport.turns import LoopTurns
from zq.model.clock import SystemClock
from zq.model.errors import ZqError

Handler = Callable[[web.BaseRequest], Awaitable[Response]]


class Answering:
    """One handler that answers everything, and says nothing by itself but a status."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, request: web.BaseRequest) -> Response:
        return await self._handler(request)

    def malformed(self, status: int, text: str) -> Answer:
        return Answer(status)

    def refusal(self, error: ZqError) -> Answer:
        return Answer(503)


Serving = Callable[[Handler], AbstractAsyncContextManager[int]]
"""`serve` with one of the libraries."""


@asynccontextmanager
async def serve(http2_engine: str, handler: Handler, patience: float = 0.1) -> AsyncIterator[int]:
    """The port of a listener whose one handler answers everything. It stops with this patience."""
    clock = SystemClock()
    gate = Gate(clock, Counter(), max_connections=10, max_per_peer=0)
    make_codec = codec_by(http2_engine)
    listener = Listener(
        Answering(handler),
        "off",
        replies=PendingReply,
        gate=gate,
        clock=clock,
        turns=LoopTurns(),
        header_timeout=60,
        make_codec=make_codec,
    )
    _, port = await listener.start("127.0.0.1", 0)
    yield port
    await listener.stop(patience)
