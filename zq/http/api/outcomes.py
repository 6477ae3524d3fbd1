"""The ends of jobs: results, waiting for them, look-up by key, cancelling, retention."""

from functools import partial

from aiohttp import web

from zq.http.api.endpoints import answer, endpoint, parameters
from zq.http.api.packing import Packer
from zq.http.api.parts import ApiParts
from zq.http.api.problems import CODE_HEADER, STATUSES
from zq.http.door import PATH, Route, status_in
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest, JobCancelled, JobExpired
from zq.model.keys import KeyScope
from zq.model.lifecycle import Status
from zq.model.settling import MOST_WAIT_MS, Ending
from zq.wire.bodies import decode_force, decode_retention
from zq.wire.codecs import BodyCodec
from zq.wire.documents import EnqueuedDocument, job_document, outcome_document
from zq.wire.ids import key_of
from zq.wire.query import whole_number

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_GONE = {Status.CANCELLED: JobCancelled, Status.EXPIRED: JobExpired}


class OutcomesApi:
    """The endpoints about the ends of jobs, except success and failure."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._jobs, self._ids = services.jobs, services.ids
        self._endpoints = parts.endpoints
        self._packer = parts.packer

    def routes(self) -> list[Route]:
        change = self._endpoints.change
        cancel = partial(change, optional=True)
        return [
            Route("GET", "/jobs/by-key", endpoint(self.by_key), READ, query=True),
            Route("POST", "/jobs/by-key/cancel", cancel(self.cancel_by_key), MANAGE, query=True),
            Route("GET", "/jobs/{id}/result", endpoint(self.result), READ, query=True),
            Route("PATCH", "/jobs/{id}/retention", change(self.retain), MANAGE),
        ]

    async def result(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The outcome of a job, now or within `wait_ms`."""
        wait_ms, key = wait_time(request) or 0, key_of(request[PATH]["id"], self._ids)
        outcome = await self._jobs.ending(key, reach_of(request), wait_ms)
        return await outcome_answer(outcome, accepted, self._packer)

    async def by_key(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The job that owns a unique key."""
        job = await self._jobs.owner(*_unique_key(request), reach_of(request))
        document = job_document(job, self._ids, with_payload=True)
        return await self._packer.answer(document, accepted)

    async def cancel_by_key(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Cancel the job that owns a unique key."""
        owned, force = _unique_key(request), decode_force(body, sent)
        job = await self._jobs.cancel_owner(*owned, force, reach_of(request))
        return answer(job_document(job, self._ids, with_payload=False), accepted)

    async def retain(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Begin the retention of a finished job now."""
        retention = decode_retention(body, sent)
        key = key_of(request[PATH]["id"], self._ids)
        job = await self._jobs.retain(key, retention, reach_of(request))
        return answer(job_document(job, self._ids, with_payload=False), accepted)


def wait_time(request: web.BaseRequest) -> int | None:
    """How long the request will wait, in milliseconds; None if it does not say."""
    parameters(request, ("wait_ms",))
    text = request.rel_url.query.get("wait_ms")
    return None if text is None else whole_number("wait_ms", text, MOST_WAIT_MS)


async def outcome_answer(
    outcome: Ending, accepted: BodyCodec, packer: Packer, job: EnqueuedDocument | None = None
) -> Answer:
    """200 for a job that was completed, 202 for an unfinished one, else 410.

    `job` is included if the request has just stored it.
    """
    document = outcome_document(outcome, job)
    if outcome.status in _GONE:
        gone = _GONE[outcome.status]()
        document.error = gone.message
        status, headers = status_in(STATUSES, gone), {CODE_HEADER: gone.code}
        return await packer.answer(document, accepted, status, headers)
    return await packer.answer(document, accepted, 200 if outcome.is_final else 202)


def _unique_key(request: web.BaseRequest) -> tuple[str, str | None]:
    """The key, and the queue if the key belongs to one."""
    # An empty text is a valid key.
    parameters(request, ("key", "queue"))
    if "key" not in request.query:
        raise InvalidRequest("invalid query parameters: `key` is missing")
    return request.query["key"], request.query.get("queue")
