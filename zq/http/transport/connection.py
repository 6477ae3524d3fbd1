"""One HTTP/1.1 connection: aiohttp's protocol, our answers to bad HTTP, and a watch on its end.

reading.py has the reading side. Here are its requests, which are answered one after the other. A
handler gets a task only if it waits for something other than a tick; see handling.py.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from aiohttp import web, web_protocol
from aiohttp.http import HttpVersion11, StreamWriter
from aiohttp.streams import StreamReader

from zq.http.transport.answer import SMALL, Answer, Responder, Response, what_is_wrong
from zq.http.transport.bodies import is_withheld
from zq.http.transport.channel import Channel, Peer
from zq.http.transport.gate import Gate
from zq.http.transport.handling import Handling
from zq.http.transport.reading import ReadingSide
from zq.http.transport.turns import LoopTurns
from zq.model.clock import Clock
from zq.model.errors import BrokenBody

log = logging.getLogger(__name__)

LINGER_S = 10.0
"""The time for which the unread rest of a body is received and dropped, in seconds. A client may
never see an answer that a reset follows."""


_UNREADABLE = web_protocol.ERROR._replace(version=HttpVersion11)
"""Stands in for a request that is not HTTP. It is answered in HTTP/1.1."""


class Connection(ReadingSide):
    """Serves one connection, and is the channel of the one response that it sends at a time.

    aiohttp parses the bytes, and queues requests that arrive early. It would run a task that makes
    a task for each request; here a request is handled where it arrives.

    A connection that is kept alive may be idle between two requests for as long as aiohttp permits,
    which is an hour. `on_lost` is called once the connection is gone. Handlers wait for `replies`
    without a task.
    """

    def __init__(
        self,
        manager: web.Server,
        responder: Responder,
        replies: type[asyncio.Future[Any]],
        gate: Gate,
        clock: Clock,
        turns: LoopTurns,
        header_timeout: float,
        on_lost: Callable[[], object],
        **options: Any,
    ) -> None:
        super().__init__(manager, responder, gate, clock, turns, header_timeout, **options)
        self._replies = replies
        self._on_lost = on_lost

    def channel(self, request: web.BaseRequest) -> Channel:
        """This connection, since it answers its requests one after the other."""
        return self

    def ask_for_body(self) -> None:
        if self.transport is not None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def unsent(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def withheld(self) -> int:
        return 0

    moved = withheld

    def cut_off(self, found: Peer) -> None:
        if self.transport is not None:
            self.transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for another connection, and end the running handler."""
        self._on_lost()
        super().connection_lost(exc)
        if self._handling is not None:
            self._turns.cancel(self._handling)

    async def start(self) -> None:
        """Do nothing. aiohttp runs this as the task that would serve the requests."""

    async def shutdown(self, timeout: float | None = 15.0) -> None:
        """Give the request under way `timeout` seconds to finish, then end it and close."""
        self._force_close = True
        if self._handling is not None:
            await self._handled_within(timeout)
        if self._handling is not None:
            self._handling.cancel()
            await self._handled_within(timeout)
        self.force_close()

    async def _handled_within(self, timeout: float | None) -> None:
        assert self._handling is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._handling.wait(), timeout)

    def _begin_next(self) -> None:
        self._beginning = True
        try:
            self._begin(*self._messages.popleft())
        finally:
            self._beginning = False

    def _begin(self, message: Any, payload: StreamReader) -> None:
        self._handling = handling = Handling(
            self._serve(message, payload), self._served, self._replies
        )
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()
        handling.begin()

    async def _serve(self, message: Any, payload: StreamReader) -> None:
        assert self._manager is not None
        started = self._loop.time() if self._logging_enabled else None
        self._manager.requests_count += 1
        handler: Any = self._responder
        if isinstance(message, web_protocol._ErrInfo):
            handler, message = self._make_error_handler(message), _UNREADABLE
        writer, factory = StreamWriter(self, self._loop), self._manager.request_factory
        request: web.BaseRequest = factory(message, payload, self, writer, None)  # type: ignore[arg-type]
        self._current_request = request
        response: Response = await handler(request)
        if isinstance(response, Answer):
            if not response.sent:
                await self.send(request, response)
            if self._upgraded:
                self._decline_upgrade()
            if started is not None:
                self.log_access(request, response, started)  # type: ignore[arg-type]
        else:
            _, is_lost = await self.finish_response(request, response, started)
            if is_lost:
                raise ConnectionResetError("the client has gone")
            self._keepalive = bool(response.keep_alive) and self._may_go_on
        if not payload.is_eof() and payload.exception() is None and not is_withheld(request):
            await self._linger(payload)

    @property
    def _may_go_on(self) -> bool:
        """True if another request may follow the one that is answered."""
        return bool(self._messages) or not self._ignoring

    async def send(self, request: web.BaseRequest, answer: Answer) -> None:
        """Write an answer: a small one whole, a larger one as fast as the client takes it."""
        if self.transport is None:
            raise ConnectionResetError("the connection is gone")
        answer.sent = True
        self._keepalive = not answer.closes and request.keep_alive and self._may_go_on
        head = answer.head(request.version, self._keepalive)
        body = b"" if request.method == "HEAD" else answer.body
        if len(body) <= SMALL:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            view = memoryview(body)
            for start in range(0, len(view), SMALL):
                self.transport.write(view[start : start + SMALL])
                await self._drain_helper()
        # The connection may keep the request, but the body that was sent is no longer needed.
        answer.body = b""
        if self._paused:
            await self._drain_helper()

    def _decline_upgrade(self) -> None:
        """Read on after a request that asked for another protocol but was answered in this one."""
        if not self._messages and self._parser is not None:
            self._parser.set_upgraded(False)
            self._upgraded = False
            rest, self._message_tail = self._message_tail, b""
            if rest:
                self.data_received(rest)
            if self._buffer_paused:
                self._resume_reading_if_drained()

    async def _linger(self, payload: StreamReader) -> None:
        """Drop the rest of a body as it arrives, for a while. If that takes too long, close."""
        give_up = partial(payload.set_exception, TimeoutError())
        timer = self._clock.call_later(LINGER_S, give_up)
        try:
            while not payload.is_eof():
                await payload.readchunk()  # `readany` would need memory to join what it drops
        except (TimeoutError, BrokenBody):
            self.close()
        finally:
            timer.cancel()

    def _served(self, error: BaseException | None) -> None:
        """Begin the next request after one is done, or close."""
        self._handling = self._current_request = None
        if error is not None:
            if isinstance(error, ConnectionError | asyncio.CancelledError):
                log.debug("a client has gone", exc_info=error)
            else:
                log.error("a response failed", exc_info=error)
            self.force_close()
        elif self._keepalive and self._may_go_on and not self._close and not self._force_close:
            self._rest()
            if self._messages:
                self.serve_next()
        elif self.transport is not None:
            self.transport.close()

    def _rest(self) -> None:
        """Let the connection be idle, for as long as aiohttp permits."""
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(
                self._next_keepalive_close_time, self._process_keepalive
            )

    def _process_keepalive(self) -> None:
        """Close a connection that has been idle for too long; otherwise check again later."""
        self._keepalive_handle = None
        if self._force_close or not self.is_idle:
            return
        if self._loop.time() < self._next_keepalive_close_time:
            self._keepalive_handle = self._loop.call_at(
                self._next_keepalive_close_time, self._process_keepalive
            )
        else:
            self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> Any:
        """Answer bytes that are not HTTP in the same way as other errors, and close."""
        status, text = what_is_wrong(status, exc)
        log.debug("bad request", extra={"fields": {"status": status, "error": text}})
        response = self._responder.malformed(status, text)
        response.headers = {**response.headers, "Connection": "close"}
        response.closes = True
        return response
