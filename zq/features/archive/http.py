"""Completed jobs that come back, and expired jobs that go by a schedule."""

from aiohttp import web

from zq.features.archive.service import Replays
from zq.features.archive.service_cleaning import Cleaning
from zq.features.schemas.wire import CleaningDocument, Replayed, decode_replay, decode_schedule
from zq.http.api.endpoints import answer, endpoint
from zq.http.api.parts import ApiParts
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.wire.codecs import BodyCodec

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE


class RetainedApi:
    """Replays of queues, and the schedule by which expired jobs are deleted."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._replays, self._cleaning = services[Replays], services[Cleaning]
        self._endpoints = parts.endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        change = self._endpoints.change
        return [
            Route("POST", "/queues/{queue}/replay", change(self.replay, optional=True), MANAGE),
            Route("GET", "/cleaning", endpoint(self.schedule), READ, whole=True),
            Route("PUT", "/cleaning", change(self.reschedule), MANAGE, whole=True),
        ]

    async def replay(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Store copies of the completed jobs of a queue: 200 with how many.

        The settings of the queue have to keep completed jobs, and `since` must not be before what
        they keep. A copy has a new id and begins its attempts anew. A copy whose unique key is
        taken is left out. 256 jobs come in a transaction: if the queue is full meanwhile, the
        replay ends with 429, and what it has stored stays.
        """
        parameters(request, ())
        queue, since = check_name("queue", request[PATH]["queue"]), decode_replay(body, sent)
        copies = await self._replays.replay(queue, since, reach_of(request))
        return answer(Replayed(copies), accepted)

    async def schedule(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The schedule by which expired jobs are deleted before their retention is over."""
        parameters(request, ())
        return answer(CleaningDocument(self._cleaning.schedule), accepted)

    async def reschedule(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Change that schedule. It is stored, and comes before the configured one.

        It has five fields of cron, or is a macro such as `@daily`, or an interval such as
        `@every 1h30m`. `CRON_TZ=Europe/Berlin` before it names a time zone. An empty schedule
        deletes nothing.
        """
        parameters(request, ())
        await self._cleaning.change(decode_schedule(body, sent))
        return answer(CleaningDocument(self._cleaning.schedule), accepted)


APIS = (RetainedApi,)
