"""The application: every door's routes behind one table of errors."""

from aiohttp import web

from zq.engine.engine import Engine
from zq.http.bodies import Bodies
from zq.http.native.jobs import JobsApi
from zq.http.native.service import ServiceApi
from zq.http.native.settlements import SettlementsApi
from zq.http.native.take import TakeApi, TakeOptions
from zq.http.problems import answer_errors

# Words that are no ids: `GET /jobs/bulk` is a wrong method, not a job that does not exist.
JOB_PATH = r"/jobs/{id:(?!(?:bulk|success|count|take)(?:/|\Z))[^{}/]+}"


def build_app(engine: Engine, bodies: Bodies, max_body: int, take: TakeOptions) -> web.Application:
    """Everything that the server answers, over one engine."""
    app = web.Application(middlewares=[answer_errors], client_max_size=max_body)
    for api in (
        JobsApi(engine, bodies, JOB_PATH),
        SettlementsApi(engine, bodies, JOB_PATH),
        TakeApi(engine, take),
        ServiceApi(engine),
    ):
        app.router.add_routes(api.routes())
    return app
