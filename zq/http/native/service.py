"""Health, version, reset, and what this version does not have."""

from aiohttp import web

from zq import __version__
from zq.engine.engine import Engine
from zq.http.addresses import is_loopback
from zq.http.answer import Answer
from zq.http.endpoints import Route, endpoint
from zq.http.guard import GRANT
from zq.http.problems import answer
from zq.model.errors import Forbidden, NotBuilt
from zq.model.keys import KeyScope
from zq.wire.codecs import Codec

API_VERSION = "0.7.0"
"""The level of Zizq's API that its clients check for."""


class ServiceApi:
    """Everything that is not about jobs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint.

        Health and version ask for no key: probes have none, and they tell nothing about jobs.
        """
        unbuilt = [
            Route("*", path, endpoint(self.not_built), KeyScope.MANAGE)
            for feature in ("crons", "budgets")
            for path in (f"/{feature}", f"/{feature}/{{rest...}}")
        ]
        return [
            Route("GET", "/health", endpoint(self.health), None),
            Route("GET", "/version", endpoint(self.version), None),
            Route("POST", "/reset", endpoint(self.reset), KeyScope.MANAGE, whole=True),
            *unbuilt,
        ]

    async def health(self, _request: web.BaseRequest, accepted: Codec) -> Answer:
        """What an acknowledgement waits for, why new jobs are refused, what is damaged."""
        durable, durable_enqueues = self._engine.durable
        modes = {True: "fsync", False: "buffered"}
        document: dict[str, object] = {
            "status": "ok",
            "commit_mode": modes[durable],
            "enqueue_commit_mode": modes[durable_enqueues],
            "flushed_by": self._engine.flushed_by,
        }
        if (refusal := self._engine.refusal()) is not None:
            # Still 200: acknowledgements pass, and a restart would not help.
            document["enqueues_refused"] = {"code": refusal.code, "error": refusal.message}
        if (set_aside := self._engine.quarantined()).rows:
            document["quarantined"] = {
                "rows": set_aside.rows,
                "latest": [
                    {"table": row.source, "key": row.key, "reason": row.reason, "at": row.at}
                    for row in set_aside.latest
                ],
            }
        return answer(document, accepted)

    async def version(self, _request: web.BaseRequest, accepted: Codec) -> Answer:
        """The API's level, and zq's own version."""
        return answer({"version": API_VERSION, "zq": __version__}, accepted)

    async def reset(self, request: web.BaseRequest, _accepted: Codec) -> Answer:
        """Delete everything, settings too. Without keys, only this machine may ask for it."""
        if request[GRANT].key is None and not is_loopback(request.remote):
            raise Forbidden("reset is only for clients on this machine, or with a key")
        await self._engine.clear(settings=True)
        return Answer(204)

    async def not_built(self, request: web.BaseRequest, _accepted: Codec) -> Answer:
        """Refused plainly rather than ignored."""
        feature = request.path.split("/")[1]
        raise NotBuilt(f"/{feature} is not supported by this version of zq")
