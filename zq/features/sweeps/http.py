"""Requeuing dead jobs, singly or by filter, and the sweeps that are under way."""

import re

from aiohttp import web

from zq.features.sweeps.http_author import Choices, author_of
from zq.features.sweeps.service import Sweeps
from zq.features.sweeps.service_ended import EndedSweeps
from zq.features.sweeps.service_one import AFFECTED, Sweep
from zq.features.sweeps.wire import (
    SweepDocument,
    SweepsDocument,
    ended_document,
    preview_document,
    running_document,
)
from zq.http.api.endpoints import BodyEndpoints, answer, endpoint
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME
from zq.model.keys import KeyScope
from zq.service.services import Services
from zq.wire.codecs import BodyCodec
from zq.wire.documents import job_document
from zq.wire.ids import key_of
from zq.wire.query import FILTERS, job_filter, refuse_filter_in_body, switch, whole_number
from zq.wire.settings import decode_limit

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE


MOST_ENDED = 500

_ID = re.compile(r"[1-9]\d{0,17}", re.ASCII)

OLDER_VERBS = {"redrive": "requeue"}


class SweepsApi:
    """`requeue`, with its older names, and `/sweeps`."""

    def __init__(self, services: Services, endpoints: BodyEndpoints) -> None:
        self._jobs, self._sweeps, self._ids = services.jobs, services[Sweeps], services.ids
        self._ended = services[EndedSweeps]
        self._choices = Choices(services)
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        requeue_all = self._endpoints.change(self.requeue_all, optional=True)
        redrive = self._endpoints.change(self.redrive, optional=True)
        return [
            Route("POST", "/jobs/{id}/requeue", endpoint(self.requeue), MANAGE, query=True),
            Route("POST", "/jobs/requeue", requeue_all, MANAGE, query=True),
            Route("POST", "/jobs/{id}/retry", endpoint(self.retry), MANAGE, query=True),
            Route("POST", "/jobs/redrive", redrive, MANAGE, query=True),
            Route("GET", "/sweeps/preview", endpoint(self.preview), READ, query=True),
            Route("GET", "/sweeps", endpoint(self.list), READ),
            Route("GET", "/sweeps/ended", endpoint(self.ended), READ, query=True),
            Route("GET", "/sweeps/{id}", endpoint(self.get), READ),
            Route("POST", "/sweeps/{id}/undo", endpoint(self.undo), MANAGE, query=True),
            Route("DELETE", "/sweeps/{id}", endpoint(self.stop), MANAGE),
        ]

    async def requeue(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Make a dead job ready again where it died: 200 with the job, 409 if it is not dead.

        It is 409 also if another job has its unique key by now, and 429 if its queue has no room.
        Its attempts begin anew, and its error history is kept. With `home=true` it goes back to the
        queue in which it died first, also if it waits in a dead-letter queue.
        """
        home = switch("home", parameters(request, ("home",)))
        key, reach = key_of(request[PATH]["id"], self._ids), reach_of(request)
        job = await (self._jobs.send_home if home else self._jobs.requeue)(key, reach)
        return answer(job_document(job, self._ids, with_payload=False), accepted)

    async def retry(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Do as `POST /jobs/{id}/requeue` does, of which this is an older name."""
        return await self.requeue(request, accepted)

    async def requeue_all(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Make the matching dead jobs ready again, at most `limit`: 200 with their number.

        If the query names queues, this is also about the jobs that wait in these
        queues as in dead-letter queues. Such jobs go back to the queue that they came from. A job
        whose queue has no room, or whose unique key another job has by now, stays as it is.
        """
        return answer({"requeued": await self._requeue(request, body, sent)}, accepted)

    async def redrive(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Do as `POST /jobs/requeue` does, of which this is an older name: `redriven` counts."""
        return answer({"redriven": await self._requeue(request, body, sent)}, accepted)

    async def _requeue(self, request: web.BaseRequest, body: bytes, sent: BodyCodec) -> int:
        refuse_filter_in_body(body, sent)
        limit = decode_limit(body, sent)
        filter, author = await self._choices.of(request, "requeue")
        return await self._sweeps.requeue(filter, limit, author)

    async def preview(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """How many jobs a change by filter would change now, and an id of this moment: `upto`.

        The change by the same filter and this `upto` leaves alone what arrives after the look.
        `exact` is false where there are more than 10,000 jobs that are not all jobs of some queues
        and statuses: then there are at least `count`. `by` counts them by queue and status, the 50
        most frequent first, and `more` is how many of these are left out. `no_effect` counts the
        jobs that match and would stay as they are, where that is known. `verb` is the change:
        `delete` (or none), `cancel`, `requeue` or `patch`.
        """
        values = parameters(request, (*FILTERS, "verb", "force"))
        verb, force = values.get("verb", "delete"), switch("force", values)
        verb = OLDER_VERBS.get(verb, verb)
        if verb not in AFFECTED:
            raise InvalidRequest(f"`verb` must be one of {', '.join(AFFECTED)}, not {verb!r}")
        asked = job_filter(values, self._ids, reach_of(request))
        found = await self._sweeps.preview(AFFECTED[verb](asked, force), asked)
        return answer(preview_document(found, self._ids), accepted)

    async def list(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The sweeps under way, the oldest first, with their progress.

        `changed` counts jobs, and `counted` is what a preview of the change has counted.
        `progress` is the part of all ids that was passed, from 0 to 1.
        """
        parameters(request, ())
        sweeps = self._sweeps.running(reach_of(request))
        return answer(SweepsDocument([self._shown(sweep) for sweep in sweeps]), accepted)

    async def ended(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The sweeps that have changed jobs and no longer run, the latest first.

        One whose `progress` is below 1 was stopped, or its server was. `undone` counts the jobs
        that were taken back. `before` leaves out those from this id on.
        """
        given = parameters(request, ("before", "limit"))
        before = whole_number("before", given["before"], MAX_TIME) if "before" in given else None
        limit = whole_number("limit", given.get("limit", "50"), MOST_ENDED, low=1)
        found = await self._ended.latest(reach_of(request), before, limit)
        documents = [ended_document(sweep, self._ids) for sweep in found]
        return answer(SweepsDocument(documents), accepted)

    async def get(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """One sweep, which runs or has ended.

        For a cancellation that has ended, `left` is how many of its jobs are still there to be
        taken back. `exact` is false where there are more than 10,000: then there are at least so
        many.
        """
        parameters(request, ())
        id, reach = _sweep_id(request), reach_of(request)
        running = self._sweeps.under_way(id, reach)
        if running is not None:
            return answer(self._shown(running), accepted)
        sweep = await self._ended.get(id, reach)
        document = ended_document(sweep, self._ids)
        if sweep.outline.verb == "cancel":
            left = await self._ended.left(sweep)
            document.left, document.exact = left.jobs, left.exact
        return answer(document, accepted)

    async def undo(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Take back the jobs that a sweep has cancelled, and no others: 200 with their number.

        They wait again in their old places, with their attempts and unique keys. `kept` counts
        those that stay cancelled: another job has their unique key (`key_taken`), their time to
        live is over (`expired`), a budget is gone (`budget_gone`), or their queue has no room
        (`queue_full`). `gone` counts those that are deleted or no longer retained. 409 if there is
        nothing to take back.
        """
        author = author_of(request, parameters(request, ("reason",)))
        done = await self._ended.undo(_sweep_id(request), reach_of(request), author)
        return answer(done._asdict(), accepted)

    async def stop(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Stop a sweep between two slices: 204. Its changes so far stay.

        The client that began it gets the number so far.
        """
        parameters(request, ())
        self._sweeps.cut_short(_sweep_id(request), reach_of(request))
        return Answer(204)

    def _shown(self, sweep: Sweep) -> SweepDocument:
        return running_document(sweep.id, sweep.outline, sweep.changed, sweep.passed, self._ids)


def _sweep_id(request: web.BaseRequest) -> int:
    """The id in the path; 0 if it cannot be one. No sweep has that."""
    text = request[PATH]["id"]
    return int(text) if _ID.fullmatch(text) else 0
