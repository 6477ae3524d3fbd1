"""Enqueueing, reading, changing and deleting jobs."""

from collections.abc import Mapping, Sequence
from functools import partial

from aiohttp import web
from multidict import istr

from zq.http.api.endpoints import answer, endpoint, parameters
from zq.http.api.outcomes import outcome_answer, wait_time
from zq.http.api.parts import ApiParts
from zq.http.door import PATH, Route
from zq.http.guard import KEY, reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.model.job import NewJob
from zq.model.keys import KeyScope
from zq.service.jobs import Accepted, EnqueueMaker
from zq.terms import EnqueueTerms
from zq.wire.bodies import decode_job, decode_patch
from zq.wire.bulk import decode_bulk, new_jobs
from zq.wire.codecs import BodyCodec
from zq.wire.documents import (
    EnqueuedDocument,
    enqueued_documents,
    job_document,
    last_error_document,
)
from zq.wire.ids import key_of, place_of
from zq.wire.query import (
    FILTERS,
    PAGING,
    ZIZQS,
    PageShown,
    canonical,
    job_filter,
    links,
    paging,
    switch,
    whole_number,
)

MOST_SEARCH_MS = 60_000

PREFER, MINIMAL = istr("Prefer"), "return=minimal"
"""How a client says that it needs no document: RFC 7240."""

ENQUEUE, READ, MANAGE = KeyScope.ENQUEUE, KeyScope.READ, KeyScope.MANAGE


class JobsApi:
    """`/jobs` and `/queues`, without streams and settlements."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._jobs, self._listing = services.jobs, services.listing
        self._queues, self._ids = services.queues, services.ids
        self._endpoints = parts.endpoints
        self._answers = parts.answers
        self._packer = parts.packer
        self._limits = parts.limits
        self._terms = EnqueueTerms()

    def routes(self) -> list[Route]:
        new = self._endpoints.new_jobs
        change = self._endpoints.change
        return [
            Route("POST", "/jobs", new(self.enqueue), ENQUEUE, ticks=True, query=True),
            Route(
                "POST", "/jobs/bulk", new(self.enqueue_bulk, takes_gzip=True), ENQUEUE, ticks=True
            ),
            Route("GET", "/jobs", endpoint(self.list), READ, query=True),
            Route("GET", "/jobs/count", endpoint(self.count), READ, query=True),
            Route("GET", "/queues", endpoint(self.queues), READ),
            Route("GET", "/jobs/{id}", endpoint(self.get), READ),
            Route("PATCH", "/jobs/{id}", change(self.patch), MANAGE),
            Route("DELETE", "/jobs/{id}", endpoint(self.delete), MANAGE),
        ]

    async def enqueue(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Store one job: 201, or 200 for a duplicate or a fold. With `wait_ms`, return its outcome.

        A job of a `group` runs when it is the oldest unfinished job of its group in its queue. A
        copy with the same `dedupe.id` for the same queue and group within the window is a duplicate
        of the first job. If that job is deleted, the answer has only `id`, `duplicate` and
        `folded`.
        """
        wait_ms = wait_time(request) if request.query_string else None
        through = self._through(request)
        job = decode_job(body, sent, self._limits)
        if wait_ms is None:
            stored = await self._jobs.enqueue([job], reach_of(request), through=through)
            (document,) = self._enqueued([job], stored)
            return answer(document, accepted, 200 if stored.joined else 201)
        if through is not None:
            raise InvalidRequest("a numbered job cannot be waited for here: ask for it by its id")
        stored, outcome = await self._jobs.enqueue_and_wait(job, reach_of(request), wait_ms)
        (document,) = self._enqueued([job], stored)
        return await outcome_answer(outcome, accepted, self._packer, document)

    async def enqueue_bulk(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Store many jobs or none: 200 only if every job is a duplicate or was folded.

        The results of owners are included up to 16 MiB. With `Prefer: return=minimal` there is no
        document, but 204. The body may be compressed, with `Content-Encoding: gzip`.
        """
        size = len(body)
        bulk = decode_bulk(body, sent, self._terms.bulk, self._limits)
        through = self._terms.of(request.headers, request.get(KEY), bulk)
        slices = new_jobs(bulk, size, sent, self._limits)
        del bulk, body
        jobs = next(slices)
        for some in slices:
            await self._endpoints.turns.next()
            jobs += some
        del slices
        if not jobs and through is None:
            return answer({"jobs": []}, accepted, 201)
        # The jobs cannot be taken back once they are stored. The answer is about as large as the
        # body.
        self._answers.admit(size)
        with self._endpoints.holding_jobs(len(jobs)):
            stored = await self._jobs.enqueue(jobs, reach_of(request), through=through)
            if request.headers.get(PREFER) == MINIMAL:
                return Answer(204, headers={"Preference-Applied": MINIMAL})
            status = 200 if stored.joined == len(jobs) else 201
            document = {"jobs": self._enqueued(jobs, stored)}
            return await self._packer.answer(document, accepted, status)

    async def list(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """A page of jobs.

        It may end before its `limit` if payloads are large, and then has a `next`. A `search`, or a
        search by `filter`, that takes longer than `search_ms`, where that is given, breaks off: the
        page has what was found, `searched_to` is the last job that was looked at, and `next` goes
        on there. A `search` also does so after 200,000 jobs. With `last_error=true`, each job that
        has failed has a `last_error`: the first 200 characters of the latest failure's `message`,
        its `error_type` and its `signature`.
        """
        values = parameters(request, (*PAGING, *FILTERS, "search_ms", "last_error"), ZIZQS)
        patience, wanted = _patience(values), paging(values)
        filter = job_filter(values, self._ids, reach_of(request))
        after = place_of(wanted.cursor, wanted.descending, self._ids)
        page = await self._listing.page(filter, after, wanted.descending, wanted.limit, patience)
        documents = [job_document(job, self._ids, with_payload=True) for job in page.jobs]
        if switch("last_error", values):
            last_errors = await self._listing.last_errors(page.jobs)
            for document, job in zip(documents, page.jobs, strict=True):
                document.last_error = last_error_document(last_errors.get(job.key))
        first = documents[0].id if documents else None
        last = documents[-1].id if documents else None
        query = partial(canonical, values)
        found: dict[str, object] = {"jobs": documents}
        if page.reached is not None:
            found["searched_to"] = last = self._ids.text(page.reached)
        found["pages"] = links("/jobs", query, wanted, PageShown(first, last, page.more))
        return await self._packer.answer(found, accepted)

    async def count(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """How many jobs match.

        A `search`, or a search by `filter`, may break off as in a page of jobs. Then `count` is
        about the jobs up to `searched_to`, and the request with that as `from` counts the others.
        """
        searches = not request.rel_url.query.keys().isdisjoint(("search", "filter"))
        known = (*FILTERS, *(("from", "search_ms") if searches else ()))
        values = parameters(request, known, ZIZQS)
        filter = job_filter(values, self._ids, reach_of(request))
        if filter.is_plain:
            return answer({"count": await self._listing.count(filter)}, accepted)
        after = place_of(values.get("from"), False, self._ids)
        part = await self._listing.count_beyond(filter, after, _patience(values))
        found: dict[str, object] = {"count": part.jobs}
        if part.reached is not None:
            found["searched_to"] = self._ids.text(part.reached)
        return answer(found, accepted)

    async def queues(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The names of queues that have jobs."""
        parameters(request, ())
        names = await self._queues.names(reach_of(request))
        return await self._packer.listed("queues", names, str, accepted)

    async def get(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """One job with its payload."""
        job = await self._jobs.get(key_of(request[PATH]["id"], self._ids), reach_of(request))
        document = job_document(job, self._ids, with_payload=True)
        return await self._packer.answer(document, accepted)

    async def patch(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Change one job."""
        patch, key = decode_patch(body, sent), key_of(request[PATH]["id"], self._ids)
        job = await self._jobs.patch(key, patch, reach_of(request))
        return answer(job_document(job, self._ids, with_payload=False), accepted)

    async def delete(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Delete one job."""
        await self._jobs.delete(key_of(request[PATH]["id"], self._ids), reach_of(request))
        return Answer(204)

    def _through(self, request: web.BaseRequest) -> EnqueueMaker | None:
        """The term that the headers of a request for one job ask for."""
        for term in self._terms.all:
            if term.header in request.headers:
                return self._terms.of(request.headers, request.get(KEY))
        return None

    def _enqueued(self, jobs: Sequence[NewJob], stored: Accepted) -> Sequence[EnqueuedDocument]:
        return enqueued_documents(jobs, stored.keys, stored.now, stored.reply, self._ids)


def _patience(values: Mapping[str, str]) -> float | None:
    """How long a search may take in seconds, if the query says so. Raises `InvalidRequest`."""
    if "search_ms" not in values:
        return None
    return whole_number("search_ms", values["search_ms"], MOST_SEARCH_MS) / 1000
