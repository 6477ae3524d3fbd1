"""GET /events of the admin API: the changing lists of unfinished jobs, over a WebSocket."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from aiohttp import WSCloseCode, WSMsgType, web

from zq import __version__
from zq.features.audit.model import OperatorAction
from zq.features.audit.service import Audit
from zq.http.api.endpoints import answer
from zq.http.door import Route
from zq.http.guard import KEY, Guard, actor_of
from zq.http.transport.answer import Response
from zq.http.transport.channel import channel_of, watch_for_end
from zq.http.transport.gate import peer_of
from zq.http.transport.heartbeats import Heartbeats, HeartbeatTimer
from zq.model.clock import Clock
from zq.model.errors import ScopeMissing, ZqError
from zq.model.ids import IdCodec
from zq.model.keys import KeyScope
from zq.model.reach import EVERYWHERE
from zq.operators.admin.engine import Frame, JobChange, Viewer, Viewers, WindowEvent
from zq.operators.admin.model import NO_JOBS, FoundJob, ListName, ListsView
from zq.operators.admin.wire import (
    MAX_MESSAGE,
    ChangeEvent,
    DeleteMessage,
    DetailMessage,
    ErrorEvent,
    FindEvent,
    FindMessage,
    HeartbeatEvent,
    ServerStatus,
    SnapshotEvent,
    SubscribeMessage,
    ViewerMessage,
    decode_message,
    encode_event,
    listed,
    window_document,
)
from zq.operators.ops.http_quick import API_VERSION
from zq.service.services import Services
from zq.wire.codecs import JSON
from zq.wire.ids import key_of


class FrameTexts:
    """Writes frames and answers as messages."""

    def __init__(self, clock: Clock, ids: IdCodec, began: float) -> None:
        """The server `began` at this monotonic time, in seconds."""
        self._clock = clock
        self._ids = ids
        self._began = began

    def frame(self, frame: Frame, before: Frame | None, detail: bool) -> Sequence[bytes]:
        """The messages for a frame: the whole frame, or the changes since the frame `before`."""
        is_next = before is not None and frame.number == before.number + 1
        if not is_next or frame.changes is None:
            return self._once(frame, ("whole", detail), self._whole)
        return self._once(frame, ("changes", detail), self._changes)

    def heartbeat(self, frame: Frame) -> bytes:
        """The message that nothing has changed."""
        return encode_event(HeartbeatEvent(self._server(frame.sight.totals)))

    def found(self, list: ListName, found: FoundJob, detail: bool) -> bytes:
        """The message with the result of a search."""
        window = window_document(found.window, self._ids, detail)
        server = self._server(found.totals)
        return encode_event(FindEvent(server, list.value, found.position, window))

    def error(self, frame: Frame, error: ZqError) -> bytes:
        """The message that says why another message was refused."""
        server = self._server(frame.sight.totals)
        return encode_event(ErrorEvent(server, error.message, error.code))

    def _once(
        self, frame: Frame, key: tuple[str, bool], write: Callable[[Frame, bool], Sequence[bytes]]
    ) -> Sequence[bytes]:
        texts: Sequence[bytes] | None = frame.texts.get(key)
        if texts is None:
            texts = frame.texts[key] = write(frame, key[1])
        return texts

    def _whole(self, frame: Frame, detail: bool) -> Sequence[bytes]:
        windows = {
            list.value: window_document(window, self._ids, detail)
            for list, window in frame.sight.windows.items()
        }
        return [encode_event(SnapshotEvent(self._server(frame.sight.totals), **windows))]

    def _changes(self, frame: Frame, detail: bool) -> Sequence[bytes]:
        server = self._server(frame.sight.totals)
        if not frame.changes:
            return [encode_event(HeartbeatEvent(server))]
        return [encode_event(self._change(change, server, detail)) for change in frame.changes]

    def _change(self, change: JobChange, server: ServerStatus, detail: bool) -> ChangeEvent:
        id = self._ids.text(change.key)
        job = None if change.job is None else listed(change.job, id, detail)
        return ChangeEvent(server, id, _status(change), job)

    def _server(self, totals: dict[ListName, int]) -> ServerStatus:
        uptime = round((self._clock.monotonic() - self._began) * 1000)
        return ServerStatus(
            API_VERSION,
            uptime,
            totals[ListName.READY],
            totals[ListName.IN_FLIGHT],
            totals[ListName.SCHEDULED],
            zq=__version__,
        )


def _status(change: JobChange) -> str:
    """The word for it in Zizq's clients."""
    match change.passage:
        case WindowEvent.ENTERED:
            return change.list.value
        case WindowEvent.LEFT:
            return f"{change.list.value}_removed"
        case WindowEvent.COMPLETED:
            return "completed"
        case WindowEvent.FAILED:
            return "dead"


log = logging.getLogger(__name__)

HEARTBEAT_S = 2.0
STALL_S = 30.0
"""The time in seconds after which a viewer that reads nothing is cut off."""

GOODBYE_S = 0.5
"""The time that a viewer has to answer the close of its connection."""

UPGRADE_REQUIRED = "this is a WebSocket: ask for an upgrade to it, over HTTP/1.1"


class ViewersApi:
    """The endpoint."""

    def __init__(self, services: Services, guard: Guard, began: float) -> None:
        """The server `began` at this monotonic time, in seconds."""
        self._services = services
        self._guard = guard
        self._texts = FrameTexts(services.clock, services.ids, began)
        self._heartbeats = HeartbeatTimer(
            services.clock, heartbeat=HEARTBEAT_S, stall_timeout=STALL_S
        )

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/events", self.events, KeyScope.READ, whole=True)]

    async def events(self, request: web.BaseRequest) -> Response:
        """Show the changing lists of ready, scheduled and in-flight jobs over a WebSocket.

        It begins with a `job_snapshot` of the first 200 jobs of each list. After that, at most ten
        times a second, come the changes, or another snapshot if that is shorter. A `heartbeat`
        comes after two seconds without either. A viewer that reads slowly sees fewer moments.
        """
        socket = web.WebSocketResponse(timeout=GOODBYE_S, compress=False, max_msg_size=MAX_MESSAGE)
        if request.version.major != 1 or not socket.can_prepare(request).ok:
            headers = {"Upgrade": "websocket"} if request.version.major == 1 else {}
            return answer({"error": UPGRADE_REQUIRED}, JSON, 426, headers)
        with self._services.engine[Viewers].one_more() as viewer:
            await socket.prepare(request)
            channel = channel_of(request)
            if channel.transport is not None:
                nudges = self._heartbeats.begin(channel, viewer.nudge, {"stream": "viewer"})
                try:
                    with watch_for_end(channel), self._guard.while_granted(request, viewer.end):
                        key = request.get(KEY)
                        may_delete = key is None or KeyScope.MANAGE in key.scopes
                        who = peer_of(request.transport), actor_of(request)
                        conversation = _Conversation(
                            *(self._services, self._texts, viewer, socket, nudges, may_delete, who)
                        )
                        await conversation.run()
                finally:
                    nudges.stop()
        return socket


class _Conversation:
    """One viewer: its messages and its frames, each at its own pace."""

    def __init__(
        self,
        services: Services,
        texts: FrameTexts,
        viewer: Viewer,
        socket: web.WebSocketResponse,
        heartbeats: Heartbeats,
        may_delete: bool,
        who: tuple[str, str | None],
    ) -> None:
        self._services = services
        self._viewers = services.engine[Viewers]
        self._texts = texts
        self._viewer = viewer
        self._socket = socket
        self._heartbeats = heartbeats
        self._may_delete = may_delete
        self._who = who
        """The address of its viewer, and the name of the key."""
        self._view = ListsView()
        self._detail = False
        self._shown: Frame | None = None
        """The last frame that was sent; None if the next one must be sent whole."""
        self._sending = asyncio.Lock()

    async def run(self) -> None:
        """Run until either side ends the connection."""
        try:
            await self._switch(self._view)
        except ZqError as error:
            await self._socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=error.code.encode())
            return
        listening = asyncio.create_task(self._listen())
        showing = asyncio.create_task(self._show())
        try:
            await asyncio.wait((listening, showing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (listening, showing):
                task.cancel()
            ends = await asyncio.gather(listening, showing, return_exceptions=True)
        code = WSCloseCode.GOING_AWAY
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, ConnectionError):
                log.error("a viewer could not be served", exc_info=end)
                code = WSCloseCode.INTERNAL_ERROR
        if not self._socket.closed:
            await self._socket.close(code=code)

    # Its messages

    async def _listen(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                await self._hear(message.data)

    async def _hear(self, text: str) -> None:
        """Do what a message says. If it is wrong, answer with an error and change nothing."""
        try:
            await self._obey(decode_message(text))
        except ZqError as error:
            await self._send(self._texts.error(self._latest(), error))

    async def _obey(self, message: ViewerMessage) -> None:
        match message:
            case SubscribeMessage():
                request = message.request(self._services.ids)
                await self._switch(self._view.changed(message.list, request))
            case DetailMessage(detail=detail):
                self._detail = detail
                self._show_whole()
            case DeleteMessage(id=id):
                if not self._may_delete:
                    raise ScopeMissing("this key does not have the scope manage, which this needs")
                # If the viewer goes meanwhile, the record is made all the same.
                await asyncio.shield(self._delete(key_of(id, self._services.ids)))
            case FindMessage():
                await self._find(message)

    async def _delete(self, key: int) -> None:
        await self._services.jobs.delete(key, EVERYWHERE)
        path = f"/jobs/{self._services.ids.text(key)}"
        now, (address, actor) = self._services.clock.now_ms(), self._who
        action = OperatorAction(now, "DELETE", path, 204, address, actor)
        await self._services[Audit].record(action)

    async def _switch(self, view: ListsView) -> None:
        await self._viewers.show(self._viewer, view)
        self._view = view
        self._show_whole()

    def _show_whole(self) -> None:
        self._shown = None
        self._viewer.nudge()

    async def _find(self, message: FindMessage) -> None:
        search = message.search(self._services.ids)
        if search is None:
            found = FoundJob(None, NO_JOBS, self._latest().sight.totals)
        else:
            found = await self._viewers.search(search)
        await self._send(self._texts.found(message.list, found, self._detail))

    # Its frames

    async def _show(self) -> None:
        while not self._viewer.ended:
            frame = self._latest()
            if frame is not self._shown:
                shown, self._shown = self._shown, frame
                for text in self._texts.frame(frame, shown, self._detail):
                    await self._send(text)
            elif self._heartbeats.is_due:
                await self._send(self._texts.heartbeat(frame))
            await self._viewer.wait()

    def _latest(self) -> Frame:
        """The latest frame."""
        frame = self._viewer.frame
        assert frame is not None, "it looks at something from the beginning"
        return frame

    async def _send(self, text: bytes) -> None:
        # One message at a time: a viewer that does not read also has its requests held up.
        async with self._sending:
            self._heartbeats.written()
            await self._socket.send_frame(text, WSMsgType.TEXT)
