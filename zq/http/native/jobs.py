"""Jobs in, read, changed and deleted."""

from collections.abc import Sequence
from functools import partial

from aiohttp import web

from zq.engine.engine import Accepted, Engine
from zq.http.answer import Answer
from zq.http.answers import Answers
from zq.http.bodies import Bodies
from zq.http.endpoints import Route, body_endpoint, endpoint
from zq.http.guard import reach_of
from zq.http.native.outcomes import outcome_answer, wait_time
from zq.http.native.pages import Shown, links
from zq.http.native.query import (
    FILTERS,
    PAGING,
    canonical,
    job_filter,
    paging,
    parameters,
    refuse_terminal_statuses,
)
from zq.http.problems import answer
from zq.http.router import PATH
from zq.model.filters import Filter
from zq.model.job import NewJob
from zq.model.keys import KeyScope
from zq.wire.bodies import Limits, decode_job, decode_jobs, decode_patch
from zq.wire.codecs import Codec
from zq.wire.documents import EnqueuedDocument, enqueued_documents, job_document

ENQUEUE, READ, MANAGE = KeyScope.ENQUEUE, KeyScope.READ, KeyScope.MANAGE


class JobsApi:
    """`/jobs` and `/queues`, without streams and settlements."""

    def __init__(self, engine: Engine, bodies: Bodies, answers: Answers, limits: Limits) -> None:
        self._engine = engine
        self._bodies = bodies
        self._answers = answers
        self._limits = limits

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        new = partial(body_endpoint, bodies=self._bodies, reserved=False)
        change = partial(body_endpoint, bodies=self._bodies, reserved=True)
        return [
            Route("POST", "/jobs", new(self.enqueue), ENQUEUE, ticks=True),
            Route("POST", "/jobs/bulk", new(self.enqueue_bulk), ENQUEUE, ticks=True),
            Route("GET", "/jobs", endpoint(self.list), READ),
            Route("GET", "/jobs/count", endpoint(self.count), READ),
            Route("GET", "/queues", endpoint(self.queues), READ),
            Route("GET", "/jobs/{id}", endpoint(self.get), READ),
            Route("PATCH", "/jobs", change(self.patch_all), MANAGE),
            Route("PATCH", "/jobs/{id}", change(self.patch), MANAGE),
            Route("DELETE", "/jobs", endpoint(self.delete_all), MANAGE),
            Route("DELETE", "/jobs/{id}", endpoint(self.delete), MANAGE),
        ]

    async def enqueue(
        self, request: web.BaseRequest, accepted: Codec, body: bytes, sent: Codec
    ) -> Answer:
        """Store one job: 201, or 200 for a duplicate; with `wait_ms`, answer its outcome.

        A job of a `group` runs when it is the oldest unfinished one of its group in its queue. A
        copy that brings the same `dedupe.id` to the same queue and group within the window is a
        duplicate of the first; of a first that is gone only `id`, `duplicate`, `folded` are told.
        """
        wait_ms = wait_time(request)
        job = decode_job(body, sent, self._limits)
        if wait_ms is None:
            stored = await self._engine.enqueue([job], reach_of(request))
            (document,) = self._enqueued([job], stored)
            return answer(document, accepted, 200 if stored.duplicates else 201)
        stored, outcome = await self._engine.enqueue_and_wait(job, reach_of(request), wait_ms)
        (document,) = self._enqueued([job], stored)
        return outcome_answer(outcome, accepted, document)

    async def enqueue_bulk(
        self, request: web.BaseRequest, accepted: Codec, body: bytes, sent: Codec
    ) -> Answer:
        """Store many jobs or none: 200 only where every one is a duplicate.

        Results of the jobs that they are duplicates of are told up to 16 MiB of them.
        """
        jobs = decode_jobs(body, sent, self._limits)
        if not jobs:
            return answer({"jobs": []}, accepted, 201)
        # Once they are stored, they are answered: about as much as was sent, at most.
        self._answers.admit(len(body))
        stored = await self._engine.enqueue(jobs, reach_of(request))
        status = 200 if stored.duplicates == len(jobs) else 201
        return answer({"jobs": self._enqueued(jobs, stored)}, accepted, status)

    async def list(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """A page of jobs.

        It may end before its `limit` where payloads are large, and has a `next` then.
        """
        values = parameters(request, (*PAGING, *FILTERS))
        wanted = paging(values)
        filter = job_filter(values, self._engine.ids, reach_of(request))
        page = await self._engine.list_jobs(filter, wanted.cursor, wanted.descending, wanted.limit)
        documents = [job_document(job, self._engine.ids, with_payload=True) for job in page.jobs]
        first = documents[0].id if documents else None
        last = documents[-1].id if documents else None
        query = partial(canonical, values)
        pages = links("/jobs", query, wanted, Shown(first, last, page.more))
        return answer({"jobs": documents, "pages": pages}, accepted)

    async def count(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """How many jobs match."""
        filter = self._filter(request)
        return answer({"count": await self._engine.count(filter)}, accepted)

    async def queues(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """The names of queues that have jobs."""
        parameters(request, ())
        return answer({"queues": await self._engine.queues(reach_of(request))}, accepted)

    async def get(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """One job with its payload."""
        job = await self._engine.get(request[PATH]["id"], reach_of(request))
        return answer(job_document(job, self._engine.ids, with_payload=True), accepted)

    async def patch(
        self, request: web.BaseRequest, accepted: Codec, body: bytes, sent: Codec
    ) -> Answer:
        """Change one job."""
        id, patch = request[PATH]["id"], decode_patch(body, sent)
        job = await self._engine.patch(id, patch, reach_of(request))
        return answer(job_document(job, self._engine.ids, with_payload=False), accepted)

    async def patch_all(
        self, request: web.BaseRequest, accepted: Codec, body: bytes, sent: Codec
    ) -> Answer:
        """Change the jobs that match. Faults of the body are reported before those of the query."""
        patch = decode_patch(body, sent)
        filter = self._filter(request)
        refuse_terminal_statuses(filter)
        return answer({"patched": await self._engine.patch_all(filter, patch)}, accepted)

    async def delete(self, request: web.BaseRequest, _accepted: Codec) -> Answer:
        """Delete one job."""
        await self._engine.delete(request[PATH]["id"], reach_of(request))
        return Answer(204)

    async def delete_all(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """Delete the jobs that match, all where nothing is asked for."""
        filter = self._filter(request)
        return answer({"deleted": await self._engine.delete_all(filter)}, accepted)

    def _enqueued(self, jobs: Sequence[NewJob], stored: Accepted) -> Sequence[EnqueuedDocument]:
        return enqueued_documents(jobs, stored.keys, stored.now, stored.reply, self._engine.ids)

    def _filter(self, request: web.BaseRequest) -> Filter:
        return job_filter(parameters(request, FILTERS), self._engine.ids, reach_of(request))
