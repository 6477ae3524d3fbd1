"""POST /queues/{queue}/push: jobs from web forms and plain HTTP clients."""

from aiohttp import web

from zq.http.api.endpoints import UnsupportedMediaType, answer, answer_codec
from zq.http.api.parts import ApiParts
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest, NotFound, Unprocessable
from zq.model.job import NewJob
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.wire.bodies import decode_job
from zq.wire.codecs import JSON
from zq.wire.documents import enqueued_documents
from zq.wire.pushing import MEDIA_TYPES, Pushed
from zq.wire.weight import CHECKED

FIFO = ".fifo"
"""A queue whose name ends like this has groups, other queues have none: the name decides."""


class PushApi:
    """The endpoint for forms: one job in a request, with the body as its payload."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._jobs, self._ids = services.jobs, services.ids
        self._bodies = parts.bodies
        self._line = parts.line
        self._limits = parts.limits

    def routes(self) -> list[Route]:
        paths = ("/queues/{queue}/push", "/queues/{queue}/push/{group}")
        return [
            Route("POST", path, self.push, KeyScope.ENQUEUE, query=True)
            for path in (*paths, f"{paths[1]}/{{dedupe}}")
        ]

    async def push(self, request: web.BaseRequest) -> Answer:
        """Enqueue the body of the request as a payload: 202 with the job's id in `X-Job-Id`.

        The body may be JSON, MessagePack, a form, text or bytes. The worker gets the parameters of
        path and query in `meta`. Equal payloads of a group are one job for five minutes, unless the
        path names the copies.
        """
        accepted = answer_codec(request)
        try:
            check_name("queue", request[PATH]["queue"])
        except InvalidRequest as error:
            raise NotFound(error.message) from None
        body = await self._bodies.read(request, reserved=False)
        try:
            await self._line.take(request.transport, len(body))
            job = await self._job(request, body)
            stored = await self._jobs.enqueue([job], reach_of(request))
        finally:
            self._bodies.release(len(body))
        (document,) = enqueued_documents([job], stored.keys, stored.now, stored.reply, self._ids)
        return answer(document, accepted, 202, {"X-Job-Id": document.id})

    async def _job(self, request: web.BaseRequest, body: bytes) -> NewJob:
        try:
            pushed = await self._bodies.pushed(request, body)
            if pushed is None:
                raise UnsupportedMediaType(supported=list(MEDIA_TYPES))
            text = JSON.encode(_submission(request, pushed))
            # The payload is known to be valid, and all else is small.
            return decode_job(text, CHECKED[JSON.name], self._limits)
        except InvalidRequest as error:
            raise Unprocessable(error.message) from None


def _submission(request: web.BaseRequest, pushed: Pushed) -> dict[str, object]:
    """The job as the body of an enqueue."""
    queue = request[PATH]["queue"]
    named = {name: text for name, text in request[PATH].items() if name != "queue"}
    if named and not queue.endswith(FIFO):
        raise NotFound(f"{queue!r} has no groups: only queues whose name ends in {FIFO} have")
    if queue.endswith(FIFO) and not named:
        raise Unprocessable(f"{queue!r} needs a group: post to …/push/GROUP")
    job: dict[str, object] = {"queue": queue, "type": queue, "payload": pushed.raw}
    if "group" in named:
        job["group"] = named["group"]
        job["dedupe"] = {"id": named.get("dedupe") or pushed.key()}
    if params := {**request.query, **named}:
        job["meta"] = {"params": params}
    if pushed.content_type is not None:
        job["content_type"] = pushed.content_type
    return job
