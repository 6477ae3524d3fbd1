"""Health, version, reset, and what this version does not have."""

import ipaddress

from aiohttp import web

from zq import __version__
from zq.engine.engine import Engine
from zq.http.endpoints import endpoint
from zq.http.problems import answer
from zq.model.errors import Forbidden, NotBuilt
from zq.wire.codecs import Codec

API_VERSION = "0.7.0"
"""The level of Zizq's API that its clients check for."""


class ServiceApi:
    """Everything that is not about jobs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def routes(self) -> list[web.RouteDef]:
        """Method, path and handler of each endpoint."""
        routes = [
            web.get("/health", endpoint(self.health)),
            web.get("/version", endpoint(self.version)),
            web.post("/reset", endpoint(self.reset)),
        ]
        for feature in ("crons", "budgets"):
            routes.append(web.route("*", f"/{feature}", endpoint(self.not_built)))
            routes.append(web.route("*", f"/{feature}/{{rest:.*}}", endpoint(self.not_built)))
        return routes

    async def health(self, _request: web.Request, accepted: Codec) -> web.Response:
        """Alive, whether an acknowledgement waits for the disk, and why new jobs are refused."""
        durable, durable_enqueues = self._engine.durable
        modes = {True: "fsync", False: "buffered"}
        document: dict[str, object] = {
            "status": "ok",
            "commit_mode": modes[durable],
            "enqueue_commit_mode": modes[durable_enqueues],
        }
        if (refusal := self._engine.refusal()) is not None:
            # Still 200: acknowledgements pass, and a restart would not help.
            document["enqueues_refused"] = {"code": refusal.code, "error": refusal.message}
        return answer(document, accepted)

    async def version(self, _request: web.Request, accepted: Codec) -> web.Response:
        """The API's level, and zq's own version."""
        return answer({"version": API_VERSION, "zq": __version__}, accepted)

    async def reset(self, request: web.Request, _accepted: Codec) -> web.Response:
        """Delete everything. Only this machine may ask for it."""
        if not _is_loopback(request.remote):
            raise Forbidden("reset is only for clients on this machine")
        await self._engine.clear()
        return web.Response(status=204)

    async def not_built(self, request: web.Request, _accepted: Codec) -> web.Response:
        """Refused plainly rather than ignored."""
        feature = request.path.split("/")[1]
        raise NotBuilt(f"/{feature} is not supported by this version of zq")


def _is_loopback(address: str | None) -> bool:
    return address is not None and ipaddress.ip_address(address.partition("%")[0]).is_loopback
