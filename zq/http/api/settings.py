"""Settings of queues."""

from typing import TypeVar

import msgspec
from aiohttp import web

from zq.http.api.endpoints import answer, endpoint, parameters
from zq.http.api.parts import ApiParts
from zq.http.door import BEFORE, PATH, Route
from zq.http.guard import KEY, reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.model.settings import NO_SETTINGS, QueueSettings, SettingsPatch, changed_between
from zq.wire.codecs import BodyCodec
from zq.wire.settings import decode_settings, decode_settings_patch

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

S = TypeVar("S", QueueSettings, SettingsPatch)

SETTINGS = "/queues/{queue}/settings"


class SettingsApi:
    """The settings of queues. A slash in a queue's name is written `%2F` in the path."""

    def __init__(self, parts: ApiParts) -> None:
        self._queues = parts.services.queues
        self._endpoints = parts.endpoints

    def routes(self) -> list[Route]:
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
        settings = _by(decode_settings(body, sent), request)
        return answer(await self._set(request, settings), accepted)

    async def change(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Change the given fields; null clears one: 200 with all settings, or 409 as above."""
        patch = _by(decode_settings_patch(body, sent), request)
        return answer(await self._set(request, patch), accepted)

    async def clear(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Delete a queue's settings: 204, also if there were none."""
        queue, reach = _queue(request), reach_of(request)
        before = await self._queues.settings(queue, reach)
        await self._queues.clear_settings(queue, reach)
        request[BEFORE] = changed_between(before, NO_SETTINGS)
        return Answer(204)

    async def _set(
        self, request: web.BaseRequest, change: QueueSettings | SettingsPatch
    ) -> QueueSettings:
        """Change the settings. The audit learns how they were just before."""
        queue, reach = _queue(request), reach_of(request)
        before = await self._queues.settings(queue, reach)
        after = await self._queues.set(queue, change, reach)
        request[BEFORE] = changed_between(before, after)
        return after


def _by(settings: S, request: web.BaseRequest) -> S:
    """The settings with the name of the key that pauses the queue, if there are keys."""
    if settings.paused is True and KEY in request:
        return msgspec.structs.replace(settings, paused_by=request[KEY].name)
    return settings


def _queue(request: web.BaseRequest) -> str:
    parameters(request, ())
    return check_name("queue", request[PATH]["queue"])
