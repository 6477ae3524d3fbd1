"""Zizq's API: its routes, its formats and its errors, in a tree without a prefix."""

from collections.abc import Sequence

from aiohttp import web

from zq.features.archive.http import RetainedApi
from zq.features.history.http import HistoryApi
from zq.features.search.http import SuggestApi
from zq.features.targets.http import TargetsApi
from zq.http.api.description.openapi import DescriptionApi
from zq.http.api.endpoints import answer, answer_codec
from zq.http.api.events import EventsApi
from zq.http.api.jobs import JobsApi
from zq.http.api.keys import KeysApi
from zq.http.api.leases import LeasesApi
from zq.http.api.outcomes import OutcomesApi
from zq.http.api.parts import ApiParts
from zq.http.api.problems import error_codec, problem
from zq.http.api.push import PushApi
from zq.http.api.settings import SettingsApi
from zq.http.api.settlements import SettlementsApi
from zq.http.api.take import TakeApi
from zq.http.api.workers import WorkersApi
from zq.http.door import Door, Route
from zq.http.transport.answer import Answer
from zq.http.verbs import VerbsApi
from zq.model.errors import ZqError
from zq.operators.ops.http.metrics.api import MetricsApi
from zq.operators.ops.http.service import ServiceApi
from zq.operators.ops.http.stats import StatsApi
from zq.operators.ops.http.status import StatusApi


class ZizqDoor(Door):
    """The door for Zizq's clients. It speaks JSON or MessagePack, also in errors."""

    refuses_queries = True

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        return problem(error, error_codec(request))

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return answer({"error": text}, error_codec(request), status)

    def not_found(self, request: web.BaseRequest) -> Answer:
        """Answer as other doors do, but raise `NotAcceptable` if the client accepts no format."""
        answer_codec(request)
        return super().not_found(request)


def zizq_routes(parts: ApiParts) -> Sequence[Route]:
    """Every route of the door, and the one that describes them."""
    services, guard, bodies, line = parts.services, parts.guard, parts.bodies, parts.line
    answers, limits, take = parts.answers, parts.limits, parts.take
    endpoints, packer = parts.endpoints, parts.packer
    apis = (
        JobsApi(services, endpoints, answers, packer, limits),
        SettlementsApi(services, endpoints, limits),
        OutcomesApi(services, endpoints, packer),
        PushApi(services, bodies, line, limits),
        LeasesApi(services, guard, endpoints, answers, packer, limits),
        TakeApi(services, guard, take, packer),
        HistoryApi(services, packer),
        WorkersApi(services),
        KeysApi(guard),
        SettingsApi(services, endpoints),
        TargetsApi(services),
        RetainedApi(services, endpoints),
        SuggestApi(services),
        EventsApi(services, guard, endpoints, take),
        VerbsApi(services, endpoints, packer, limits),
        StatsApi(services, packer),
        ServiceApi(services),
        StatusApi(services),
        MetricsApi(parts),
    )
    routes = [route for api in apis for route in api.routes()]
    return routes + DescriptionApi(routes).routes()
