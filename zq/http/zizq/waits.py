"""GET /jobs/{id}/why: why a job waits."""

from aiohttp import web

from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import answer, endpoint
from zq.http.zizq.query import parameters
from zq.model.keys import KeyScope
from zq.model.lifecycle import NAMES
from zq.service import Services
from zq.wire.codecs import BodyCodec
from zq.wire.ids import key_of
from zq.wire.waits import WaitDocument


class WaitsApi:
    """`/jobs/{id}/why`."""

    def __init__(self, services: Services) -> None:
        self._waits, self._ids = services.waits, services.ids

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/jobs/{id}/why", endpoint(self.why), KeyScope.READ)]

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
