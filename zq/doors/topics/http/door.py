"""The dialect of topics under `/v0`: its routes and its errors."""

import functools
from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from aiohttp import web

from zq import __version__
from zq.doors.topics.errors import TopicLimitReached
from zq.doors.topics.http.bodies import TopicBodies
from zq.doors.topics.http.description import TOPICS
from zq.doors.topics.http.documents import OF_STATUS, Stopwatch, not_found, problem, refusal
from zq.doors.topics.http.metrics import TopicMetricsApi
from zq.doors.topics.http.queues import QueueTopicsApi, TopicWorkApi
from zq.doors.topics.http.streams import EventStreams, TopicWatchApi
from zq.doors.topics.http.topics import TopicLifecycleApi, TopicRecordsApi, TopicRoutersApi
from zq.doors.topics.service import Topics
from zq.http.api.parts import ApiParts
from zq.http.door import PATH, Door, Handler, Route
from zq.http.guard import KEY, reach_of
from zq.http.gzip import compressed
from zq.http.json_description import JsonDescriptionApi
from zq.http.transport.answer import Answer, Response
from zq.http.transport.gate import PeerCounts
from zq.model.errors import ZqError
from zq.service.services import Services


class TopicsDoor(Door):
    """The door for clients of topics."""

    prefix = "/v0"

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        return problem(error)

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return refusal(status, OF_STATUS.get(status, "invalid_request"), text)

    def not_found(self, request: web.BaseRequest) -> Answer:
        return not_found(request)

    def not_allowed(self, request: web.BaseRequest, methods: Iterable[str]) -> Answer:
        allowed = ", ".join(sorted(methods))
        message = f"{request.method} is not for this path: use {allowed}"
        return refusal(405, "method_not_allowed", message, headers={"Allow": allowed})


def topics_routes(parts: ApiParts, began: float, *, gzip: bool = False) -> Sequence[Route]:
    """Every route of the door of a server that `began` at this monotonic time."""
    services, guard, answers = parts.services, parts.guard, parts.answers
    reader = TopicBodies(parts.bodies, parts.line, takes_gzip=gzip)
    streams = EventStreams(guard, services.clock, parts.heartbeats)
    watch = TopicWatchApi(services, reader, streams)
    routes = [
        *TopicLifecycleApi(services, reader).routes(),
        *TopicRoutersApi(services, reader).routes(),
        *watch.routes(),
        *QueueTopicsApi(services, guard, reader, answers).routes(),
        *TopicRecordsApi(services, guard, reader, answers).routes(),
        *TopicsServiceApi(services, began).routes(),
        *TopicMetricsApi(services, streams, began).routes(),
    ]
    lasting = [*TopicWorkApi(services, streams).streams(), *watch.streams()]
    described = JsonDescriptionApi(TOPICS, [*routes, *lasting]).routes()
    return within_reach([*bounded([*routes, *described], compresses=gzip), *lasting])


class TopicsServiceApi:
    """The endpoints that need no key."""

    def __init__(self, services: Services, began: float) -> None:
        self._topics = services[Topics]
        self._clock = services.clock
        self._began = began

    def routes(self) -> list[Route]:
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


MOST_UNDER_WAY = 1_000
"""Requests of one key at a time. Streams have a bound of their own."""


def within_reach(routes: Iterable[Route]) -> list[Route]:
    """Routes that refuse a topic of the path before they look at the body."""
    return [route._replace(handler=_reaching(route.handler)) for route in routes]


def _reaching(handler: Handler) -> Handler:
    @functools.wraps(handler)
    async def wrapper(request: web.BaseRequest) -> Response:
        if (topic := request[PATH].get("topic")) is not None:
            reach_of(request).require([topic])
        return await handler(request)

    return wrapper


def bounded(routes: Iterable[Route], *, compresses: bool) -> list[Route]:
    """Routes at which a key has a bounded number of requests under way, in all of them together.

    Their answers may be compressed.
    """
    under_way = PeerCounts(MOST_UNDER_WAY)

    def bounding(handler: Handler) -> Handler:
        @functools.wraps(handler)
        async def wrapper(request: web.BaseRequest) -> Response:
            key = request.get(KEY)
            with nullcontext() if key is None else under_way.one_more(key.name, _too_many):
                response = await handler(request)
            return await compressed(request, response) if compresses else response

        return wrapper

    return [route._replace(handler=bounding(route.handler)) for route in routes]


def _too_many() -> TopicLimitReached:
    return TopicLimitReached(
        *("max_in_flight_per_key", MOST_UNDER_WAY),
        f"{MOST_UNDER_WAY} requests of this key are under way: wait for some of them",
    )
