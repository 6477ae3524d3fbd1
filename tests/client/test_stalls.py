"""A job that ends its worker again and again dies at last."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.worker import worker_run
from zq.client.worker.worker import STALL_LIMIT

from . import suicidal
from .conftest import working
from .relay import Relay
from .workers import until_ready, until_resumed


async def killed_worker(url: str, *flags: str) -> int:
    """Run a worker. Return its exit code."""
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zq.cli", "worker", "client.suicidal:app", "--burst", *flags),
        env={**os.environ, "ZQ_URL": url, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    return await worker.wait()


async def test_a_job_that_ends_its_worker_has_three_tries(app: App, site: Site) -> None:
    (stored,) = await app.backend.enqueue([suicidal.crash.job({"args": [], "kwargs": {}})])
    for tries in range(STALL_LIMIT + 1):
        found = await app.backend.get(stored.id)
        assert (found.status, found.attempts) == ("ready", 0)
        assert await killed_worker(site.url) == -9
        if tries < STALL_LIMIT:
            await until_ready(app, 1)
    with pytest.raises(zq.JobFailed, match=r"is dead: its worker died 3 times$"):
        await app.job(stored.id).result(PATIENCE_S)
    found = await app.backend.get(stored.id)
    assert (found.status, found.reason, found.stalls) == ("dead", "stalled", 3)


async def test_a_worker_may_let_fewer_tries_end_it(app: App, site: Site) -> None:
    (stored,) = await app.backend.enqueue([suicidal.crash.job({"args": [], "kwargs": {}})])
    assert await killed_worker(site.url, "--stall-limit", "0") == -9
    with pytest.raises(zq.JobFailed, match=r"is dead: its worker died$"):
        await app.job(stored.id).result(PATIENCE_S)


async def test_a_task_may_have_a_limit_of_its_own(app: App, site: Site) -> None:
    job = suicidal.crash.job({"args": [], "kwargs": {}})
    (stored,) = await app.backend.enqueue([msgspec.structs.replace(job, stall_limit=0)])
    assert await killed_worker(site.url) == -9
    with pytest.raises(zq.JobFailed, match=r"is dead: its worker died$"):
        await app.job(stored.id).result(PATIENCE_S)


async def test_a_job_that_ends_its_own_engine_has_three_tries(tmp_path: Path) -> None:
    """Nobody sees the stream end, since the engine is in the process that dies."""
    url = f"sqlite://{tmp_path}/own"
    async with App(url) as app:
        (stored,) = await app.backend.enqueue([suicidal.crash.job({"args": [], "kwargs": {}})])
        (beside,) = await app.backend.enqueue([suicidal.crash.job({"args": [], "kwargs": {}})])
    for tries in range(STALL_LIMIT + 1):
        assert await killed_worker(url) == -9
        async with App(url) as app:
            found = await app.backend.get(stored.id)
            if tries < STALL_LIMIT:
                assert (found.status, found.attempts) == ("ready", 0)
    async with App(url) as app:
        with pytest.raises(zq.JobFailed, match=r"is dead: its worker died 3 times$"):
            await app.job(stored.id).result(PATIENCE_S)
        # The second one only waited at the worker.
        found = await app.backend.get(beside.id)
        assert (found.status, found.stalls) == ("ready", None)


@pytest.fixture(params=["server", "embedded"])
async def here(site: Site, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[App]:
    """An app on a server, and one on an engine of its own."""
    url = site.url if request.param == "server" else f"sqlite://{tmp_path}/own"
    async with App(url) as app:
        yield app


async def test_a_worker_that_is_stopped_at_once_has_not_died(
    here: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that it gave back came again over its stream, which then ended."""
    monkeypatch.setattr(worker_run, "LEAST_S", PATIENCE_S)
    begun = asyncio.Event()

    @here.task
    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    job = await work.enqueue()
    for _ in range(4):
        async with working(here):
            await begun.wait()
        begun.clear()
        found = await here.backend.get(job.id)
        assert (found.status, found.stalls, found.attempts) == ("ready", None, 0)


async def test_a_connection_that_breaks_again_and_again_ends_no_job(site: Site) -> None:
    """The race: each time the server counts a stall, and the worker goes on with the job."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    async with Relay.to(site) as relay, App(relay.url) as app, App(site.url) as direct:

        @app.task(queue="q", result_ttl=60)
        async def long() -> str:
            begun.set()
            await go_on.wait()
            return "done"

        job = await long.enqueue()
        async with working(app):
            await begun.wait()
            for deliveries in range(2, 2 + 2 * STALL_LIMIT):
                relay.cut()
                await until_resumed(site, direct, job.id, deliveries)
            go_on.set()
            assert await direct.job(job.id).result(PATIENCE_S) == "done"
