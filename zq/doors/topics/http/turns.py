"""What every request of the `/v0` dialect passes: reach, a bound for each key, and compression."""

import functools
from collections import Counter
from collections.abc import Iterable

from aiohttp import web

from zq.doors.topics.errors import TopicLimitReached
from zq.http.door import PATH, Handler, Route
from zq.http.guard import KEY, reach_of
from zq.http.gzip import compressed
from zq.http.transport.answer import Response

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


class RequestTurns:
    """Wraps the handlers of routes."""

    def __init__(self, *, compresses: bool) -> None:
        self._compresses = compresses
        self._under_way: Counter[str] = Counter()

    def wrapped(self, routes: Iterable[Route]) -> list[Route]:
        """Routes whose requests are counted and whose answers may be compressed."""
        return [route._replace(handler=self._handler(route.handler)) for route in routes]

    def _handler(self, handler: Handler) -> Handler:
        @functools.wraps(handler)
        async def wrapper(request: web.BaseRequest) -> Response:
            key = request.get(KEY)
            response = await (
                handler(request) if key is None else self._counted(handler, request, key.name)
            )
            return await compressed(request, response) if self._compresses else response

        return wrapper

    async def _counted(self, handler: Handler, request: web.BaseRequest, key: str) -> Response:
        if self._under_way[key] >= MOST_UNDER_WAY:
            raise TopicLimitReached(
                *("max_in_flight_per_key", MOST_UNDER_WAY),
                f"{MOST_UNDER_WAY} requests of this key are under way: wait for some of them",
            )
        self._under_way[key] += 1
        try:
            return await handler(request)
        finally:
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]
