"""Targets of queues: where their new jobs go."""

from aiohttp import web

from zq.features.targets.service import Targets
from zq.http.api.endpoints import answer, endpoint
from zq.http.api.parts import ApiParts
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.wire.codecs import BodyCodec

TARGET = "/queues/{queue}/targets/{target}"


class TargetsApi:
    """Targets of a queue, with the jobs that wait. A slash in a name is written `%2F`."""

    def __init__(self, parts: ApiParts) -> None:
        self._targets = parts.services[Targets]

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("PUT", TARGET, endpoint(self.add), KeyScope.MANAGE),
            Route("DELETE", TARGET, endpoint(self.remove), KeyScope.MANAGE),
        ]

    async def add(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Make a queue a target of another one: 201 with the number of jobs that it got.

        The first target gets the waiting jobs of the queue. A later one gets a twin of each job
        that another target has not finished.
        """
        added = await self._targets.add(*_names(request), reach_of(request))
        return answer({"added": added}, accepted, 201)

    async def remove(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Let a target go, with its jobs and settings: 200 with the number of jobs it had."""
        deleted = await self._targets.remove(*_names(request), reach_of(request))
        return answer({"deleted": deleted}, accepted)


APIS = (TargetsApi,)


def _names(request: web.BaseRequest) -> tuple[str, str]:
    parameters(request, ())
    path = request[PATH]
    return check_name("queue", path["queue"]), check_name("target", path["target"])
