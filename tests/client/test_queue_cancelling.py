"""Cancelling by message id: while a job is ready, runs, or waits for another try."""

import asyncio

import pytest

import zq
from zq.client.app import App

from .conftest import working
from .workers import finish


async def test_cancelling_frees_the_id_and_the_job_never_runs(app: App) -> None:
    queue = app.queue("q")
    seen = []
    cancelled = []
    app.on("cancelled")(lambda event: cancelled.append(event.key))

    @queue.handler
    async def handle(n: int) -> None:
        seen.append(n)

    await queue.enqueue("job-1", 1)
    await queue.enqueue("job-2", 2)
    assert await queue.cancel("job-1") == "cancelled"
    assert await queue.cancel("unknown") == "not_found"
    assert (await queue.enqueue("job-1", 3)).status == "queued"
    assert await queue.cancel("job-1") == "cancelled"
    await finish(app)

    assert seen == [2]
    assert cancelled == ["job-1", "job-1"]
    assert await queue.cancel("job-2") == "completed"


async def test_a_running_job_is_cancelled_only_by_force(app: App) -> None:
    queue = app.queue("q")
    begun, go_on = asyncio.Event(), asyncio.Event()

    @queue.handler
    async def handle(_: object) -> None:
        begun.set()
        await go_on.wait()

    async with working(app):
        waiting = asyncio.create_task(queue.enqueue_and_wait("a", None))
        await begun.wait()
        assert await queue.cancel("a") == "in_flight"
        assert await queue.cancel("a", force=True) == "cancelled"
        with pytest.raises(zq.JobCancelled):
            await waiting
        go_on.set()


async def test_a_job_that_waits_for_another_try_can_be_cancelled(app: App) -> None:
    queue = app.queue("q")

    @queue.handler
    async def handle(_: object) -> None:
        raise ValueError("no")

    await queue.enqueue("a", None)
    await finish(app)
    status = await queue.status("a")
    assert status is not None
    assert (status.state, status.attempts) == ("scheduled", 1)
    assert status.error is not None
    assert (status.error.message, status.error.error_type) == ("no", "ValueError")

    assert await queue.cancel("a") == "cancelled"
