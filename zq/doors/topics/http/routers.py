"""The endpoints for routers in the `/v0` dialect."""

from typing import Any

import msgspec
from aiohttp import web

from zq.doors.topics.http.bodies import ROUTER, TopicBodies, filtered
from zq.doors.topics.http.paging import cursor_of, name_in, page_size
from zq.doors.topics.http.problems import Stopwatch
from zq.doors.topics.model_routers import RouterConfig, RoutersWanted, TopicRouter, check_router
from zq.doors.topics.service_routers import Routers
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.model.keys import KeyScope
from zq.service.services import Services

ROUTER_PATH = "/routers/{router}"


class TopicRoutersApi:
    """`/routers` and `/routers/{router}`."""

    def __init__(self, services: Services, bodies: TopicBodies) -> None:
        self._routers = services[Routers]
        self._bodies = bodies

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/routers", self.page, KeyScope.READ),
            Route("PUT", ROUTER_PATH, self.put, KeyScope.MANAGE),
            Route("GET", ROUTER_PATH, self.get, KeyScope.READ),
            Route("DELETE", ROUTER_PATH, self.delete, KeyScope.MANAGE),
        ]

    async def put(self, request: web.BaseRequest) -> Answer:
        """Create a router, or replace its settings."""
        watch = Stopwatch()
        sent = await self._bodies.read(request, ROUTER)
        if sent.source is None or sent.dest is None:
            raise InvalidRequest("source and dest are missing: name two topics")
        config = RouterConfig(
            *(sent.source, sent.dest, sent.preserve_node, sent.preserve_tag, sent.create_dest),
            None if sent.filter is None else filtered(sent.filter, "filter"),
            sent.allow_cycle,
        )
        name = _router_of(request)
        done = await self._routers.put(name, config, reach_of(request))
        document = {"created": done.created, **_document(name, config)}
        return watch.answer(document, 201 if done.created else 200)

    async def get(self, request: web.BaseRequest) -> Answer:
        """Show a router, and how many copies it has made."""
        watch = Stopwatch()
        found = await self._routers.get(_router_of(request), reach_of(request))
        document = _document(found.name, found.config)
        return watch.answer({**document, "forwarded_total": found.forwarded})

    async def page(self, request: web.BaseRequest) -> Answer:
        """List routers by name. `prefix`, `source` and `dest` limit the list."""
        watch = Stopwatch()
        query = request.query
        size = page_size(request)
        after = name_in(query.get("cursor", ""), check_router)
        wanted = RoutersWanted(
            *(query.get("prefix", ""), query.get("source") or None, query.get("dest") or None),
            *(after, size + 1),
        )
        found = await self._routers.page(wanted, reach_of(request))
        document: dict[str, object] = {"routers": [_entry(router) for router in found[:size]]}
        if len(found) > size:
            document["next_cursor"] = cursor_of(found[size - 1].name)
        return watch.answer(document)

    async def delete(self, request: web.BaseRequest) -> Answer:
        """Delete a router. Its copies stay."""
        watch = Stopwatch()
        name = _router_of(request)
        deleted = await self._routers.delete(name, reach_of(request))
        return watch.answer({"router": name, "deleted": deleted})


def _router_of(request: web.BaseRequest) -> str:
    return check_router(request[PATH]["router"])


def _document(name: str, config: RouterConfig) -> dict[str, Any]:
    return {"router": name, **msgspec.structs.asdict(config)}


def _entry(router: TopicRouter) -> dict[str, Any]:
    return {
        "router": router.name,
        "source": router.config.source,
        "dest": router.config.dest,
        "forwarded_total": router.forwarded,
    }
