"""The programs of docs/tracing.md, as they are printed."""

import asyncio
import importlib
import io
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer as SentryServer
from documents import code
from process.server import clean_environment

from zq.client.values import Submission
from zq.testing import TestServer, run_until_idle


async def test_the_app_has_spans_and_log_lines_that_name_the_job(
    zq_server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZQ_URL", zq_server.url)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "traced_shop.py").write_text(code("tracing app"))
    shop = importlib.import_module("traced_shop")
    text = io.StringIO()
    monkeypatch.setattr(sys, "stderr", text)
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    exec(code("tracing log"), {})
    job = await shop.welcome.enqueue("ann")
    outcomes = await run_until_idle(shop.app)
    await shop.app.close()
    assert outcomes[0].id == job.id
    assert f"INFO [welcome {job.id}] sending to ann\n" in text.getvalue()
    assert f"INFO [remember {outcomes[1].id}] remembered ann\n" in text.getvalue()
    sys.modules.pop("traced_shop")


async def test_sentry_hears_of_a_failure_once(zq_server: TestServer, tmp_path: Path) -> None:
    envelopes: list[list[Any]] = []

    async def receive(request: web.Request) -> web.Response:
        body = await request.read()
        envelopes.append([json.loads(line) for line in body.splitlines()])
        return web.json_response({})

    sentry = web.Application()
    sentry.router.add_post("/api/1/envelope/", receive)
    (tmp_path / "shop.py").write_text(code("tracing sentry"))
    job = Submission("default", "divide", [1, 0], retry_limit=0)
    async with SentryServer(sentry) as listening, zq_server.app() as app:
        (stored,) = await app.backend.enqueue([job])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "zq.cli", "worker", "shop:app", "--burst"),
            cwd=tmp_path,
            env=clean_environment()
            | {"ZQ_URL": zq_server.url, "SENTRY_DSN": f"http://key@127.0.0.1:{listening.port}/1"},
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert await process.wait() == 0
    (event,) = [item for each in envelopes for item in each if "exception" in item]
    assert event["exception"]["values"][-1]["type"] == "ZeroDivisionError"
    assert event["contexts"]["job"] == {"id": stored.id, "attempt": 1}
    assert (event["transaction"], event["tags"]["queue"]) == ("divide", "default")
