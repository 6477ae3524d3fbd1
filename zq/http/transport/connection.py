"""One HTTP/1.1 connection: aiohttp's protocol, our answers to bad HTTP, and a watch on its end.

A handler gets a task only if it waits for something other than a tick. Most requests wait for one
tick and nothing else. A task for each of them would cost as much as their work, because the event
loop makes it, schedules it, wakes it and passes its end on. Here the tick's reply resumes the
handler directly.
"""

import asyncio
import contextlib
import logging
import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any

from aiohttp import StreamReader, web, web_protocol
from aiohttp.http import StreamWriter

from zq.http.transport.answer import SMALL, Answer, Responder, Response, last_words, what_is_wrong
from zq.http.transport.bodies import is_withheld
from zq.http.transport.channel import Channel, Peer
from zq.http.transport.gate import Gate
from zq.http.transport.websocket import guarded
from zq.model.clock import Clock, Timer

log = logging.getLogger(__name__)

LINGER_S = 10.0
"""For so long the unread rest of a body is received and dropped. A client may never see an answer
that a reset follows."""


class Connection(web.RequestHandler):
    """Serves one connection, and is the channel of the one response that it sends at a time.

    aiohttp parses the bytes, and queues requests that arrive early. It would run a task that makes
    a task for each request; here a request is handled where it arrives.

    A header must be complete `header_timeout` seconds after the connection, or the header, began.
    A connection that is kept alive may be idle between two requests for as long as aiohttp permits,
    which is an hour. `on_lost` is called once the connection is gone. Handlers wait for `replies`
    without a task.
    """

    streaming = False

    def __init__(
        self,
        manager: web.Server,
        responder: Responder,
        replies: type[asyncio.Future[Any]],
        gate: Gate,
        clock: Clock,
        header_timeout: float,
        on_lost: Callable[[], object],
        **options: Any,
    ) -> None:
        super().__init__(manager, **options)
        self._responder = responder
        self._replies = replies
        self._gate = gate
        self._clock = clock
        self._header_timeout = header_timeout
        self._on_lost = on_lost
        self._header_timer: Timer | None = None
        self._header_begun = False
        self._handling: Handling | None = None
        self._beginning = False

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

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Serve the connection."""
        super().connection_made(transport)
        self._expect_header()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for another connection, and end the running handler."""
        self._header_arrived()
        self._on_lost()
        super().connection_lost(exc)
        if self._handling is not None:
            self._handling.cancel()

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

    def data_received(self, data: bytes) -> None:
        """Parse the bytes that arrive, and check that each header is complete in time."""
        # aiohttp has no public name for the headers that it has read, nor for an idle connection.
        before = self._request_count
        super().data_received(data)
        if self._request_count != before:
            self._header_arrived()
        elif self._header_timer is not None or self._is_idle:
            self._header_begun = True
            if self._header_timer is None:
                self._expect_header()
        if self._messages:
            self._serve_next()

    def set_parser(self, parser: Any, data_received_cb: Any = None) -> None:
        super().set_parser(guarded(parser, self.transport, self._clock), data_received_cb)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resume reading where it was paused.

        aiohttp calls this after every part of a body that is read. Its own version would run the
        parser each time, without any bytes to parse.
        """
        if self._reading_paused:
            super().resume_reading(resume_parser)

    @property
    def _is_idle(self) -> bool:
        return self._handling is None and not self._messages

    def _serve_next(self) -> None:
        """Begin the next request, unless one is under way.

        A request that ends at once calls this again. That inner call returns, and the loop of the
        outer one begins the next request: many requests that came together do not recurse.
        """
        if self._beginning:
            return
        self._beginning = True
        try:
            while self._messages and self._handling is None and not self._force_close:
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
            handler, message = self._make_error_handler(message), web_protocol.ERROR
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
            self._keepalive = bool(response.keep_alive)
        if not payload.is_eof() and not is_withheld(request):
            await self._linger(payload)

    async def send(self, request: web.BaseRequest, answer: Answer) -> None:
        """Write an answer: a small one whole, a larger one as fast as the client takes it."""
        if self.transport is None:
            raise ConnectionResetError("the connection is gone")
        answer.sent = True
        self._keepalive = not answer.closes and request.keep_alive
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
                await payload.readany()
        except TimeoutError:
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
        elif self._keepalive and not self._close and not self._force_close:
            self._rest()
            if self._messages:
                self._serve_next()
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
        if self._force_close or not self._is_idle:
            return
        if self._loop.time() < self._next_keepalive_close_time:
            self._keepalive_handle = self._loop.call_at(
                self._next_keepalive_close_time, self._process_keepalive
            )
        else:
            self.force_close()

    def _expect_header(self) -> None:
        self._header_timer = self._clock.call_later(self._header_timeout, self._give_up)

    def _header_arrived(self) -> None:
        self._header_begun = False
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _give_up(self) -> None:
        error = self._gate.too_slow()
        # A client that has sent nothing at all expects no answer.
        if self._header_begun and self.transport is not None:
            self.transport.write(last_words(self._responder.refusal(error)))
        self.force_close()

    def eof_received(self) -> None:
        """End a stream when its peer has finished sending, even if bytes are unsent."""
        if self.streaming and self.transport is not None:
            self.transport.abort()

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


class Handling:
    """Runs one handler from `begin` to its end. `ended` is called with its error, or with None.

    A handler that waits for one of the `replies` is resumed by it directly. For anything else it
    waits in a task, as usual.
    """

    __slots__ = ("_coroutine", "_ended", "_replies", "_waits_for")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, None],
        ended: Callable[[BaseException | None], object],
        replies: type[asyncio.Future[Any]],
    ) -> None:
        self._coroutine = coroutine
        self._ended = ended
        self._replies = replies
        self._waits_for: asyncio.Future[Any] | None = None

    def begin(self) -> None:
        """Run the handler until it has to wait. `ended` may be called before this returns."""
        self._step(None)

    def cancel(self) -> None:
        """End the handler where it waits. The commands that it has submitted still run."""
        if self._waits_for is not None:
            self._waits_for.cancel()

    async def wait(self) -> None:
        """Wait until the handler has ended."""
        while self._waits_for is not None:
            await asyncio.wait([self._waits_for])

    def _step(self, waited_for: asyncio.Future[Any] | None) -> None:
        self._waits_for = None
        try:
            awaited = self._coroutine.send(None)
        except StopIteration:
            self._ended(None)
        except (Exception, asyncio.CancelledError) as error:
            self._ended(error)
        else:
            self._wait(awaited)

    def _wait(self, awaited: Any) -> None:
        if isinstance(awaited, self._replies):
            # A task marks a future that it waits for in the same way.
            awaited._asyncio_future_blocking = False
            self._waits_for = awaited
            awaited.add_done_callback(self._step)
        else:
            task = asyncio.get_running_loop().create_task(_resumed(self._coroutine, awaited))
            self._waits_for = task
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._waits_for = None
        self._ended(asyncio.CancelledError() if task.cancelled() else task.exception())


async def _resumed(coroutine: Coroutine[Any, Any, None], awaited: Any) -> None:
    # Python 3.12 makes tasks of nothing but coroutine functions.
    await _rest(coroutine, awaited)


@types.coroutine
def _rest(coroutine: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    """The rest of a coroutine that has begun and waits for `awaited`."""
    while True:
        try:
            if awaited is not None:  # One turn of the loop has passed by now.
                yield awaited
        except BaseException as error:
            try:
                awaited = coroutine.throw(error)
            except StopIteration:
                return
        else:
            yield from coroutine  # The coroutine goes on at the same place.
            return
