"""Settings of queues."""

from typing import TypeVar

import msgspec
from aiohttp import web

from zq.http.door import PATH, Route
from zq.http.guard import KEY, reach_of
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import BodyEndpoints, answer, endpoint
from zq.http.zizq.query import parameters
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.model.settings import QueueSettings, SettingsPatch
from zq.service import Services
from zq.wire.codecs import BodyCodec
from zq.wire.settings import decode_settings, decode_settings_patch

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

S = TypeVar("S", QueueSettings, SettingsPatch)

SETTINGS = "/queues/{queue}/settings"


class SettingsApi:
    """The settings of queues. A slash in a queue's name is written `%2F` in the path."""

    def __init__(self, services: Services, endpoints: BodyEndpoints) -> None:
        self._queues = services.queues
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        change = self._endpoints.change
        return [
            Route("GET", "/queues/settings", endpoint(self.every), READ),
            Route("GET", SETTINGS, endpoint(self.get), READ),
            Route("PUT", SETTINGS, change(self.replace), MANAGE),
            Route("PATCH", SETTINGS, change(self.change), MANAGE),
            Route("DELETE", SETTINGS, endpoint(self.clear), MANAGE),
        ]

    async def every(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The settings of all queues that have any, by queue."""
        parameters(request, ())
        return answer({"queues": await self._queues.all_settings(reach_of(request))}, accepted)

    async def get(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The settings of a queue: 200 with the fields that are set."""
        settings = await self._queues.settings(_queue(request), reach_of(request))
        return answer(settings, accepted)

    async def replace(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Replace all settings: 200, or 409 if dead-letter queues would form a circle."""
        queue, settings = _queue(request), _by(decode_settings(body, sent), request)
        result = await self._queues.set(queue, settings, reach_of(request))
        return answer(result, accepted)

    async def change(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Change the given fields; null clears one: 200 with all settings, or 409 as above."""
        queue, patch = _queue(request), _by(decode_settings_patch(body, sent), request)
        result = await self._queues.set(queue, patch, reach_of(request))
        return answer(result, accepted)

    async def clear(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Delete a queue's settings: 204, also if there were none."""
        await self._queues.clear_settings(_queue(request), reach_of(request))
        return Answer(204)


def _by(settings: S, request: web.BaseRequest) -> S:
    """The settings with the name of the key that pauses the queue, if there are keys."""
    if settings.paused is True and KEY in request:
        return msgspec.structs.replace(settings, paused_by=request[KEY].name)
    return settings


def _queue(request: web.BaseRequest) -> str:
    parameters(request, ())
    return check_name("queue", request[PATH]["queue"])
