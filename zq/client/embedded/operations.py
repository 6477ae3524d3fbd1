"""Operators' requests, and others about one job, with an engine in this process."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from zq.client.embedded.deliveries import RunVerb
from zq.client.embedded.words import stored_job
from zq.client.formats import JSON
from zq.client.values import StoredJob
from zq.model.ids import IdCodec
from zq.model.job import JobRecord
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE
from zq.service.admin import OpenStream
from zq.service.services import Services
from zq.wire import codecs as wire
from zq.wire.bodies import decode_patch
from zq.wire.documents import job_document
from zq.wire.ids import key_of
from zq.wire.workers import OpenWorker

JobVerb = Callable[[Services], Coroutine[Any, Any, JobRecord]]
NamedVerb = Callable[[Services, int], Coroutine[Any, Any, JobRecord]]


async def shown(do: RunVerb, verb: JobVerb, *, whole: bool = False) -> StoredJob:
    """The result of a verb. With `whole`, it has its payload."""

    async def show(services: Services) -> StoredJob:
        job = await verb(services)
        return stored_job(job_document(job, services.ids, with_payload=whole))

    return await do(show)


async def named(do: RunVerb, id: str, verb: NamedVerb, *, whole: bool = False) -> StoredJob:
    """The result of a verb about the job with this id. Raises `JobNotFound`."""
    return await shown(do, lambda services: verb(services, key_of(id, services.ids)), whole=whole)


class EmbeddedOperations:
    """A `zq.client.backend.Operations`, through the services."""

    def __init__(self, do: RunVerb) -> None:
        self._do = do

    async def delete(self, id: str) -> None:
        """Delete a job in any status."""

        async def verb(services: Services) -> None:
            await services.jobs.delete(key_of(id, services.ids), EVERYWHERE)

        await self._do(verb)

    async def change(self, id: str, patch: Patch) -> StoredJob:
        """Change a job that has not finished."""
        text = JSON.encode(patch)

        async def verb(services: Services, key: int) -> JobRecord:
            return await services.jobs.patch(key, decode_patch(text, wire.JSON), EVERYWHERE)

        return await named(self._do, id, verb)

    async def workers(self) -> list[OpenWorker]:
        """The open streams, the oldest first."""

        async def verb(services: Services) -> list[OpenWorker]:
            return _open(services.admin.workers(EVERYWHERE), services.ids)

        return await self._do(verb)

    async def drop(self, worker: str) -> list[OpenWorker]:
        """Close the streams of a worker. Return what they were."""

        async def verb(services: Services) -> list[OpenWorker]:
            return _open(services.admin.drop(worker, EVERYWHERE), services.ids)

        return await self._do(verb)


def _open(streams: Sequence[OpenStream], ids: IdCodec) -> list[OpenWorker]:
    return [
        OpenWorker(
            *(stream.id, list(stream.queues), stream.prefetch, stream.concurrency, stream.busy),
            *(ids.texts(stream.held), stream.since, stream.draining, stream.address),
            *(stream.client, stream.unsent_bytes, stream.delivered, stream.failed),
            *(stream.seen_at, stream.silent),
        )
        for stream in streams
    ]
