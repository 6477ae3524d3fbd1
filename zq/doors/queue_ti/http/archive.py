"""The archive of a topic: acknowledged messages, their replay, and what is trimmed."""

import base64
import contextlib
from datetime import datetime

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from zq.doors.queue_ti.http.bodies import MessageEndpoints, ReplayBody
from zq.doors.queue_ti.http.calls import Defaults
from zq.doors.queue_ti.http.documents import created_at, metadata_of, payload_of, rfc3339
from zq.doors.queue_ti.http.groups import queues_of, topic_behind
from zq.doors.queue_ti.http.pages import MessagePage, page_of
from zq.doors.queue_ti.http.problems import answer
from zq.features.archive.model import NotArchived, OutOfArchive
from zq.features.archive.service import Replays
from zq.features.sweeps.service_running import Sweeps
from zq.http.door import PATH, Ids, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest, Unprocessable, ZqError
from zq.model.filters import Filter, ValueRange
from zq.model.job import NO_EXTRAS, JobRecord
from zq.model.keys import KeyScope
from zq.model.lifecycle import Status
from zq.model.names import check_name
from zq.model.reach import Reach
from zq.service.services import Services

ARCHIVED = (Status.COMPLETED,)


class ArchivedDocument(msgspec.Struct):
    """An acknowledged message. Its payload is in base64."""

    id: str
    topic: str
    payload: str
    metadata: dict[str, str] | None
    retry_count: int
    created_at: str
    acked_at: str
    key: str | UnsetType = UNSET
    original_topic: str | UnsetType = UNSET


class ArchiveApi:
    """`/topics/{topic}/replay`, `/topics/{topic}/message-log`, and the archive reaper."""

    def __init__(
        self, services: Services, endpoints: MessageEndpoints, ids: Ids, defaults: Defaults
    ) -> None:
        self._listing, self._sweeps = services.listing, services[Sweeps]
        self._queues, self._replays = services.queues, services[Replays]
        self._clock = services.clock
        self._endpoints = endpoints
        self._ids = ids
        self._defaults = defaults

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        log = "/topics/{topic}/message-log"
        replay = self._endpoints.change(ReplayBody, self.replay, optional=True)
        return [
            Route("POST", "/topics/{topic}/replay", replay, KeyScope.MANAGE),
            Route("GET", log, self.page, KeyScope.READ),
            Route("DELETE", log, self.trim, KeyScope.MANAGE),
            Route("POST", "/admin/archive-reaper/run", self.reap, KeyScope.MANAGE, whole=True),
        ]

    async def replay(self, request: web.BaseRequest, sent: ReplayBody) -> Answer:
        """Store acknowledged messages once more."""
        topic, text = _topic(request), sent.from_time or ""
        since = _time("from_time", text, Unprocessable) if text else None
        reach = reach_of(request)
        defaults = self._defaults.of(await topic_behind(topic, self._queues))
        copies = await self._replays.replay(topic, since, reach, defaults)
        for group in (await queues_of(topic, self._queues))[1:]:
            # One with a window of its own may have nothing from that time: its own replay says so.
            with contextlib.suppress(NotArchived, OutOfArchive):
                copies += await self._replays.replay(group, since, reach, defaults)
        return answer({"topic": topic, "enqueued": copies, "from_time": text})

    async def page(self, request: web.BaseRequest) -> Answer:
        """A page of acknowledged messages, the newest first."""
        queues = await queues_of(_topic(request), self._queues)
        filter = Filter(statuses=ARCHIVED, queues=queues).within(reach_of(request))
        filter.reach.require(filter.queues)
        limit, offset = page_of(request)
        total = await self._listing.count(filter)
        jobs = await self._listing.page_at(filter, offset, limit) if offset < total else []
        return answer(MessagePage([self._document(job) for job in jobs], total, limit, offset))

    async def trim(self, request: web.BaseRequest) -> Answer:
        """Delete what was acknowledged before a time."""
        if not request.query.get("before"):
            raise InvalidRequest("before is required: write a time such as 2026-01-31T12:00:00Z")
        before = _time("before", request.query["before"])
        queues = await queues_of(_topic(request), self._queues)
        deleted = await self._trim(queues, before, reach_of(request))
        return answer({"deleted": deleted})

    async def reap(self, request: web.BaseRequest) -> Answer:
        """Delete what is older than the windows of today. Older windows end by themselves."""
        deleted, now, reach = 0, self._clock.now_ms(), reach_of(request)
        for topic, settings in (await self._queues.all_settings(reach)).items():
            if settings.archived_ms:
                deleted += await self._trim((topic,), now - settings.archived_ms, reach)
        return answer({"deleted": deleted})

    async def _trim(self, queues: tuple[str, ...], before: int, reach: Reach) -> int:
        reach.require(queues)
        span = ValueRange(high=before - 1)
        filter = Filter(statuses=ARCHIVED, queues=queues, finished_at=span)
        return await self._sweeps.delete(filter.within(reach))

    def _document(self, job: JobRecord) -> ArchivedDocument:
        return ArchivedDocument(
            id=self._ids.text(job.key),
            topic=job.queue,
            payload=base64.b64encode(payload_of(job).encode()).decode(),
            metadata=metadata_of(job),
            retry_count=job.attempts - job.forgiven,
            created_at=created_at(job),
            acked_at=rfc3339(job.finished_at or 0),
            key=UNSET if job.unique_key is None else job.unique_key,
            original_topic=(job.extras or NO_EXTRAS).origin or UNSET,
        )


def _topic(request: web.BaseRequest) -> str:
    return check_name("topic", request[PATH]["topic"])


def _time(name: str, text: str, error: type[ZqError] = InvalidRequest) -> int:
    """A time of RFC 3339 in milliseconds. Raises an `error`."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            raise ValueError(text)
        return int(time.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise error(
            f"invalid {name} {text[:64]!r}: write a time such as 2026-01-31T12:00:00Z"
        ) from None
