"""Frames and answers as texts for viewers. Each text is written once for all its viewers."""

from collections.abc import Callable, Sequence

from zq import __version__
from zq.model.clock import Clock
from zq.model.errors import ZqError
from zq.model.ids import IdCodec
from zq.operators.admin.engine_frames import Frame, JobChange, WindowEvent
from zq.operators.admin.model import FoundJob, ListName
from zq.operators.admin.wire import (
    ChangeEvent,
    ErrorEvent,
    FindEvent,
    HeartbeatEvent,
    ServerStatus,
    SnapshotEvent,
    encode_event,
    listed,
    window_document,
)
from zq.operators.ops.http_quick import API_VERSION


class FrameTexts:
    """Writes frames and answers as messages."""

    def __init__(self, clock: Clock, ids: IdCodec) -> None:
        self._clock = clock
        self._ids = ids
        self._began = clock.monotonic()

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
