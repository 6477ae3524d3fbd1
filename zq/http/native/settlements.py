"""Acknowledgements, failures and the history of failures."""

from functools import partial

from aiohttp import web

from zq.engine.engine import Engine
from zq.http.answer import Answer
from zq.http.bodies import Bodies
from zq.http.endpoints import Route, body_endpoint, endpoint
from zq.http.guard import reach_of
from zq.http.native.pages import Shown, links
from zq.http.native.query import PAGING, canonical, paging, parameters, whole_number
from zq.http.problems import answer
from zq.http.router import PATH
from zq.model.errors import ErrorRecordNotFound, NotInFlight, StaleLease
from zq.model.job import MAX_UINT32
from zq.model.keys import KeyScope
from zq.wire.bodies import Limits, decode_failure, decode_success, decode_successes
from zq.wire.codecs import Codec
from zq.wire.documents import error_document, job_document

TAKE, READ = KeyScope.TAKE, KeyScope.READ


class SettlementsApi:
    """`success`, `failure` and `errors`."""

    def __init__(self, engine: Engine, bodies: Bodies, limits: Limits) -> None:
        self._engine = engine
        self._bodies = bodies
        self._limits = limits

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        settle = partial(body_endpoint, bodies=self._bodies, reserved=True)
        succeed = settle(self.succeed, optional=True)
        return [
            Route("POST", "/jobs/success", settle(self.succeed_bulk), TAKE, ticks=True),
            Route("POST", "/jobs/{id}/success", succeed, TAKE, ticks=True),
            Route("POST", "/jobs/{id}/failure", settle(self.fail), TAKE, ticks=True),
            Route("GET", "/jobs/{id}/errors", endpoint(self.list_errors), READ),
            Route("GET", "/jobs/{id}/errors/{attempt}", endpoint(self.get_error), READ),
        ]

    async def succeed(
        self, request: web.BaseRequest, _accepted: Codec, body: bytes, sent: Codec
    ) -> Answer:
        """Acknowledge one job, with its result, its retention and its delivery's name or none."""
        id = request[PATH]["id"]
        said = {id: decode_success(body, sent)} if body else None
        refused = await self._engine.settlements.succeed([id], reach_of(request), said)
        if refused.stale:
            raise StaleLease
        if refused.not_found:
            raise NotInFlight
        return Answer(204)

    async def succeed_bulk(
        self, request: web.BaseRequest, accepted: Codec, body: bytes, sent: Codec
    ) -> Answer:
        """Acknowledge many: 422 names those that were left alone, the others are done."""
        ids, said = decode_successes(body, sent, self._limits)
        refused = await self._engine.settlements.succeed(ids, reach_of(request), said)
        if refused.stale:
            return answer(refused._asdict(), accepted, 422)
        if refused.not_found:
            return answer({"not_found": refused.not_found}, accepted, 422)
        return Answer(204)

    async def fail(
        self, request: web.BaseRequest, accepted: Codec, body: bytes, sent: Codec
    ) -> Answer:
        """Report a failure.

        Of `message` 16 KiB are kept, of `error_type` 512 bytes, of `backtrace` 128 KiB: a longer
        text loses its middle.
        """
        id, failure = request[PATH]["id"], decode_failure(body, sent)
        job = await self._engine.settlements.fail(id, failure, reach_of(request))
        return answer(job_document(job, self._engine.ids, with_payload=False), accepted)

    async def list_errors(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """A page of a job's failures; the cursor is an attempt.

        It may end before its `limit` where texts are large, and has a `next` then.
        """
        id = request[PATH]["id"]
        wanted = paging(parameters(request, PAGING))
        after = None if wanted.cursor is None else whole_number("from", wanted.cursor, MAX_UINT32)
        records, more = await self._engine.list_errors(
            id, reach_of(request), after, wanted.descending, wanted.limit
        )
        first = str(records[0].attempt) if records else None
        last = str(records[-1].attempt) if records else None
        shown = Shown(first, last, more)
        pages = links(f"/jobs/{id}/errors", partial(canonical, {}), wanted, shown)
        documents = [error_document(record) for record in records]
        return answer({"errors": documents, "pages": pages}, accepted)

    async def get_error(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """One failure."""
        text = request[PATH]["attempt"]
        attempt = whole_number("attempt", text, MAX_UINT32)
        if attempt < 1:
            raise ErrorRecordNotFound
        record = await self._engine.error(request[PATH]["id"], reach_of(request), attempt)
        return answer(error_document(record), accepted)
