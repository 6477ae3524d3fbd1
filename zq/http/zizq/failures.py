"""GET /error-groups: failures by their causes."""

from aiohttp import web

from zq.http.door import Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import answer, endpoint
from zq.http.zizq.query import names, parameters
from zq.model.keys import KeyScope
from zq.service import Services
from zq.wire.codecs import BodyCodec
from zq.wire.failures import groups_document


class FailuresApi:
    """`/error-groups`."""

    def __init__(self, services: Services) -> None:
        self._failures, self._ids = services.failures, services.ids
        self._clock = services.clock

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/error-groups", endpoint(self.list), KeyScope.READ, query=True)]

    async def list(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Failures by their causes, the latest one first: of all queues, or of those in `queue`.

        Each group has `signature`, `error_type`, `message` (without ids, quoted texts, paths and
        numbers), `count`, `this_hour` and `hour_before` (of the clock), `first_seen`, `last_seen`,
        `sample` (the job that has failed last) and the same by `queues`. Filters of jobs take a
        signature as `error`. The groups that find no room are counted together as `other`, in the
        queue `*`.
        """
        queues = names(parameters(request, ("queue",)).get("queue"))
        found = await self._failures.groups(queues, reach_of(request))
        return answer(groups_document(found, self._ids, self._clock.now_ms()), accepted)
