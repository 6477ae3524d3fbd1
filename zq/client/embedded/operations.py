"""What operators do, with an engine in this process."""

from collections.abc import Sequence

from zq.client.embedded.deliveries import Do
from zq.client.embedded.one_job import named
from zq.client.formats import JSON
from zq.client.operations import OpenWorker
from zq.client.values import StoredJob
from zq.features.failures.model import FailureRange
from zq.features.failures.service import FailureOrder, Failures
from zq.features.failures.wire import FailuresDocument, failures_document
from zq.features.schemas.service import Schemas
from zq.features.schemas.wire import AvroSchema, QueueSchemaDocument, decode_schema, schema_document
from zq.features.trends.model import TimeMark
from zq.features.trends.service_marks import Marks
from zq.model.ids import IdCodec
from zq.model.job import JobRecord
from zq.model.names import check_name
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE
from zq.service.admin import OpenStream
from zq.service.services import Services
from zq.wire import codecs as wire
from zq.wire.bodies import decode_patch
from zq.wire.ids import key_of


class EmbeddedOperations:
    """A `zq.client.operations.Operations`, through the services."""

    def __init__(self, do: Do) -> None:
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

    async def failures(self, queues: Sequence[str], range: str, order: str) -> FailuresDocument:
        """The causes of failures in these queues, or in any."""
        length = FailureRange(range)

        async def verb(services: Services) -> FailuresDocument:
            found = await services[Failures].look(EVERYWHERE, queues, length, FailureOrder(order))
            return failures_document(length, found.first, services.ids, **found.figures)

        return await self._do(verb)

    async def mark(self, text: str) -> TimeMark:
        """Give this moment a name."""

        async def verb(services: Services) -> TimeMark:
            return await services[Marks].add(text)

        return await self._do(verb)

    async def schema(self, queue: str) -> QueueSchemaDocument:
        """The schema of a queue."""

        async def verb(services: Services) -> QueueSchemaDocument:
            return schema_document(await services[Schemas].get(queue, EVERYWHERE))

        return await self._do(verb)

    async def set_schema(self, queue: str, schema: AvroSchema) -> QueueSchemaDocument:
        """Have the new jobs of a queue match a schema."""
        text = JSON.encode({"schema": schema})

        async def verb(services: Services) -> QueueSchemaDocument:
            sent, name = decode_schema(text, wire.JSON), check_name("queue", queue)
            return schema_document(await services[Schemas].put(name, sent, EVERYWHERE))

        return await self._do(verb)

    async def drop_schema(self, queue: str) -> None:
        """Take the schema of a queue away, if it has one."""

        async def verb(services: Services) -> None:
            await services[Schemas].drop(queue, EVERYWHERE)

        await self._do(verb)


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
