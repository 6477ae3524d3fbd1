"""The application: every door's routes behind one guard and one table of errors."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

from zq.engine.engine import Engine
from zq.http.answer import Answer
from zq.http.answers import Answers
from zq.http.bodies import Bodies, is_withheld
from zq.http.description.api import DescriptionApi
from zq.http.endpoints import Response, Route
from zq.http.guard import Guard
from zq.http.metrics.api import MetricsApi
from zq.http.native.events import EventsApi
from zq.http.native.history import HistoryApi
from zq.http.native.jobs import JobsApi
from zq.http.native.leases import LeasesApi
from zq.http.native.outcomes import OutcomesApi
from zq.http.native.push import PushApi
from zq.http.native.service import ServiceApi
from zq.http.native.settings import SettingsApi
from zq.http.native.settlements import SettlementsApi
from zq.http.native.stats import StatsApi
from zq.http.native.sweeps import SweepsApi
from zq.http.native.take import TakeApi, TakeOptions
from zq.http.native.workers import WorkersApi
from zq.http.negotiation import answer_codec
from zq.http.problems import answer, error_codec, problem
from zq.http.router import PATH, Methods, Router
from zq.model.errors import AnswersFull, Internal, ZqError
from zq.wire.bodies import Limits

log = logging.getLogger(__name__)


class App:
    """Answers requests: finds the endpoint, asks the guard, turns every error into one of ours.

    `refused` counts errors by their codes.
    """

    def __init__(
        self, routes: Sequence[Route], guard: Guard, answers: Answers, refused: Counter[str]
    ) -> None:
        self.routes = routes
        self._answers = answers
        self._router = Router(routes)
        self._guard = guard
        self._refused = refused

    async def __call__(self, request: web.BaseRequest) -> Response:
        """Answer a request. Raises where its connection is lost, or it is cancelled."""
        response = await self._answer(request)
        if isinstance(response, Answer) and is_withheld(request):
            # Whether its body comes after all nobody knows, so nothing can follow it.
            response.closes = True
        try:
            await self._answers.send(request, response)
        except AnswersFull as error:
            response = self._refuse(request, error)
            await self._answers.send(request, response)
        return response

    async def _answer(self, request: web.BaseRequest) -> Response:
        try:
            return await self._serve(request)
        except ZqError as error:
            return self._refuse(request, error)
        except ConnectionError:
            raise
        except Exception:
            log.exception("a handler failed", extra={"fields": {"path": request.path}})
            return problem(Internal(), error_codec(request))

    def _refuse(self, request: web.BaseRequest, error: ZqError) -> Answer:
        self._refused[error.code] += 1
        return problem(error, error_codec(request))

    async def _serve(self, request: web.BaseRequest) -> Response:
        methods, request[PATH] = self._router.find(request.rel_url.path_safe)
        route = methods.get(request.method) or methods.get("*")
        self._guard.admit(request, route)
        if route is None:
            return _not_here(request, methods)
        expected = request.headers.get(hdrs.EXPECT, "100-continue")
        if expected.lower() != "100-continue" and request.version == HttpVersion11:
            return answer({"error": "expectation failed"}, error_codec(request), 417)
        if not route.ticks and asyncio.current_task() is None:
            await asyncio.sleep(0)  # it goes on as a task, which time-outs and the like want
        return await route.handler(request)


def build_app(
    engine: Engine,
    guard: Guard,
    bodies: Bodies,
    answers: Answers,
    limits: Limits,
    take: TakeOptions,
    metrics: MetricsApi,
) -> App:
    """Everything that the server answers, over one engine."""
    routes = all_routes(engine, guard, bodies, answers, limits, take, metrics)
    return App(routes, guard, answers, metrics.sources.gate.refused)


def all_routes(
    engine: Engine,
    guard: Guard,
    bodies: Bodies,
    answers: Answers,
    limits: Limits,
    take: TakeOptions,
    metrics: MetricsApi,
) -> list[Route]:
    """Every door's routes, and those that describe them."""
    apis = (
        JobsApi(engine, bodies, answers, limits),
        SettlementsApi(engine, bodies, limits),
        OutcomesApi(engine, bodies),
        PushApi(engine, bodies, limits),
        LeasesApi(engine, guard, bodies, answers, limits),
        TakeApi(engine, guard, take),
        HistoryApi(engine),
        WorkersApi(engine),
        SettingsApi(engine, bodies),
        SweepsApi(engine, bodies),
        EventsApi(engine, guard, bodies, take),
        StatsApi(engine),
        ServiceApi(engine),
        metrics,
    )
    routes = [route for api in apis for route in api.routes()]
    return routes + DescriptionApi(routes).routes()


def _not_here(request: web.BaseRequest, methods: Methods) -> Answer:
    if methods:
        return Answer(405, headers={"Allow": ", ".join(sorted(methods))})
    return answer({"error": "not found"}, answer_codec(request), 404)
