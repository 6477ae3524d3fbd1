"""GET /status: is it the queue or the disk?"""

from aiohttp import web
from msgspec import UNSET, UnsetType

from zq import __version__
from zq.engine.subscribers.figures import RecentTimes
from zq.http.api.endpoints import answer, endpoint, parameters
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.operators.ops.http_quick import API_VERSION, COMMIT_MODES
from zq.operators.ops.service import StatusNow, StatusReader
from zq.operators.ops.wire import (
    DiskDocument,
    InboxDocument,
    RecentTimesDocument,
    StatusDocument,
    WriteAheadLogDocument,
)
from zq.service.admin import ServerHealth
from zq.wire.codecs import BodyCodec


class StatusApi:
    """`/status`."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._admin, self._status = services.admin, services[StatusReader]

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/status", endpoint(self.status), KeyScope.READ, whole=True)]

    async def status(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The state of the server: recent ticks and flushes, waiting commands, the log, the disk.

        `limits_reached` names the reached limits: `storage_full`, `wal_full`, `inbox_full`,
        `server_limit` (jobs in flight), `database_locked` (by another program), `database_away`
        (its connection is lost). `flags` has the settings that are not at their defaults.
        """
        parameters(request, ())
        document = status_document(self._status.read(), self._admin.health())
        return answer(document, accepted)


def status_document(now: StatusNow, health: ServerHealth) -> StatusDocument:
    """The state of the server as a document."""
    settings = now.settings
    document = StatusDocument(
        version=API_VERSION,
        zq=__version__,
        since=now.since,
        commit_mode=COMMIT_MODES[health.durability.changes],
        enqueue_commit_mode=COMMIT_MODES[health.durability.enqueues],
        flushed_by=health.flushed_by,
        ticks=_times(now.ticks),
        flushes=_times(now.flushes),
        inbox=InboxDocument(now.inbox_jobs, settings.max_inbox_jobs, now.inbox_changes),
        streams=now.streams,
        claims=now.claims,
        log=WriteAheadLogDocument(now.log_bytes, settings.max_wal, now.uncopied_bytes),
        disk=DiskDocument(
            now.database_bytes,
            settings.disk_reserve,
            UNSET if now.free_bytes is None else now.free_bytes,
        ),
        limits_reached=now.reached,
        flags=dict(now.flags),
    )
    if settings.global_in_flight_limit:
        document.in_flight_limit = settings.global_in_flight_limit
    return document


def _times(recent: RecentTimes) -> RecentTimesDocument:
    return RecentTimesDocument(recent.observed, _ms(recent.median), _ms(recent.p99))


def _ms(seconds: float | None) -> float | UnsetType:
    return UNSET if seconds is None else round(seconds * 1000, 3)
