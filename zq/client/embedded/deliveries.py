"""The take stream of an engine in this process."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from zq.client.errors import Unavailable
from zq.client.formats import JSON
from zq.client.values import Delivery, Notice
from zq.engine import players
from zq.engine.engine import Engine
from zq.engine.players import MOST_UNSENT, Stream
from zq.model.ids import IdCodec
from zq.wire.documents import NoticeDocument, taken_documents
from zq.wire.framing import NDJSON

T = TypeVar("T")


class Do(Protocol):
    """Runs a verb of the engine."""

    def __call__(self, verb: Callable[[Engine], Coroutine[Any, Any, T]]) -> Awaitable[T]: ...


class Deliveries:
    """A take stream of the engine, read from another thread."""

    def __init__(self, engine: Engine, stream: Stream, do: Do) -> None:
        """`do` runs a verb in the engine's thread."""
        self._engine = engine
        self._stream = stream
        self._do = do

    async def deliveries(self) -> Sequence[Delivery | Notice]:
        """Wait for jobs."""
        found, _ = JSON.cut(await self._do(self._next))
        return found

    async def close(self) -> None:
        """End it: what is not settled goes back."""

        async def verb(engine: Engine) -> None:
            if engine is self._engine:
                engine.workers.close(self._stream)

        await self._do(verb)

    async def _next(self, engine: Engine) -> bytes:
        while engine is self._engine:
            # What an ended stream has not been sent goes back to its queue; notices are still told.
            jobs = [] if self._stream.ended else self._stream.next_jobs(MOST_UNSENT)
            jobs = await engine.workers.large_payloads(jobs)
            engine.workers.written(self._stream)
            frames = NDJSON.frames(taken_documents(jobs, engine.ids))
            notices = self._stream.next_notices()
            if frames or notices:
                return frames + NDJSON.notices([_notice(each, engine.ids) for each in notices])
            if self._stream.ended:
                break
            await self._stream.wait()
        raise Unavailable(
            "the stream has ended: the embedded queue was closed, or a lease was lost"
        )


def _notice(notice: players.Notice, ids: IdCodec) -> NoticeDocument:
    id = None if notice.key is None else ids.text(notice.key)
    return NoticeDocument(notice.kind, id, notice.lease)
