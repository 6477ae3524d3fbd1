"""Acknowledgements, failures and the history of failures."""

from functools import partial

from aiohttp import web

from zq.http.api.endpoints import PlainRefusal, answer, endpoint, parameters
from zq.http.api.parts import ApiParts
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import ErrorRecordNotFound, InvalidRequest
from zq.model.job import MAX_UINT32
from zq.model.keys import KeyScope
from zq.wire.bodies import decode_failure, decode_success, decode_successes
from zq.wire.codecs import BodyCodec
from zq.wire.documents import error_document, job_document
from zq.wire.ids import NamedKeys, held_key, key_of, raise_refusal
from zq.wire.query import PAGING, PageShown, canonical, links, paging, whole_number

TAKE, READ = KeyScope.TAKE, KeyScope.READ


class SettlementsApi:
    """`success`, `failure` and `errors`."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._jobs, self._work, self._ids = services.jobs, services.work, services.ids
        self._endpoints = parts.endpoints
        self._limits = parts.limits

    def routes(self) -> list[Route]:
        settle = self._endpoints.change
        succeed = settle(self.succeed, optional=True, ignores_foreign=True)
        return [
            Route("POST", "/jobs/success", settle(self.succeed_bulk), TAKE, ticks=True),
            Route("POST", "/jobs/{id}/success", succeed, TAKE, ticks=True),
            Route("POST", "/jobs/{id}/failure", settle(self.fail), TAKE, ticks=True),
            Route("GET", "/jobs/{id}/errors", endpoint(self.list_errors), READ, query=True),
            Route("GET", "/jobs/{id}/errors/{attempt}", endpoint(self.get_error), READ),
        ]

    async def succeed(
        self, request: web.BaseRequest, _accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Acknowledge one job, optionally with its result, its retention and its delivery.

        A body that is not an object, or neither JSON nor MessagePack, is ignored.
        """
        told = decode_success(body, sent) if body else None
        key = held_key(request[PATH]["id"], self._ids)
        said = None if told is None else {key: told}
        raise_refusal(await self._work.succeed([key], reach_of(request), said))
        return Answer(204)

    async def succeed_bulk(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Acknowledge many jobs. 422 names the unchanged ones; the others are acknowledged."""
        ids, said = decode_successes(body, sent, self._limits)
        keys = NamedKeys(ids, self._ids)
        by_key = keys.with_what(said) if said else None
        refused = keys.refused(await self._work.succeed(keys.known, reach_of(request), by_key))
        if refused.stale:
            return answer(refused._asdict(), accepted, 422)
        if refused.not_found:
            return answer({"not_found": refused.not_found}, accepted, 422)
        return Answer(204)

    async def fail(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Report a failure.

        Of `message` 16 KiB are kept, of `error_type` 512 bytes, of `backtrace` 128 KiB. A longer
        text loses its middle.
        """
        failure, key = decode_failure(body, sent), held_key(request[PATH]["id"], self._ids)
        job = await self._work.fail(key, failure, reach_of(request))
        return answer(job_document(job, self._ids, with_payload=False), accepted)

    async def list_errors(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """A page of a job's failures. The cursor is an attempt.

        It may end before its `limit` if texts are large, and then has a `next`.
        """
        id = request[PATH]["id"]
        wanted = paging(parameters(request, PAGING))
        after = None if wanted.cursor is None else whole_number("from", wanted.cursor, MAX_UINT32)
        records, more = await self._jobs.errors(
            key_of(id, self._ids), reach_of(request), after, wanted.descending, wanted.limit
        )
        first = str(records[0].attempt) if records else None
        last = str(records[-1].attempt) if records else None
        shown = PageShown(first, last, more)
        pages = links(f"/jobs/{id}/errors", partial(canonical, {}), wanted, shown)
        documents = [error_document(record) for record in records]
        return answer({"errors": documents, "pages": pages}, accepted)

    async def get_error(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """One failure."""
        text = request[PATH]["attempt"]
        try:
            attempt = whole_number("attempt", text, MAX_UINT32)
        except InvalidRequest as error:
            raise PlainRefusal(
                f"Invalid URL: Cannot parse value at index 1 with value `{text}` to a `u32`",
                error.code,
            ) from None
        if attempt < 1:
            raise ErrorRecordNotFound
        key = key_of(request[PATH]["id"], self._ids)
        record = await self._jobs.error(key, reach_of(request), attempt)
        return answer(error_document(record), accepted)
