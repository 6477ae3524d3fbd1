"""The take stream of an engine in this process."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import UNSET

from zq.client.errors import Unavailable
from zq.client.values import Delivery, EventQuery, JobEvent, Notice
from zq.client.values import EventType as EventName
from zq.engine.delivery.takers import MOST_UNSENT, Stream, StreamNotice
from zq.engine.subscribers.events import Reader
from zq.engine.subscribers.window import NumberedEvent, Wanted
from zq.model.events import EventType
from zq.model.job import NO_EXTRAS, CarriedFields, JobRecord
from zq.model.sharing import values_of
from zq.service.services import Services

T = TypeVar("T")


class RunVerb(Protocol):
    """Runs a verb in the engine's thread."""

    def __call__(self, verb: Callable[[Services], Coroutine[Any, Any, T]]) -> Awaitable[T]: ...


class Deliveries:
    """A take stream of the engine, read from another thread."""

    def __init__(self, services: Services, stream: Stream, do: RunVerb) -> None:
        self._services = services
        self._stream = stream
        self._do = do

    async def deliveries(self) -> Sequence[Delivery | Notice]:
        """Wait for jobs."""
        jobs, ids, notices = await self._do(self._next)
        # Payloads are decoded here, so that the engine's thread does not have to.
        found: list[Delivery | Notice] = list(map(_delivery, jobs, ids))
        return found + notices

    async def close(self) -> None:
        """End the stream. Its unsettled jobs are returned."""

        async def verb(services: Services) -> None:
            if services is self._services:
                services.work.close(self._stream)

        await self._do(verb)

    async def _next(
        self, services: Services
    ) -> tuple[list[JobRecord], Sequence[str], list[Notice]]:
        while services is self._services:
            # Undelivered jobs of an ended stream return to their queue; notices are still sent.
            jobs = [] if self._stream.ended else self._stream.next_jobs(MOST_UNSENT)
            jobs = await services.work.large_payloads(jobs)
            if self._stream.choked:
                services.work.relieved(self._stream)
            ids = services.ids.texts_to_return([job.key for job in jobs])
            told = self._stream.next_notices()
            if jobs or told:
                return jobs, ids, [_notice(each, services) for each in told]
            if self._stream.ended:
                break
            await self._stream.wait()
        raise Unavailable(
            "the stream has ended: the embedded queue was closed, a lease was lost, or the worker"
            " was dropped"
        )


def _delivery(job: JobRecord, id: str) -> Delivery:
    extras = job.extras or NO_EXTRAS
    return Delivery(
        id=id,
        type=job.type,
        queue=job.queue,
        payload=msgspec.json.decode(job.payload or "null"),
        attempts=job.attempts - job.forgiven,
        lease=job.deliveries,
        ready_at=job.ready_at,
        priority=job.priority,
        retry_limit=None if job.options is None else job.options.retry_limit,
        unique_key=job.unique_key,
        group=job.group,
        meta=None if extras.meta is None else msgspec.json.decode(extras.meta),
        **values_of(CarriedFields, extras),
    )


def _notice(notice: StreamNotice, services: Services) -> Notice:
    id = "" if notice.key is None else services.ids.text(notice.key)
    return Notice(notice.kind, id, notice.lease)


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
