"""The web apps of docs/fastapi.md and docs/flask.md, as they are printed, on a real server."""

import asyncio
import importlib
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from documents import code, commands
from starlette.testclient import TestClient

import zq
from zq.cli.worker import load
from zq.testing import TestServer, run_until_idle


@pytest.fixture
def folder(zq_server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder from which modules are imported, in a program with the test's server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ZQ_URL", zq_server.url)
    names = ("jobs", "shop", "web", "members")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield tmp_path
    for name in names:
        sys.modules.pop(name, None)


def app_of(name: str) -> zq.App:
    """The app that the command for a worker names."""
    (command,) = commands(name)
    tool, verb, spec, *_ = shlex.split(command)
    assert (tool, verb) == ("zq", "worker")
    return load(spec)


async def test_fastapi_enqueues_and_waits_for_results(folder: Path) -> None:
    (folder / "jobs.py").write_text(code("fastapi jobs"))
    (folder / "web.py").write_text(code("fastapi web"))
    web = importlib.import_module("web")

    def visit(method: str, path: str) -> Any:
        with TestClient(web.app) as client:
            return client.request(method, path)

    joined = await asyncio.to_thread(visit, "POST", "/members?to=ann")
    queue = app_of("fastapi worker")
    await run_until_idle(queue)
    path = f"/jobs/{joined.json()['job']}"
    assert joined.status_code == 202
    assert (await asyncio.to_thread(visit, "GET", path)).json() == {"result": "welcomed ann"}
    missing = await asyncio.to_thread(visit, "GET", "/jobs/00000000000000000000000000")
    assert (missing.status_code, missing.json()) == (404, {"detail": "there is no such job"})
    await queue.close()


async def test_starlette_has_a_worker_in_its_process(folder: Path) -> None:
    (folder / "jobs.py").write_text(code("fastapi jobs"))
    (folder / "members.py").write_text(code("starlette"))
    members = importlib.import_module("members")

    def visit() -> Any:
        with TestClient(members.app) as client:
            return client.post("/members/ann").json()

    assert await asyncio.to_thread(visit) == "welcomed ann"


async def test_flask_tasks_run_in_the_context_of_the_application(folder: Path) -> None:
    (folder / "shop.py").write_text(code("flask"))
    shop = importlib.import_module("shop")
    client = shop.web.test_client()

    joined = await asyncio.to_thread(client.post, "/members/ann")
    queue = app_of("flask worker")
    await run_until_idle(queue)
    path = f"/jobs/{joined.json['job']}"
    assert joined.status_code == 202
    assert (await asyncio.to_thread(client.get, path)).json == {
        "result": "Corner shop welcomed ann"
    }
    missing = await asyncio.to_thread(client.get, "/jobs/00000000000000000000000000")
    assert missing.status_code == 404
    await queue.close()
