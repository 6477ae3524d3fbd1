"""The workers with open take streams, and the leases with a deadline."""

from collections.abc import Sequence

from aiohttp import web

from zq.http.api.endpoints import answer, endpoint, parameters
from zq.http.api.parts import ApiParts
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.ids import IdCodec
from zq.model.keys import KeyScope
from zq.service.admin import OpenLease, OpenStream
from zq.wire.codecs import BodyCodec
from zq.wire.query import limit_in

MOST_LEASES = 1_000


class WorkersApi:
    """`/workers` and `/leases`."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._admin, self._ids = services.admin, services.ids

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/workers", endpoint(self.list), KeyScope.READ),
            Route("GET", "/leases", endpoint(self.leases), KeyScope.READ, query=True),
            Route("POST", "/workers/{id}/drain", endpoint(self.drain), KeyScope.TAKE),
            Route("DELETE", "/workers/{id}", endpoint(self.drop), KeyScope.MANAGE),
        ]

    async def list(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The open streams, the oldest first.

        Each has `id`, `queues` (empty: all within its reach), `prefetch`, `concurrency` and `busy`
        (how many of these slots have a job), `held` (the ids of its jobs, the oldest delivery
        first), `since`, `draining`, `address`, `client` (its `User-Agent`), `unsent_bytes`,
        `delivered` (deliveries so far) and `failed` (failures that it has reported). `seen_at` is
        its last sign of life: a settlement, a renewal or a report of progress. It is `silent` if it
        should have renewed the leases of its jobs twice, and has not. A worker without a name has
        its stream's number as `id`, such as `#7`.
        """
        parameters(request, ())
        return self._answer(self._admin.workers(reach_of(request)), accepted)

    async def leases(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The leases with a deadline, the earliest deadline first: up to `limit` (100).

        Each has the `id`, `queue` and `type` of its job, `worker` (the claimant, or the worker of
        the stream), `lease` (the number of the delivery), `dequeued_at` and `lease_until`.
        """
        given = parameters(request, ("limit",))
        limit = limit_in(given, 100, MOST_LEASES)
        found = await self._admin.leases(reach_of(request), limit)
        documents = [_lease(lease, self._ids) for lease in found]
        return answer({"leases": documents}, accepted)

    async def drain(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Deliver no more jobs to a worker: 200 with its streams, as in `GET /workers`.

        They stay open until the worker closes them, and it may finish the jobs that it holds.
        """
        drained = self._admin.drain(request[PATH]["id"], reach_of(request))
        return self._answer(drained, accepted)

    async def drop(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Close the streams of a worker: 200 with what they were, as in `GET /workers`.

        The jobs that they held go back to their queues, without an attempt spent. A worker that
        still runs may come back.
        """
        parameters(request, ())
        return self._answer(self._admin.drop(request[PATH]["id"], reach_of(request)), accepted)

    def _answer(self, streams: Sequence[OpenStream], accepted: BodyCodec) -> Answer:
        documents = [_worker(stream, self._ids) for stream in streams]
        return answer({"workers": documents}, accepted)


def _worker(stream: OpenStream, ids: IdCodec) -> dict[str, object]:
    document = stream._asdict() | {"held": ids.texts(stream.held), "busy": stream.busy}
    return {name: value for name, value in document.items() if name not in ("reach", "failures")}


def _lease(lease: OpenLease, ids: IdCodec) -> dict[str, object]:
    job = lease.job
    return {
        "id": ids.text(job.key),
        "queue": job.queue,
        "type": job.type,
        "worker": lease.worker,
        "lease": job.deliveries,
        "dequeued_at": job.dequeued_at,
        "lease_until": job.lease_until,
    }
