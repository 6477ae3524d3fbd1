"""Why a job waits, what comes next, and what the groups of a queue wait for."""

import re

from aiohttp import web

from zq.features.diagnosis.service_stuck import StuckWork
from zq.features.waits.service import Waits
from zq.features.waits.store import TimePlace
from zq.features.waits.wire import (
    OpenGroupsDocument,
    ScheduledJobsDocument,
    StuckJobsDocument,
    WaitDocument,
    group_document,
    scheduled_document,
    stuck_document,
)
from zq.http.api.endpoints import answer, endpoint
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.model.ids import IdCodec
from zq.model.job import MAX_TIME
from zq.model.keys import KeyScope
from zq.model.lifecycle import NAMES
from zq.model.names import check_name
from zq.service.services import Services
from zq.wire.codecs import BodyCodec
from zq.wire.ids import key_of
from zq.wire.query import QUERY, whole_number

MOST_SCHEDULED = 500
MOST_GROUPS = 500
MOST_STUCK = 500

_PLACE = re.compile(r"(\d{1,20})-(.+)", re.ASCII)


class WaitsApi:
    """Why jobs and queues wait, `/scheduled`, `/queues/{queue}/groups` and `/stuck`."""

    def __init__(self, services: Services) -> None:
        self._waits, self._stuck, self._ids = services[Waits], services[StuckWork], services.ids

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/jobs/{id}/why", endpoint(self.why), KeyScope.READ),
            Route("GET", "/queues/{queue}/why", endpoint(self.why_of), KeyScope.READ),
            Route("GET", "/scheduled", endpoint(self.scheduled), KeyScope.READ, query=True),
            Route(
                "GET", "/queues/{queue}/groups", endpoint(self.groups), KeyScope.READ, query=True
            ),
            Route("GET", "/stuck", endpoint(self.stuck), KeyScope.READ, query=True),
        ]

    async def why(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Why a job does not run now: `reasons`, the strongest first.

        Each has a `code`, a `text` for people, and fields of that code: `queue`, `job`, `worker`,
        `budget`, `until` (milliseconds), `count`. Codes: `finished`, `in_flight`, `scheduled`,
        `backing_off`, `expiring`, `paused`, `group` (`job` has to end first), `budget`,
        `concurrency`, `rate`, `server_limit`, `no_worker`, `workers_busy`, `ahead` (`count` jobs of
        its queue come first, counted up to 1,000), `next`.
        """
        parameters(request, ())
        id = request[PATH]["id"]
        verdict = await self._waits.why(key_of(id, self._ids), reach_of(request))
        return answer(WaitDocument(id, NAMES[verdict.status], verdict.reasons), accepted)

    async def why_of(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Why the jobs of a queue wait: `lines`, the strongest reason first.

        Each line has a `text` for people and, if something would help, its `remedy`: a code as in
        `GET /jobs/{id}/why`. `gates` has what holds the jobs now: its `kind` (such a code), a
        `text`, and `until` (milliseconds) if it is known when it opens. `ahead` is the number of
        its ready jobs, `slots_free` of its `workers` say how many more jobs these could run.
        """
        parameters(request, ())
        queue = check_name("queue", request[PATH]["queue"])
        return answer(await self._waits.why_of(queue, reach_of(request)), accepted)

    async def scheduled(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The scheduled jobs by their times, those that are ready first: up to `limit` (50).

        Each has `id`, `queue`, `type`, `priority`, `ready_at` and `attempts`, which are more than 0
        if the job has failed and comes again. `next` is there if more follow: as `after`, it
        begins the next page.
        """
        given = parameters(request, ("after", "limit"))
        limit = whole_number("limit", given.get("limit", "50"), MOST_SCHEDULED, 1)
        place = TimePlace(-1, -1) if "after" not in given else _place(given["after"], self._ids)
        found = await self._waits.scheduled(reach_of(request), place, limit + 1)
        shown = [scheduled_document(job, self._ids) for job in found[:limit]]
        document = ScheduledJobsDocument(shown)
        if len(found) > limit:
            document.next = f"{shown[-1].ready_at}-{shown[-1].id}"
        return answer(document, accepted)

    async def groups(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The groups of a queue that have unfinished jobs, by name: up to `limit` (50).

        Each has `group`, `open` (the `id`, `type`, `status`, `attempts`, `ready_at` and, in flight,
        `dequeued_at` of the job that has to end first) and `behind` (how many jobs wait for it,
        counted up to 1,000). `after` leaves out the groups up to this name.
        """
        given = parameters(request, ("after", "limit"))
        limit = whole_number("limit", given.get("limit", "50"), MOST_GROUPS, 1)
        queue, after = check_name("queue", request[PATH]["queue"]), given.get("after", "")
        found = await self._waits.groups(queue, reach_of(request), after, limit)
        documents = [group_document(each, self._ids) for each in found]
        return answer(OpenGroupsDocument(documents), accepted)

    async def stuck(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Jobs in flight for more than a minute, and for more than twice the p99 of their type.

        The p99 is of the runs of a day, of the queue if the type has seldom run. Where none is
        known, an hour counts. Those that run for the longest time come first: up to `limit` (50).
        Each has the `id`, `queue`, `type`, `attempts`, `deliveries`, `dequeued_at` and, if they are
        known, `worker` and `p99_ms`. `deliveries` grow faster than `attempts` if its workers
        vanish.
        """
        given = parameters(request, ("limit",))
        limit = whole_number("limit", given.get("limit", "50"), MOST_STUCK, 1)
        found = await self._stuck.find(reach_of(request), limit)
        documents = [stuck_document(*each, self._ids) for each in found]
        return answer(StuckJobsDocument(documents), accepted)


def _place(text: str, ids: IdCodec) -> TimePlace:
    match = _PLACE.fullmatch(text)
    key = None if match is None else ids.key(match[2])
    if match is None or key is None:
        raise InvalidRequest(
            f"{QUERY}`after` must be the `next` of a page of this server, not {text[:64]!r}"
        )
    return TimePlace(whole_number("after", match[1], MAX_TIME), key)
