"""One HTTP/1.1 connection: aiohttp's protocol, our answers to bad HTTP, and a watch on its end.

Requests are answered one after the other. A handler gets a task only if it waits for something
other than a tick; see `Handling`.
"""

import asyncio
import contextlib
import inspect
import logging
import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any

from aiohttp import web, web_protocol
from aiohttp.http import HttpVersion11, StreamWriter
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from zq.http.transport.abuse import MOST_EMPTY
from zq.http.transport.answer import SMALL, Answer, Responder, Response, last_words, what_is_wrong
from zq.http.transport.bodies import is_withheld
from zq.http.transport.channel import Channel, Peer
from zq.http.transport.gate import Gate
from zq.http.transport.turns import (
    LINES_PER_COST,
    PIECE,
    PIECE_COST,
    PIPELINE,
    REQUEST_COST,
    SMALL_READ,
    LoopTurns,
    Share,
)
from zq.http.transport.websocket import guarded
from zq.model.clock import Clock, Timer
from zq.model.errors import BrokenBody

log = logging.getLogger(__name__)

LINGER_S = 10.0
"""The time for which the unread rest of a body is received and dropped, in seconds. A client may
never see an answer that a reset follows."""


_UNREADABLE = web_protocol.ERROR._replace(version=HttpVersion11)
"""Stands in for a request that is not HTTP. It is answered in HTTP/1.1."""

HALF_CLOSED_S = 2.0
"""The time that a request may go on after its client has finished sending, in seconds. One that
takes longer waits for something, and a client that has gone would leave it behind."""


class Connection(web.RequestHandler):
    """Serves one connection, and is the channel of the one response that it sends at a time.

    aiohttp parses the bytes, as far as turns.py allows, and queues requests that arrive early. It
    would run a task that makes a task for each request; here a request is handled where it arrives.

    A header must be complete `header_timeout` seconds after the connection, or the header, began.
    A client may finish sending and still get the answers to what it has asked. A connection that is
    kept alive may be idle between two requests for as long as aiohttp permits, which is an hour.
    `on_lost` is called once the connection is gone. Handlers wait for `replies` without a task.
    """

    streaming = False
    at_end: Callable[[], object] | None = None
    half_closed = False
    """True if the client has finished sending."""

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
        super().__init__(manager, **options)
        self._responder = responder
        self._replies = replies
        self._on_lost = on_lost
        self._gate = gate
        self._clock = clock
        self._header_timeout = header_timeout
        self._header_timer: Timer | None = None
        self._header_begun = False
        self._handling: Handling | None = None
        self._beginning = False
        self._turns = turns
        self._share = Share(turns, self)
        self._patience: asyncio.TimerHandle | None = None
        self._backlog, self._parsed = b"", 0
        """The bytes that have arrived, and how many of them are parsed. The transport is not read
        meanwhile."""
        self._ignoring = False
        """True if nothing that arrives means anything, as after what is not HTTP."""
        self._body: StreamReader = EMPTY_PAYLOAD
        """The body of the latest request."""
        self._since = 0
        """The bytes that have arrived since the latest request began, its body included."""
        self._last = False
        """True if no request may follow the one under way."""

    @property
    def is_idle(self) -> bool:
        """True if no request is under way or waits."""
        return self._handling is None and not self._messages

    # Called by the event loop

    def connection_made(self, transport: Any) -> None:
        """Serve the connection."""
        super().connection_made(transport)
        self._expect_header()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Make room for another connection, forget what was not parsed, and end the handler."""
        self._on_lost()
        self._header_arrived()
        if self._patience is not None:
            self._patience.cancel()
        self._share.end()
        self._backlog, self._parsed = b"", 0
        # A request that still waits for its turn does not begin.
        self._messages.clear()
        super().connection_lost(exc)
        if self._handling is not None:
            self._turns.cancel(self._handling)

    def data_received(self, data: bytes) -> None:
        """Work off what arrives: at once if it is small, otherwise as far as turns.py allows."""
        if not data or (len(data) <= SMALL_READ and self._share.light and not self._backlog):
            # aiohttp calls this without data to parse on where its parser has paused.
            self._parse(data)
            self.serve_next()
        elif not self._ignoring:
            self._backlog = self._backlog[self._parsed :] + data if self._backlog else data
            self._parsed = 0
            self._share.work()

    def eof_received(self) -> bool:  # type: ignore[override]  # aiohttp's always closes
        """Answer what has been asked, though the client has finished sending. Then close.

        A stream ends, even if bytes are unsent, and so does a request that takes longer than
        `HALF_CLOSED_S`: a client that closes looks the same. TLS has no half-close. Returns whether
        the connection stays open.
        """
        if self.streaming:
            self.abort()
        if self.streaming or self._upgraded or self.ssl_context is not None:
            return False
        self.half_closed = True
        self._ignore_rest("the body ended before it was complete: send all of it")
        if self._header_begun and self.is_idle:
            self._say_and_close(400, "bad HTTP request: it ended within its head")
        if self.at_end is not None:
            self.at_end()
        if not self.is_idle:
            # By the clock of the loop, for it is about the network.
            self._patience = asyncio.get_running_loop().call_later(HALF_CLOSED_S, self.abort)
        return not self.is_idle

    # Called by the connection's share of the loop

    def go_on(self, most: int) -> int:
        """Begin requests, and parse what has arrived."""
        cost, most = 0, min(most, PIPELINE)
        while cost < most and self.has_more():
            if self._messages and self._handling is None:
                self._begin_next()
                cost += REQUEST_COST
            else:
                data = self._backlog[self._parsed : self._parsed + PIECE]
                self._parsed += PIECE
                if self._parsed >= len(self._backlog):
                    self._backlog, self._parsed = b"", 0
                self._parse(data)
                cost += PIECE_COST
                # Most bodies are one line, which `find` sees four times as fast as `count`.
                if data.find(b"\n") >= 0:
                    cost += data.count(b"\n") // LINES_PER_COST
        return cost

    def has_more(self) -> bool:
        """True if a request can begin, or the parser takes more."""
        if self._force_close or self._beginning or (self._last and self._handling is None):
            return False
        if self._messages and self._handling is None:
            return True
        return bool(self._backlog) and not (self._reading_paused or self._buffer_paused)

    def hold(self) -> None:
        self._pause_transport_reading()

    def release(self) -> None:
        if not (self._backlog or self._reading_paused or self._buffer_paused or self._share.waits):
            super()._resume_transport_reading()

    def abort(self) -> None:
        """End the connection at once."""
        if self.transport is not None:
            self.transport.abort()

    # Called by aiohttp

    def set_parser(self, parser: Any, data_received_cb: Any = None) -> None:
        """Parse the frames of a WebSocket from now on."""
        super().set_parser(guarded(parser, self.transport, self._clock), data_received_cb)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resume reading where it was paused.

        aiohttp calls this after every part of a body that is read. Its own version would run the
        parser each time, without any bytes to parse.
        """
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def _resume_transport_reading(self) -> None:
        """Read on, once there is no backlog. aiohttp calls this when its own buffers have room."""
        if self._backlog:
            self._share.work()
        else:
            self.release()

    async def start(self) -> None:
        """Do nothing. aiohttp runs this as the task that would serve the requests."""

    async def shutdown(self, timeout: float | None = 15.0) -> None:
        """Give the request under way `timeout` seconds to finish, then end it and close."""
        self.close()
        if self._handling is None:
            self._force_close = True
        else:
            await self._handled_within(timeout)
        if self._handling is not None:
            self._handling.cancel()
            await self._handled_within(timeout)
        self.force_close()

    def close(self) -> None:
        """Begin no further request, and close after the one under way.

        aiohttp's version drops all that arrives from then on, so it waits for a body under way.
        """
        self._last = True
        if self._handling is None or not self._in_body:
            super().close()

    async def _handled_within(self, timeout: float | None) -> None:
        assert self._handling is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._handling.wait(), timeout)

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

    # Called by the handler, whose channel it is

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

    # What arrives

    def _parse(self, data: bytes) -> None:
        """Parse bytes, and check that each header is complete in time."""
        if self._ignoring and data:
            return
        # aiohttp has no public name for the headers that it has read, nor for an idle connection.
        before = self._request_count
        super().data_received(data)
        if self._request_count != before:
            self._header_arrived()
            self._since = 0
            message, body = self._messages[-1]
            if isinstance(message, web_protocol._ErrInfo):
                self._malformed(message)
            else:
                self._body = body
            return
        self._since += len(data)
        if self._since > MOST_EMPTY:
            self._check_emptiness()
        if self._header_timer is not None or self.is_idle:
            self._header_begun = True
            if self._header_timer is None:
                self._expect_header()

    def serve_next(self) -> None:
        """Begin the next request, unless one is under way or others have their turn.

        A request that ends at once calls this again. That inner call returns, and the outer one
        begins the next request: many requests that came together do not recurse.
        """
        if not self._messages or self._handling is not None or self._beginning:
            return
        if len(self._messages) == 1 and self._share.light and not self._force_close:
            if self._turns.uncounted:
                self._turns.uncounted -= 1
            elif not self._turns.may_begin(self):
                return
            self._begin_next()
        if self._messages or self._backlog:
            self._share.work()

    @property
    def _in_body(self) -> bool:
        """True if more of a body is expected."""
        return not self._body.is_eof() and self._body.exception() is None

    def _malformed(self, error: Any) -> None:
        """Answer what is not HTTP: by an answer of its own, or to the request with that body."""
        if len(self._messages) > 1:
            self._body = self._messages[-2][1]
        if self._in_body:
            self._messages.pop()
        _, text = what_is_wrong(error.status, error.exc)
        self._ignore_rest(text)

    def _check_emptiness(self) -> None:
        """End a connection that sends neither requests nor content."""
        if self._upgraded or self._since <= 2 * self._body.total_bytes + MOST_EMPTY:
            return
        if self._in_body:
            text = (
                "the body's chunks have hardly anything in them: send larger chunks, and fewer"
                " extensions and trailers"
            )
        else:
            text = f"bad HTTP request: {MOST_EMPTY} bytes without a request"
        self._ignore_rest(text)
        if self.is_idle:
            self._say_and_close(400, text)

    def _ignore_rest(self, text: str) -> None:
        """Drop what still arrives. A body under way is never complete: `text` says why."""
        self._ignoring = True
        self._backlog, self._parsed = b"", 0
        if self._in_body:
            self._body.set_exception(BrokenBody(text))

    def _say_and_close(self, status: int, text: str) -> None:
        if self.transport is not None:
            self.transport.write(last_words(self._responder.malformed(status, text)))
        self.force_close()

    # The requests

    def _begin_next(self) -> None:
        """Begin the next request. The caller knows that there is one, and none under way."""
        self._beginning = True
        try:
            handler = self._serve(*self._messages.popleft())
            self._handling = Handling(handler, self._served, self._replies)
            if self._parser is not None:
                self._parser.message_consumed()
            if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
                self._resume_reading_if_drained()
            self._handling.begin()
        finally:
            self._beginning = False

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
        return not self._last and (bool(self._messages) or not self._ignoring)

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
        elif self._keepalive and self._may_go_on and not self._force_close:
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

    # The time of a header

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


class Handling:
    """Runs one handler from `begin` to its end. `ended` is called with its error, or with None.

    Most requests wait for one tick and nothing else. A task for each of them would cost as much as
    their work, because the event loop makes it, schedules it, wakes it and passes its end on. So a
    handler that waits for one of the `replies` is resumed by it directly. For anything else it
    waits in a task, as usual.
    """

    __slots__ = ("_cancelled", "_coroutine", "_ended", "_replies", "_waits_for")

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
        self._cancelled = False
        """Set if the handler is to end when it is resumed."""

    def begin(self) -> None:
        """Run the handler until it has to wait. `ended` may be called before this returns."""
        self._step(None)

    def cancel(self) -> None:
        """End the handler where it waits. The commands that it has submitted still run."""
        if self._waits_for is not None and not self._waits_for.cancel():
            self._cancelled = True  # The reply has come, and is about to resume the handler.

    async def wait(self) -> None:
        """Wait until the handler has ended."""
        while self._waits_for is not None:
            await asyncio.wait([self._waits_for])

    def _step(self, waited_for: asyncio.Future[Any] | None) -> None:
        self._waits_for = None
        try:
            if self._cancelled:
                self._cancelled = False
                awaited = self._coroutine.throw(asyncio.CancelledError())
            else:
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
        if inspect.getcoroutinestate(self._coroutine) == inspect.CORO_SUSPENDED:
            # The task was cancelled before its first turn, so the handler does not know of it.
            self._cancelled = True
            self._step(task)
            return
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
