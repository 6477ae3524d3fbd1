"""Health and version, which probes ask for: a server has them from its start."""

from aiohttp import web

from zq import __version__
from zq.engine.process import storage_written
from zq.features.crons.service_running import Crons
from zq.features.forward.service import Lanes, LaneStatus
from zq.features.forward.wire import LaneHealth
from zq.features.inbox.service import InboxState
from zq.http.api.endpoints import answer, endpoint
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.model.effects import Quarantined
from zq.model.errors import ZqError
from zq.model.keys import KeyScope
from zq.store.errors import StoreError
from zq.wire.codecs import BodyCodec

API_VERSION = "0.7.0"
"""The level of Zizq's API. Zizq's clients check it."""

YEAR_S = 365 * 86_400

LEAST_S = 60.0
"""A younger server is taken for as old as this: one minute tells little of a year."""

PER_SERVER = (
    *("events", "claim order", "global_in_flight_limit", "max_sweeps", "figures since the start"),
    *("trends of the open minute", "rates of sign-ins of queue-ti"),
)
"""What servers that share a database do not have in common: docs/postgres.md says how it is."""

COMMIT_MODES = {True: "fsync", False: "buffered"}


def set_aside(found: Quarantined, *, named: bool = True) -> dict[str, object]:
    """The document of what was set aside. The latest rows are there if they may be `named`."""
    latest = found.latest if named else ()
    return {
        "rows": found.rows,
        "latest": [
            {"table": row.source, "key": row.key, "reason": row.reason, "at": row.at}
            for row in latest
        ],
    }


class ProbesApi:
    """The endpoints that need no key: probes have none, and answers without one name nothing."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._admin, self._crons = services.admin, services[Crons]
        self._lanes, self._clock = services[Lanes], services.clock
        self._guard = parts.guard
        self._inbox = services[InboxState]
        self._since = services.clock.monotonic()
        self._written_before = storage_written() or 0

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/health", endpoint(self.health), None),
            # By this name probes of the other dialects ask.
            Route("GET", "/healthz", endpoint(self.health), None),
            Route("GET", "/version", endpoint(self.version), None),
        ]

    async def health(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The health of the server: how it stores, why it refuses new jobs, and which rows are
        damaged.

        If the server has keys, the names of rows, schedules and lanes are for those with the scope
        `read` and without prefixes. Others get the numbers of rows and schedules, and no `lanes`.

        `clock_set` tells of the last time since the start that the clock of the machine was set by
        more than a minute: `at`, `by_ms`, and how many dates became due by it (`due_jobs`,
        `due_schedules`, `due_pauses`). `lanes` has those to other servers: what waits on each,
        since when, and its last success and error. `inbox_refused` counts rows of `zq.inbox` that
        cannot become jobs, and names some with the codes of their errors. `bloat` tells of a
        database of PostgreSQL how many old versions of rows it has, and for how long the oldest
        transaction has been open. `servers` is there where servers may share a database: the
        `slot` of this one, how many are `alive`, and what each has for itself (`per_server`).

        `may_lose_ms` is how much of the latest changes a power cut may take, in milliseconds: 0
        unless answers come before the flush. `storage_written` has the `bytes` that the kernel was
        asked to write since the start, and what that is a year (`bytes_a_year`), where the system
        counts it.
        """
        health = self._admin.health()
        named = self._guard.opens(request, KeyScope.READ)
        document: dict[str, object] = {
            "status": "ok",
            "commit_mode": COMMIT_MODES[health.durability.changes],
            "enqueue_commit_mode": COMMIT_MODES[health.durability.enqueues],
            "flushed_by": health.flushed_by,
            "may_lose_ms": health.durability.loses_ms,
        }
        if (written := self._written()) is not None:
            document["storage_written"] = written
        if (refusal := health.refusal) is not None:
            # The status is 200: acknowledgements are accepted, and a restart would not help.
            document["enqueues_refused"] = {"code": refusal.code, "error": refusal.message}
        if health.locked_since is not None:
            # A restart would not help here either.
            document[health.locked_by.code] = {
                "since": health.locked_since,
                "error": health.locked_by.message,
            }
        if (faulty := self._crons.faulty).entries:
            document["faulty_crons"] = {
                "entries": faulty.entries,
                "named": [entry._asdict() for entry in faulty.named if named],
            }
        if (bloat := health.bloat) is not None:
            document["bloat"] = {
                "dead_rows": bloat.dead_rows,
                "oldest_snapshot_s": round(bloat.snapshot_s, 1),
            }
        if health.slot is not None:
            document["servers"] = {
                "slot": health.slot,
                "alive": health.servers,
                "per_server": PER_SERVER,
            }
        if (refused := self._inbox.refused).rows:
            document["inbox_refused"] = {
                "rows": refused.rows,
                "named": [{"id": id, "code": code} for id, code in refused.first if named],
            }
        if named and self._lanes.in_use:
            document["lanes"] = await self._lanes_now()
        if (step := health.clock_set) is not None:
            document["clock_set"] = {"at": step.at, "by_ms": step.by, **step.fields()}
        if health.quarantined.rows:
            document["status"] = "damaged"
            document["quarantined"] = set_aside(health.quarantined, named=named)
        return answer(document, accepted)

    async def _lanes_now(self) -> list[LaneHealth]:
        """How each lane goes. A disk that does not answer leaves that out."""
        try:
            found = await self._lanes.status()
        except (ZqError, StoreError):
            return []
        now = self._clock.now_ms()
        return [_lane_health(each, now) for each in found]

    def _written(self) -> dict[str, int] | None:
        """The bytes that went to the disk so far, and what those since the start are a year."""
        bytes = storage_written()
        if bytes is None:
            return None
        seconds = max(self._clock.monotonic() - self._since, LEAST_S)
        a_year = (bytes - self._written_before) * YEAR_S / seconds
        return {"bytes": bytes, "bytes_a_year": round(a_year)}

    async def version(self, _request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The API's level, and zq's own version."""
        return answer({"version": API_VERSION, "zq": __version__}, accepted)


def _lane_health(status: LaneStatus, now: int) -> LaneHealth:
    """A lane as `/health` shows it, at a time in milliseconds."""
    progress = status.progress
    return LaneHealth(
        status.lane.name,
        progress.state,
        status.waiting,
        status.bytes,
        status.lag_ms(now),
        status.oldest_at,
        progress.succeeded_at,
        progress.error,
        progress.failed_at,
        progress.failure,
    )


APIS = (ProbesApi,)
