"""Events of an engine in this process."""

import asyncio
from collections.abc import Sequence

import msgspec

from zq.client.embedded.deliveries import Do
from zq.client.errors import Unavailable
from zq.client.formats import JSON
from zq.client.values import EventQuery, JobEvent
from zq.engine.engine import Engine
from zq.engine.events import Reader, Wanted
from zq.model.events import EventType
from zq.wire.documents import event_document
from zq.wire.events import EventDocument


class Listening:
    """One who listens to the engine, read from another thread."""

    def __init__(self, engine: Engine, reader: Reader, holding: asyncio.Task[None], do: Do) -> None:
        """`holding` keeps the reader, and `do` runs a verb in the engine's thread."""
        self.last_id: str | None = None
        self._engine = engine
        self._reader = reader
        self._holding = holding
        self._do = do

    async def events(self) -> Sequence[JobEvent]:
        """Wait for events."""
        found = JSON.decode(await self._do(self._next), list[JobEvent])
        if found:
            self.last_id = found[-1].event_id
        return found

    async def close(self) -> None:
        """Listen no more."""
        if self._reader.ended:
            return  # with its engine, which another verb would start again

        async def verb(_engine: Engine) -> None:
            self._holding.cancel()

        await self._do(verb)

    async def _next(self, engine: Engine) -> bytes:
        events, reader = self._engine.events, self._reader
        while engine is self._engine and not reader.ended:
            if events.lost(reader):
                missed = events.first - reader.position if reader.position else None
                reader.position = events.first
                place = events.id(events.first - 1)
                gap = EventDocument("gap", engine.clock.now_ms(), missed=missed, event_id=place)
                return msgspec.json.encode([gap])
            if reader.idle:
                await reader.wait()
            elif told := events.take(reader):
                ids = engine.ids
                return msgspec.json.encode(
                    [event_document(event, ts, events.id(n), ids) for n, ts, event in told]
                )
        raise Unavailable("the embedded queue was closed")


async def listen(engine: Engine, query: EventQuery, since: str | None, do: Do) -> Listening:
    """Begin to listen. To be awaited in the engine's thread, where it ends too."""
    begun: asyncio.Future[Reader] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        with engine.events.reader(_wanted(engine, query), since) as reader:
            begun.set_result(reader)
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    listening = Listening(engine, await begun, holding, do)
    listening.last_id = since
    return listening


def _wanted(engine: Engine, query: EventQuery) -> Wanted:
    keys = None
    if query.jobs:
        keys = frozenset(key for id in query.jobs if (key := engine.ids.key(id)) is not None)
    return Wanted(frozenset(query.queues), keys, frozenset(map(EventType, query.types)))
