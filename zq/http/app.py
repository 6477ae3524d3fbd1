"""The application: every door's routes behind one table of errors."""

from aiohttp import web

from zq.engine.engine import Engine
from zq.http.bodies import Bodies
from zq.http.metrics.api import MetricsApi
from zq.http.native.jobs import JobsApi
from zq.http.native.service import ServiceApi
from zq.http.native.settlements import SettlementsApi
from zq.http.native.take import TakeApi, TakeOptions
from zq.http.problems import front_door
from zq.wire.bodies import Limits

# Words that are no ids: `GET /jobs/bulk` is a wrong method, not a job that does not exist.
JOB_PATH = r"/jobs/{id:(?!(?:bulk|success|count|take)(?:/|\Z))[^{}/]+}"


def build_app(
    engine: Engine, bodies: Bodies, limits: Limits, take: TakeOptions, metrics: MetricsApi
) -> web.Application:
    """Everything that the server answers, over one engine."""
    errors = front_door(metrics.sources.gate.refused)
    app = web.Application(middlewares=[errors], client_max_size=limits.body)
    for api in (
        JobsApi(engine, bodies, limits, JOB_PATH),
        SettlementsApi(engine, bodies, limits, JOB_PATH),
        TakeApi(engine, take),
        ServiceApi(engine),
        metrics,
    ):
        app.router.add_routes(api.routes())
    return app
