"""The routes of the admin API: backups, compactions, and what was damaged."""

import asyncio
import logging
from collections.abc import Sequence
from typing import BinaryIO

from aiohttp import web

from zq.http.api.endpoints import answer, endpoint
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.guard import Guard
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
from zq.http.transport.channel import Peer, channel_of
from zq.model.keys import KeyScope
from zq.operators.admin.http.events import ViewersApi
from zq.operators.ops.http_quick import set_aside
from zq.service.services import Services
from zq.wire.archive import SIZE_HEADER, pack, unpacked_size
from zq.wire.codecs import BodyCodec

log = logging.getLogger(__name__)

HEADERS = {
    "Content-Type": "application/gzip",
    "Content-Disposition": 'attachment; filename="backup.tar.gz"',
    "Cache-Control": "no-store",
}


class MaintenanceApi:
    """The endpoints that maintain the data."""

    def __init__(self, services: Services, answers: Answers) -> None:
        self._maintenance = services.maintenance
        self._admin = services.admin
        self._answers = answers

    @property
    def backup_route(self) -> Route:
        """The endpoint that the operators' page has too."""
        return Route("POST", "/backup", self.backup, KeyScope.MANAGE, whole=True)

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            self.backup_route,
            Route("POST", "/compact", self.compact, KeyScope.MANAGE, whole=True),
            Route("GET", "/damage", endpoint(self.damage), KeyScope.MANAGE, whole=True),
            Route(
                "POST",
                "/damage/acknowledge",
                endpoint(self.acknowledge),
                KeyScope.MANAGE,
                whole=True,
            ),
        ]

    async def backup(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send a gzipped tar of everything that is stored at one moment, for `zq restore`."""
        async with self._maintenance.backup() as copy:
            size = {SIZE_HEADER: str(unpacked_size(copy))}
            response = web.StreamResponse(headers={**HEADERS, **size})
            await response.prepare(request)
            await self._send(request, response, copy)
        return response

    async def _send(
        self, request: web.BaseRequest, response: web.StreamResponse, copy: BinaryIO
    ) -> None:
        pieces = pack(copy)
        try:
            with self._answers.watched(request):
                while piece := await asyncio.to_thread(next, pieces, b""):
                    await response.write(piece)
        except ConnectionError:
            raise
        except Exception as error:
            # The status has been sent, so only a body that breaks off can show the failure.
            log.exception("a backup cannot be sent")
            channel_of(request).cut_off(Peer.VANISHED)
            raise ConnectionAbortedError from error

    async def compact(self, _request: web.BaseRequest) -> Answer:
        """Give all free space back to the file system. The answer comes when that is done."""
        await self._maintenance.compact()
        return Answer(204)

    async def damage(self, _request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The damaged rows that were set aside and that nobody has acknowledged yet."""
        return answer(set_aside(self._admin.health().quarantined), accepted)

    async def acknowledge(self, _request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Note that an operator knows of everything set aside: `/health` names it no longer."""
        return answer({"acknowledged": await self._admin.acknowledge_damage()}, accepted)


def admin_routes(parts: ApiParts, guard: Guard, began: float) -> Sequence[Route]:
    """Every route of the door, but for probes and those that other rooms add.

    The server `began` at this monotonic time, in seconds.
    """
    return [
        *ViewersApi(parts.services, guard, began).routes(),
        *MaintenanceApi(parts.services, parts.answers).routes(),
    ]
