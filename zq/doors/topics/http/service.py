"""Health and readiness of the `/v0` dialect."""

from aiohttp import web

from zq import __version__
from zq.doors.topics.http.problems import Stopwatch
from zq.doors.topics.service import Topics
from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.service.services import Services


class TopicsServiceApi:
    """The endpoints that need no key."""

    def __init__(self, services: Services) -> None:
        self._topics = services[Topics]
        self._clock = services.clock
        self._began = self._clock.monotonic()

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/health", self.health, None),
            Route("GET", "/ready", self.ready, None),
        ]

    async def health(self, _request: web.BaseRequest) -> Answer:
        """Say that the server runs, and for how long."""
        uptime = round((self._clock.monotonic() - self._began) * 1000)
        document = {"status": "ok", "version": __version__, "uptime_ms": uptime}
        return Stopwatch().answer(document)

    async def ready(self, _request: web.BaseRequest) -> Answer:
        """Say that the server takes requests. It does so from its start on."""
        watch = Stopwatch()
        topics = await self._topics.count()
        return watch.answer({"status": "ready", "wal_replay_complete": True, "topics": topics})
