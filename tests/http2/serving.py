"""A listener without a queue behind it."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web

from zq.http.gate import Gate
from zq.http.h2.choice import codec_by
from zq.http.listener import Listener
from zq.model.clock import SystemClock

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


Serving = Callable[[Handler], AbstractAsyncContextManager[int]]
"""`serve` with one of the libraries."""


@asynccontextmanager
async def serve(http2_engine: str, handler: Handler) -> AsyncIterator[int]:
    """The port of a listener whose one handler answers everything."""
    clock = SystemClock()
    gate = Gate(clock, Counter(), max_connections=10, max_per_peer=0)
    make_codec = codec_by(http2_engine)
    listener = Listener(
        handler, "off", gate=gate, clock=clock, header_timeout=60, make_codec=make_codec
    )
    _, port = await listener.start("127.0.0.1", 0)
    yield port
    await listener.stop(0.1)
