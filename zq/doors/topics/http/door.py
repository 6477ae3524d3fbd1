"""The dialect of topics under `/v0`: its routes and its errors."""

from collections.abc import Iterable, Sequence

from aiohttp import web

from zq.doors.topics.http.bodies import TopicBodies
from zq.doors.topics.http.description.openapi import TOPICS
from zq.doors.topics.http.lifecycle import TopicLifecycleApi
from zq.doors.topics.http.metrics import TopicMetricsApi
from zq.doors.topics.http.problems import OF_STATUS, not_found, problem, refusal
from zq.doors.topics.http.queues import QueueTopicsApi
from zq.doors.topics.http.records import TopicRecordsApi
from zq.doors.topics.http.routers import TopicRoutersApi
from zq.doors.topics.http.service import TopicsServiceApi
from zq.doors.topics.http.streams import EventStreams
from zq.doors.topics.http.turns import RequestTurns, within_reach
from zq.doors.topics.http.watch import TopicWatchApi
from zq.doors.topics.http.work import TopicWorkApi
from zq.http.api.parts import ApiParts
from zq.http.door import Door, Route
from zq.http.json_description import JsonDescriptionApi
from zq.http.transport.answer import Answer
from zq.model.errors import ZqError


class TopicsDoor(Door):
    """The door for clients of topics."""

    prefix = "/v0"

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        return problem(error)

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return refusal(status, OF_STATUS.get(status, "invalid_request"), text)

    def not_found(self, request: web.BaseRequest) -> Answer:
        return not_found(request)

    def not_allowed(self, request: web.BaseRequest, methods: Iterable[str]) -> Answer:
        allowed = ", ".join(sorted(methods))
        message = f"{request.method} is not for this path: use {allowed}"
        return refusal(405, "method_not_allowed", message, headers={"Allow": allowed})


def topics_routes(parts: ApiParts, *, gzip: bool = False) -> Sequence[Route]:
    """Every route of the door."""
    services, guard, answers = parts.services, parts.guard, parts.answers
    reader = TopicBodies(parts.bodies, parts.line, takes_gzip=gzip)
    streams = EventStreams(guard, services.clock, parts.heartbeats)
    watch = TopicWatchApi(services, reader, streams)
    turns = RequestTurns(compresses=gzip)
    routes = [
        *TopicLifecycleApi(services, reader).routes(),
        *TopicRoutersApi(services, reader).routes(),
        *watch.routes(),
        *QueueTopicsApi(services, guard, reader, answers).routes(),
        *TopicRecordsApi(services, guard, reader, answers).routes(),
        *TopicsServiceApi(services).routes(),
        *TopicMetricsApi(services, streams).routes(),
    ]
    lasting = [*TopicWorkApi(services, streams).streams(), *watch.streams()]
    described = JsonDescriptionApi(TOPICS, [*routes, *lasting]).routes()
    return within_reach([*turns.wrapped([*routes, *described]), *lasting])
