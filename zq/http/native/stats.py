"""Statistics of queues."""

from aiohttp import web

from zq.engine.engine import Engine
from zq.http.answer import Answer
from zq.http.endpoints import Route, endpoint
from zq.http.guard import reach_of
from zq.http.native.query import parameters
from zq.http.problems import answer
from zq.http.router import PATH
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.wire.codecs import Codec
from zq.wire.stats import StatsDocument


class StatsApi:
    """`stats`, of all queues and of one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/stats", endpoint(self.all), KeyScope.READ),
            Route("GET", "/queues/{queue}/stats", endpoint(self.one), KeyScope.READ),
        ]

    async def all(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """Every queue that has jobs, or had traffic in the last five minutes.

        Of each: jobs by status, the age of the longest waiting ready job, and deliveries,
        completions and failures since the start, with their rates over one and five minutes.
        """
        parameters(request, ())
        return answer(
            StatsDocument(await self._engine.queue_stats.all(reach_of(request))), accepted
        )

    async def one(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """One queue, as `GET /stats` shows it. One that does not exist is an empty one."""
        parameters(request, ())
        queue = check_name("queue", request[PATH]["queue"])
        return answer(await self._engine.queue_stats.one(queue, reach_of(request)), accepted)
