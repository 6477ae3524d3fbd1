"""Changing, deleting and cancelling the jobs that a filter finds, and a cancelled job that may come
back."""

from functools import partial

from aiohttp import web

from zq.features.sweeps.http_author import Choices
from zq.features.sweeps.model import SweepAuthor
from zq.features.sweeps.service import Sweeps
from zq.http.api.endpoints import BodyEndpoints, answer, endpoint
from zq.http.api.query import is_careful
from zq.http.door import PATH, Route
from zq.http.guard import actor_of, reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.service.services import Services
from zq.wire.bodies import decode_cancel, decode_force, decode_patch
from zq.wire.codecs import BodyCodec
from zq.wire.documents import job_document
from zq.wire.ids import key_of
from zq.wire.query import refuse_filter_in_body

MANAGE = KeyScope.MANAGE


class ChangesApi:
    """The changes by filter, and the cancellation of one job."""

    def __init__(self, services: Services, endpoints: BodyEndpoints) -> None:
        self._jobs, self._sweeps, self._ids = services.jobs, services[Sweeps], services.ids
        self._choices = Choices(services)
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        change = self._endpoints.change
        cancel = partial(change, optional=True)
        return [
            Route("PATCH", "/jobs", change(self.patch_all), MANAGE, query=True),
            Route("DELETE", "/jobs", endpoint(self.delete_all), MANAGE, query=True),
            Route("POST", "/jobs/cancel", cancel(self.cancel_all), MANAGE, query=True),
            Route("POST", "/jobs/{id}/cancel", cancel(self.cancel), MANAGE),
        ]

    async def patch_all(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Change the matching jobs. Errors in the body are reported before errors in the query."""
        refuse_filter_in_body(body, sent, ("queue", "priority", "ready_at"))
        patch = decode_patch(body, sent)
        filter, author = await self._choices.of(request, "patch")
        return answer({"patched": await self._sweeps.patch(filter, patch, author)}, accepted)

    async def delete_all(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Delete the matching jobs. Without a filter, delete all."""
        filter, author = await self._choices.of(request, "delete")
        return answer({"deleted": await self._sweeps.delete(filter, author)}, accepted)

    async def cancel(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Cancel one job, one in flight only by force. Its stream is told on request.

        With `undo`, which the operators' page need not say, the answer has `undo`: the id of a
        sweep that `POST /sweeps/{id}/undo` takes back, as long as the job is retained.
        """
        force, undo = decode_cancel(body, sent)
        key, reach = key_of(request[PATH]["id"], self._ids), reach_of(request)
        if undo is None:
            undo = is_careful(request)
        if not undo:
            job = await self._jobs.cancel(key, force, reach)
            return answer(job_document(job, self._ids, with_payload=False), accepted)
        author = SweepAuthor(actor_of(request))
        job, sweep = await self._sweeps.cancel_one(key, force, reach, author)
        document = job_document(job, self._ids, with_payload=False)
        document.undo = None if sweep is None else str(sweep)
        return answer(document, accepted)

    async def cancel_all(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Cancel the matching jobs. Without a filter, cancel all that can be cancelled.

        The operators' page gets `undo`, the id of the sweep, too.
        """
        refuse_filter_in_body(body, sent)
        force = decode_force(body, sent)
        filter, author = await self._choices.of(request, "cancel", force=force)
        sweep = await self._sweeps.cancel(filter, force, author)
        done: dict[str, object] = {"cancelled": sweep.changed}
        if is_careful(request) and sweep.changed:
            done["undo"] = str(sweep.id)
        return answer(done, accepted)
