"""The application: every door's routes behind one guard and one table of errors."""

from collections import Counter
from collections.abc import Iterable

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

from zq.engine.engine import Engine
from zq.http.bodies import Bodies
from zq.http.description.api import DescriptionApi
from zq.http.endpoints import Route
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
from zq.http.problems import answer, error_codec, front_door, problem
from zq.model.errors import ZqError
from zq.wire.bodies import Limits

_WORDS = "bulk|success|count|take|by-key|cancel|extend|release|redrive"
# Words that are no ids: `GET /jobs/bulk` is a wrong method, not a job that does not exist.
JOB_PATH = rf"/jobs/{{id:(?!(?:{_WORDS})(?:/|\Z))[^{{}}/]+}}"


def build_app(
    engine: Engine,
    guard: Guard,
    bodies: Bodies,
    limits: Limits,
    take: TakeOptions,
    metrics: MetricsApi,
) -> web.Application:
    """Everything that the server answers, over one engine."""
    refused = metrics.sources.gate.refused
    door = front_door(guard.admit, refused)
    app = web.Application(middlewares=[door], client_max_size=limits.body)
    _add_routes(app, guard, refused, all_routes(engine, guard, bodies, limits, take, metrics))
    return app


def all_routes(
    engine: Engine,
    guard: Guard,
    bodies: Bodies,
    limits: Limits,
    take: TakeOptions,
    metrics: MetricsApi,
) -> list[Route]:
    """Every door's routes, and those that describe them."""
    apis = (
        JobsApi(engine, bodies, limits, JOB_PATH),
        SettlementsApi(engine, bodies, limits, JOB_PATH),
        OutcomesApi(engine, bodies, JOB_PATH),
        PushApi(engine, bodies, limits),
        LeasesApi(engine, guard, bodies, limits, JOB_PATH),
        TakeApi(engine, guard, take),
        HistoryApi(engine),
        WorkersApi(engine),
        SettingsApi(engine, bodies),
        SweepsApi(engine, bodies, JOB_PATH),
        EventsApi(engine, guard, bodies, take, JOB_PATH),
        StatsApi(engine),
        ServiceApi(engine),
        metrics,
    )
    routes = [route for api in apis for route in api.routes()]
    return routes + DescriptionApi(routes).routes()


def _add_routes(
    app: web.Application, guard: Guard, refused: Counter[str], routes: Iterable[Route]
) -> None:
    async def expect(request: web.Request) -> web.StreamResponse | None:
        """Ask for the body that a client holds back, once it has been let in."""
        try:
            guard.admit(request)
        except ZqError as error:
            refused[error.code] += 1
            return problem(error, error_codec(request))
        if request.version != HttpVersion11:
            return None
        if request.headers[hdrs.EXPECT].lower() != "100-continue":
            return answer({"error": "expectation failed"}, error_codec(request), 417)
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
        return None

    for route in routes:
        for method in ("GET", "HEAD") if route.method == "GET" else (route.method,):
            added = app.router.add_route(method, route.path, route.handler, expect_handler=expect)
            guard.permits[added] = route
