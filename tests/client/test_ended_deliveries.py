"""Deliveries that end while their handler still cleans up, and the delivery after such a one."""

import asyncio
from typing import Any, Literal

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause

import zq
from zq.client.app import App

from .conftest import working


async def told(told: "asyncio.Queue[Any]") -> Any:
    return await asyncio.wait_for(told.get(), PATIENCE_S)


@pytest.mark.parametrize("how", ["stalled", "cancelled"])
async def test_a_delivery_that_ends_while_a_handler_cleans_up_after_its_time(
    app: App, site: Site, how: Literal["stalled", "cancelled"]
) -> None:
    ended: asyncio.Queue[str | None] = asyncio.Queue()
    app.on(how)(lambda event: ended.put_nowait(event.id))
    cleaning, go_on = asyncio.Event(), asyncio.Event()
    reasons: list[str | None] = []

    @app.task(timeout=0.01)
    async def slow() -> None:
        if zq.current_job().delivery.lease != 1:
            return
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(zq.current_job().reason)
            cleaning.set()
            await go_on.wait()

    @app.task(queue="other")
    async def quick() -> str:
        return "done"

    job = await slow.options(max_attempts=1).enqueue()
    async with working(app, lease=30, concurrency=3, cleanup_timeout=PATIENCE_S):
        await asyncio.wait_for(cleaning.wait(), PATIENCE_S)
        if how == "stalled":
            site.clock.advance(30_001)
        else:
            assert await job.cancel(force=True) == "cancelled"
        # The notice is read before a job that is stored after it.
        other = await quick.enqueue()
        assert await other.result(PATIENCE_S) == "done"
        go_on.set()
        assert await told(ended) == job.id

    assert reasons[0] == "timeout"
    assert await app.backend.errors(job.id) == []


async def test_a_job_that_comes_again_while_its_dropped_run_cleans_up_starts_anew(
    app: App, site: Site
) -> None:
    runs: list[int | None] = []
    begun, cleaning, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> str:
        lease = zq.current_job().delivery.lease
        runs.append(lease)
        begun.set()
        if lease == 1:
            try:
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await go_on.wait()
        return "done"

    job = await work.enqueue()
    async with working(app, lease=30, concurrency=2, cleanup_timeout=PATIENCE_S):
        async with asyncio.timeout(PATIENCE_S):
            await begun.wait()
            site.clock.advance(30_001)
            await cleaning.wait()
            while (await app.backend.get(job.id)).status != "in_flight":
                await pause()
            await app.backend.count()
        assert runs == [1]  # not beside the clean-up of the same job
        go_on.set()
        assert await job.result(PATIENCE_S) == "done"

    assert runs == [1, 2]
