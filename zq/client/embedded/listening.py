"""Events of an engine in this process."""

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from zq.client.embedded.deliveries import RunVerb
from zq.client.errors import Unavailable
from zq.client.values import EventQuery, JobEvent
from zq.client.values import EventType as EventName
from zq.engine.subscribers.events import Reader
from zq.engine.subscribers.window import NumberedEvent, Wanted
from zq.model.events import EventType
from zq.service.services import Services


class Listening:
    """A listener to the engine, read from another thread."""

    def __init__(
        self, services: Services, reader: Reader, holding: asyncio.Task[None], do: RunVerb
    ) -> None:
        """`holding` keeps the reader, and `do` runs a verb in the engine's thread."""
        self.last_id: str | None = None
        self._services = services
        self._reader = reader
        self._holding = holding
        self._do = do

    async def events(self) -> Sequence[JobEvent]:
        """Wait for events."""
        found = await self._do(self._next)
        if found:
            self.last_id = found[-1].event_id
        return found

    async def close(self) -> None:
        """Stop listening."""
        if self._reader.ended:
            return  # the engine is gone, and another verb would start it again

        async def verb(_services: Services) -> None:
            self._holding.cancel()

        await self._do(verb)

    async def _next(self, services: Services) -> list[JobEvent]:
        events, reader = self._services.events, self._reader
        while services is self._services and not reader.ended:
            await reader.wait()
            if (gap := events.gap(reader)) is not None:
                now = services.clock.now_ms()
                return [JobEvent("gap", now, missed=gap.missed, event_id=gap.event_id)]
            if told := events.take(reader):
                return [_event(each, services) for each in told]
        raise Unavailable("the embedded queue was closed")


async def listen(
    services: Services, query: EventQuery, since: str | None, do: RunVerb
) -> Listening:
    """Begin to listen. Await it in the engine's thread, where listening also ends."""
    begun: asyncio.Future[Reader] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        with services.events.reader(_wanted(services, query), since) as reader:
            begun.set_result(reader)
            await asyncio.Event().wait()

    holding = asyncio.create_task(hold())
    listening = Listening(services, await begun, holding, do)
    listening.last_id = since
    return listening


def _wanted(services: Services, query: EventQuery) -> Wanted:
    keys = None
    if query.jobs:
        keys = frozenset(key for id in query.jobs if (key := services.ids.key(id)) is not None)
    return Wanted(frozenset(query.queues), keys, frozenset(map(EventType, query.types)))


def _event(told: NumberedEvent, services: Services) -> JobEvent:
    number, ts, event = told
    id = services.events.id(number)
    type: EventName = event.type.value
    data = UNSET if event.data is None else msgspec.json.decode(event.data)
    if event.type is EventType.CLOCK_SET:
        return JobEvent(type, ts, data=data, event_id=id)
    return JobEvent(
        type,
        ts,
        services.ids.text(event.key),
        event.queue,
        event.unique_key,
        event.attempt,
        data,
        event_id=id,
    )
