"""Zizq's API: its routes, its formats and its errors, in a tree without a prefix."""

from collections.abc import Sequence

from aiohttp import web

from zq.http.bulk_line import BulkLine
from zq.http.door import Door, Route
from zq.http.guard import Guard
from zq.http.ops.metrics.api import MetricsApi
from zq.http.ops.service import ServiceApi
from zq.http.ops.status import StatusApi
from zq.http.reading import RequestBodies
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
from zq.http.zizq.archive import RetainedApi
from zq.http.zizq.audit import AuditApi
from zq.http.zizq.budgets import BudgetsApi
from zq.http.zizq.crons import CronsApi
from zq.http.zizq.description.openapi import DescriptionApi
from zq.http.zizq.endpoints import BodyEndpoints, answer, answer_codec
from zq.http.zizq.events import EventsApi
from zq.http.zizq.failures import FailuresApi
from zq.http.zizq.history import HistoryApi
from zq.http.zizq.jobs import JobsApi
from zq.http.zizq.keys import KeysApi
from zq.http.zizq.leases import LeasesApi
from zq.http.zizq.outcomes import OutcomesApi
from zq.http.zizq.packing import Packer
from zq.http.zizq.problems import error_codec, problem
from zq.http.zizq.push import PushApi
from zq.http.zizq.schemas import QueueSchemasApi
from zq.http.zizq.settings import SettingsApi
from zq.http.zizq.settlements import SettlementsApi
from zq.http.zizq.stats import StatsApi
from zq.http.zizq.suggest import SuggestApi
from zq.http.zizq.sweeps import SweepsApi
from zq.http.zizq.take import TakeApi, TakeOptions
from zq.http.zizq.targets import TargetsApi
from zq.http.zizq.trends import TrendsApi
from zq.http.zizq.waits import WaitsApi
from zq.http.zizq.workers import WorkersApi
from zq.model.errors import ZqError
from zq.service import Services
from zq.wire.bodies import Limits


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


def zizq_routes(
    services: Services,
    guard: Guard,
    bodies: RequestBodies,
    line: BulkLine,
    answers: Answers,
    limits: Limits,
    take: TakeOptions,
    metrics: MetricsApi,
) -> Sequence[Route]:
    """Every route of the door, and the one that describes them."""
    endpoints = BodyEndpoints(bodies, line)
    packer = Packer(services.turns)
    apis = (
        JobsApi(services, endpoints, answers, packer, limits),
        SettlementsApi(services, endpoints, limits),
        OutcomesApi(services, endpoints, packer),
        PushApi(services, bodies, line, limits),
        LeasesApi(services, guard, endpoints, answers, packer, limits),
        WaitsApi(services),
        TakeApi(services, guard, take, packer),
        FailuresApi(services),
        HistoryApi(services, packer),
        AuditApi(services),
        WorkersApi(services),
        KeysApi(guard),
        SettingsApi(services, endpoints),
        TargetsApi(services),
        QueueSchemasApi(services, endpoints),
        RetainedApi(services, endpoints),
        SweepsApi(services, endpoints),
        SuggestApi(services),
        BudgetsApi(services, endpoints),
        EventsApi(services, guard, endpoints, take),
        CronsApi(services, endpoints, packer, limits),
        StatsApi(services, packer),
        TrendsApi(services, endpoints),
        ServiceApi(services),
        StatusApi(services),
        metrics,
    )
    routes = [route for api in apis for route in api.routes()]
    return routes + DescriptionApi(routes).routes()
