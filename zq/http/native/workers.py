"""Who has a take stream open."""

from aiohttp import web

from zq.engine.engine import Engine
from zq.http.answer import Answer
from zq.http.endpoints import Route, endpoint
from zq.http.guard import reach_of
from zq.http.native.query import parameters
from zq.http.problems import answer
from zq.http.router import PATH
from zq.model.keys import KeyScope
from zq.wire.codecs import Codec


class WorkersApi:
    """`/workers`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/workers", endpoint(self.list), KeyScope.READ),
            Route("POST", "/workers/{id}/drain", endpoint(self.drain), KeyScope.TAKE),
        ]

    async def list(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """The open streams, the oldest first.

        Each has `id`, `queues` (none: all within its reach), `prefetch`, `concurrency`, `held` (the
        ids of its jobs, the oldest delivery first), `since` and `draining`. A worker that has not
        named itself goes by its stream's number, as `#7`.
        """
        parameters(request, ())
        workers = self._engine.workers.all(reach_of(request))
        return answer({"workers": [worker._asdict() for worker in workers]}, accepted)

    async def drain(self, request: web.BaseRequest, accepted: Codec) -> Answer:
        """Deliver nothing more to a worker: 200 with its streams, as `GET /workers` shows them.

        They stay open for as long as the worker likes, and what it holds it may finish.
        """
        workers = self._engine.workers.drain(request[PATH]["id"], reach_of(request))
        return answer({"workers": [worker._asdict() for worker in workers]}, accepted)
