"""Why a job waits, and what the groups of a queue wait for."""

from aiohttp import web

from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import answer, endpoint
from zq.http.zizq.query import parameters, whole_number
from zq.model.keys import KeyScope
from zq.model.lifecycle import NAMES
from zq.model.names import check_name
from zq.service import Services
from zq.wire.codecs import BodyCodec
from zq.wire.ids import key_of
from zq.wire.waits import (
    OpenGroupsDocument,
    StuckJobsDocument,
    WaitDocument,
    group_document,
    stuck_document,
)

MOST_GROUPS = 500
MOST_STUCK = 500


class WaitsApi:
    """`/jobs/{id}/why`, `/queues/{queue}/groups` and `/stuck`."""

    def __init__(self, services: Services) -> None:
        self._waits, self._stuck, self._ids = services.waits, services.stuck, services.ids

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/jobs/{id}/why", endpoint(self.why), KeyScope.READ),
            Route("GET", "/queues/{queue}/groups", endpoint(self.groups), KeyScope.READ),
            Route("GET", "/stuck", endpoint(self.stuck), KeyScope.READ),
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
        """Jobs in flight for more than a minute, and for more than twice the p99 of their queue.

        The p99 is of the runs of a day. Where none is known, an hour counts. Those that run for the
        longest time come first: up to `limit` (50). Each has the `id`, `queue`, `type`, `attempts`,
        `deliveries`, `dequeued_at` and, if it is known, `p99_ms`. `deliveries` grow faster than
        `attempts` if its workers vanish.
        """
        given = parameters(request, ("limit",))
        limit = whole_number("limit", given.get("limit", "50"), MOST_STUCK, 1)
        found = await self._stuck.find(reach_of(request), limit)
        documents = [stuck_document(each.job, each.p99_ms, self._ids) for each in found]
        return answer(StuckJobsDocument(documents), accepted)
