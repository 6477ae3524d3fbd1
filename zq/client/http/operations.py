"""What operators do, over HTTP."""

from collections.abc import Sequence
from urllib.parse import quote, urlencode

import msgspec

from zq.client.http.calls import HttpCall, HttpRead, job_path
from zq.client.operations import OpenWorker
from zq.client.values import StoredJob
from zq.features.failures.wire import FailuresDocument
from zq.features.schemas.wire import AvroSchema, QueueSchemaDocument
from zq.features.trends.model import TimeMark
from zq.model.patching import Patch


class _Workers(msgspec.Struct):
    workers: list[OpenWorker]


class HttpOperations:
    """The `zq.client.operations.Operations` of a server at an address."""

    def __init__(self, call: HttpCall, read: HttpRead) -> None:
        self._call = call
        self._read = read

    async def delete(self, id: str) -> None:
        """Delete a job in any status."""
        await self._call("DELETE", job_path(id))

    async def change(self, id: str, patch: Patch) -> StoredJob:
        """Change a job that has not finished."""
        return self._read(await self._call("PATCH", job_path(id), patch), StoredJob)

    async def workers(self) -> list[OpenWorker]:
        """The open streams, the oldest first."""
        return self._read(await self._call("GET", "/workers"), _Workers).workers

    async def drop(self, worker: str) -> list[OpenWorker]:
        """Close the streams of a worker. Return what they were."""
        reply = await self._call("DELETE", f"/workers/{quote(worker, safe='')}")
        return self._read(reply, _Workers).workers

    async def failures(self, queues: Sequence[str], range: str, order: str) -> FailuresDocument:
        """The causes of failures in these queues, or in any."""
        asked = {"range": range, "order": order}
        if queues:
            asked["queue"] = ",".join(queues)
        return self._read(
            await self._call("GET", f"/failures?{urlencode(asked)}"), FailuresDocument
        )

    async def mark(self, text: str) -> TimeMark:
        """Give this moment a name."""
        return self._read(await self._call("POST", "/marks", {"text": text}), TimeMark)

    async def schema(self, queue: str) -> QueueSchemaDocument:
        """The schema of a queue."""
        return self._read(await self._call("GET", _schema(queue)), QueueSchemaDocument)

    async def set_schema(self, queue: str, schema: AvroSchema) -> QueueSchemaDocument:
        """Have the new jobs of a queue match a schema."""
        reply = await self._call("PUT", _schema(queue), {"schema": schema})
        return self._read(reply, QueueSchemaDocument)

    async def drop_schema(self, queue: str) -> None:
        """Take the schema of a queue away, if it has one."""
        await self._call("DELETE", _schema(queue))


def _schema(queue: str) -> str:
    return f"/queues/{quote(queue, safe='')}/schema"
