"""What operators do, over HTTP."""

from urllib.parse import quote

import msgspec

from zq.client.http.calls import HttpCall, HttpRead, job_path
from zq.client.operations import OpenWorker
from zq.client.values import StoredJob
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
