"""The take stream of an engine in this process."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from zq.client.errors import Unavailable
from zq.client.values import Delivery, Notice
from zq.engine.delivery.takers import MOST_UNSENT, Stream, StreamNotice
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
