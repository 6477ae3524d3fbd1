"""Cron: groups of entries that enqueue jobs when their time comes."""

from aiohttp import web

from zq.features.crons.wire import (
    check_cron,
    decode_entry,
    decode_group,
    decode_group_patch,
    decode_paused,
    entry_document,
    group_document,
)
from zq.http.api.endpoints import BodyEndpoints, answer, endpoint
from zq.http.api.packing import Packer
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.services import Services
from zq.wire.bodies import Limits
from zq.wire.codecs import BodyCodec

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

GROUP = "/crons/{group}"
ENTRIES = f"{GROUP}/entries"
ENTRY = f"{ENTRIES}/{{entry}}"


class CronsApi:
    """`/crons`. A slash in a name is written `%2F` in the path."""

    def __init__(
        self, services: Services, endpoints: BodyEndpoints, packer: Packer, limits: Limits
    ) -> None:
        self._crons = services.crons
        self._endpoints = endpoints
        self._packer = packer
        self._limits = limits

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        change = self._endpoints.change
        return [
            Route("GET", "/crons", endpoint(self.list), READ),
            Route("DELETE", "/crons", endpoint(self.clear), MANAGE),
            Route("GET", GROUP, endpoint(self.get_group), READ),
            Route("PUT", GROUP, change(self.put_group), MANAGE),
            Route("PATCH", GROUP, change(self.patch_group), MANAGE),
            Route("DELETE", GROUP, endpoint(self.delete_group), MANAGE),
            Route("POST", ENTRIES, change(self.add_entry), MANAGE),
            Route("GET", ENTRY, endpoint(self.get_entry), READ),
            Route("PUT", ENTRY, change(self.put_entry), MANAGE),
            Route("PATCH", ENTRY, change(self.patch_entry), MANAGE),
            Route("DELETE", ENTRY, endpoint(self.delete_entry), MANAGE),
        ]

    async def list(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The names of the groups."""
        parameters(request, ())
        return answer({"crons": await self._crons.groups(reach_of(request))}, accepted)

    async def clear(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Delete all groups; with a key for queue prefixes, those that lie completely within."""
        parameters(request, ())
        return answer({"deleted": await self._crons.clear(reach_of(request))}, accepted)

    async def get_group(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """A group with its entries, sorted by name."""
        found = await self._crons.group(_group(request), reach_of(request))
        return await self._packer.answer(group_document(*found), accepted)

    async def put_group(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Replace a group and all its entries. The answer has the entries in the given order.

        An entry with the same expression and zone as before keeps its next time. A missing `paused`
        keeps the present value. A missing `timezone` is cleared.
        """
        name, draft = _group(request), decode_group(body, sent, self._limits)
        group = await self._crons.replace_group(name, draft, reach_of(request))
        return await self._packer.answer(group_document(*group), accepted)

    async def patch_group(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Pause or resume a group, or change the zone for its entries without one."""
        name, patch = _group(request), decode_group_patch(body, sent)
        group = await self._crons.change_group(name, patch, reach_of(request))
        return await self._packer.answer(group_document(*group), accepted)

    async def delete_group(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Delete a group with its entries. The jobs that they have enqueued stay."""
        await self._crons.delete_group(_group(request), reach_of(request))
        return Answer(204)

    async def add_entry(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Add an entry, and its group if that does not exist."""
        group, draft = _group(request), decode_entry(body, sent, self._limits, None)
        entry = await self._crons.add_entry(group, draft, reach_of(request))
        return await self._packer.answer(entry_document(entry), accepted, 201)

    async def get_entry(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """One entry."""
        entry = await self._crons.entry(*_place(request), reach_of(request))
        return await self._packer.answer(entry_document(entry), accepted)

    async def put_entry(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Add or replace an entry. The name in the path counts, not the one in the body."""
        group, name = _place(request)
        draft = decode_entry(body, sent, self._limits, name)
        entry = await self._crons.put_entry(group, draft, reach_of(request))
        return await self._packer.answer(entry_document(entry), accepted)

    async def patch_entry(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Pause or resume an entry. Times that pass during a pause are not made up for."""
        (group, name), paused = _place(request), decode_paused(body, sent)
        entry = await self._crons.pause_entry(group, name, paused, reach_of(request))
        return await self._packer.answer(entry_document(entry), accepted)

    async def delete_entry(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Delete an entry. Its group stays, even when it is empty."""
        await self._crons.delete_entry(*_place(request), reach_of(request))
        return Answer(204)


def _group(request: web.BaseRequest) -> str:
    parameters(request, ())
    return check_cron(request[PATH]["group"])


def _place(request: web.BaseRequest) -> tuple[str, str]:
    return _group(request), check_cron(request[PATH]["entry"])
