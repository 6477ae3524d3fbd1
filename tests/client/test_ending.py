"""Handlers that do not end when they should: the worker leaves them behind and goes on."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.values import JobQuery
from zq.client.worker import worker_run

from .conftest import working

AT_ONCE: dict[str, Any] = {"cleanup_timeout": 0.01}


class Stubborn:
    """A coroutine that hears no cancellation until it is let go."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = 0
        self._let_go = asyncio.Event()

    async def __call__(self) -> None:
        self.begun.set()
        while not self._let_go.is_set():
            try:
                await self._let_go.wait()
            except asyncio.CancelledError:
                self.cancelled += 1

    def let_go(self) -> None:
        self._let_go.set()


@pytest.fixture
def stubborn() -> Stubborn:
    return Stubborn()


def said(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [each.message for each in caplog.records if words in each.message]


async def test_a_coroutine_that_swallows_its_cancellation_touches_no_other_job(
    app: App, stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(timeout=0.01, max_attempts=1)
    async def deaf() -> str:
        await stubborn()
        ended.set()
        return "late"

    @app.task
    async def quick() -> str:
        return "done"

    ended = asyncio.Event()
    job, other = await deaf.enqueue(), await quick.enqueue()
    async with working(app, **AT_ONCE):
        assert await other.result(PATIENCE_S) == "done"
        with pytest.raises(zq.JobFailed, match=r"Timeout: .* longer than 0\.01 s"):
            await job.result(PATIENCE_S)
        stubborn.let_go()
        await asyncio.wait_for(ended.wait(), PATIENCE_S)

    assert stubborn.cancelled == 2
    (message,) = said(caplog, "goes on although")
    assert "deaf" in message.split(" goes on although")[0]
    assert job.id in message
    assert "(timeout)" in message
    assert (await app.backend.get(job.id)).status == "dead"


async def test_a_coroutine_that_swallows_its_cancellation_does_not_keep_the_worker(
    app: App, stubborn: Stubborn
) -> None:
    @app.task
    async def deaf() -> None:
        await stubborn()

    job = await deaf.enqueue()
    worker = zq.Worker(app, **AT_ONCE)
    running = asyncio.create_task(worker.run())
    await stubborn.begun.wait()
    async with asyncio.timeout(PATIENCE_S):
        report = await worker.stop(0.1)
    await running
    stubborn.let_go()

    assert report is not None
    assert (report.returned, report.stuck) == ([job.id], 1)
    assert (await app.backend.get(job.id)).attempts == 0


async def test_a_clean_up_that_hangs_is_ended_by_a_second_cancellation(app: App) -> None:
    ended = asyncio.Event()

    @app.task(timeout=0.01, max_attempts=1)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    await slow.enqueue()
    worker = zq.Worker(app, **AT_ONCE)
    (outcome,) = await worker.run_until_idle(PATIENCE_S)

    assert ended.is_set()
    assert outcome.error is not None
    assert outcome.error.error_type == "Timeout"


async def test_a_worker_with_too_many_deaf_handlers_stops(
    app: App, stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(timeout=0.01, max_attempts=1)
    async def deaf() -> None:
        await stubborn()

    await deaf.enqueue_many([deaf.args()] * 12)
    async with asyncio.timeout(PATIENCE_S):
        report = await zq.Worker(app, **AT_ONCE).run()
    stubborn.let_go()

    assert report.stuck == 10
    assert len(said(caplog, "the worker stops")) == 1
    assert await app.backend.count(JobQuery(statuses=("dead",))) == 10


async def test_what_a_handler_succeeds_in_while_the_worker_leaves_counts(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_run, "LEAST_S", PATIENCE_S)
    begun = threading.Event()

    @app.task
    def slow() -> str | None:
        begun.set()
        zq.current_job().cancelled.wait(PATIENCE_S)
        return zq.current_job().reason

    job = await slow.enqueue()
    worker = zq.Worker(app)
    running = asyncio.create_task(worker.run())
    await asyncio.to_thread(begun.wait)
    report = await worker.stop(0)
    await running

    assert report is not None
    assert (report.finished, report.returned, report.stuck) == (1, [], 0)
    assert await job.result() == "shutdown"


# Threads


async def test_a_thread_that_does_not_end_leaves_its_place_to_another(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()

    @app.task(timeout=0.01, max_attempts=1)
    def deaf() -> None:
        go_on.wait(PATIENCE_S)

    @app.task
    def quick() -> str:
        return threading.current_thread().name

    job, others = await deaf.enqueue(), await quick.enqueue_many([quick.args()] * 2)
    async with working(app, **AT_ONCE):
        names = {await other.result(PATIENCE_S) for other in others}
        with pytest.raises(zq.JobFailed, match="Timeout"):
            await job.result(PATIENCE_S)
        go_on.set()

    assert len(names) == 1
    (message,) = said(caplog, "goes on although")
    assert message.startswith("the thread of client.test_ending")


async def test_the_time_of_a_handler_begins_when_it_has_a_thread(app: App) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @app.task
    def first() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    # Long enough for a handler that does nothing, however busy the machine is.
    @app.task(timeout=5.0, max_attempts=1)
    def second() -> str:
        return "done"

    await first.enqueue()
    async with working(app, concurrency=4, threads=1):
        await asyncio.to_thread(begun.wait)
        jobs = await second.enqueue_many([second.args()] * 3)
        await asyncio.sleep(5.2)
        go_on.set()
        assert [await job.result(PATIENCE_S) for job in jobs] == ["done"] * 3


# What a handler leaves behind


async def test_tasks_that_a_handler_has_started_end_with_it(app: App) -> None:
    ended: list[str] = []

    async def beside(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async def parent() -> None:
        kept.append(asyncio.create_task(beside("grandchild")))
        await beside("child")

    kept: list[asyncio.Task[None]] = []

    @app.task
    async def quick() -> None:
        kept.append(asyncio.create_task(parent()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    @app.task(timeout=0.01, max_attempts=1)
    async def slow() -> None:
        await quick()
        await asyncio.Event().wait()

    await quick.enqueue()
    await slow.enqueue()
    outcomes = await zq.Worker(app).run_until_idle(PATIENCE_S)

    assert {outcome.job.type: outcome.ok for outcome in outcomes} == {"quick": True, "slow": False}
    assert sorted(ended) == ["child", "child", "grandchild", "grandchild"]


async def test_a_task_that_is_deaf_is_named_and_the_job_is_done_all_the_same(
    app: App, stubborn: Stubborn, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def work() -> str:
        kept.append(asyncio.create_task(stubborn()))
        await stubborn.begun.wait()
        return "done"

    kept: list[asyncio.Task[None]] = []
    job = await work.enqueue()
    async with working(app, **AT_ONCE):
        assert await job.result(PATIENCE_S) == "done"
        assert "a task of client.test_ending" in said(caplog, "goes on although")[0]
        stubborn.let_go()


async def test_a_task_in_a_context_of_its_own_outlives_the_handler(app: App) -> None:
    kept: list[asyncio.Task[bool]] = []
    go_on = asyncio.Event()

    @app.task
    async def work() -> None:
        kept.append(asyncio.create_task(go_on.wait(), context=contextvars.Context()))

    await work.enqueue()
    await zq.Worker(app).run_until_idle(PATIENCE_S)

    go_on.set()
    assert await kept[0]
    assert asyncio.get_running_loop().get_task_factory() is None


async def test_what_a_handler_sets_in_its_context_is_not_seen_by_the_next(app: App) -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")

    @app.task
    async def work() -> str:
        before = name.get()
        name.set("somebody")
        return before

    await work.enqueue_many([work.args()] * 3)
    outcomes = await zq.Worker(app).run_until_idle(PATIENCE_S)

    assert [outcome.result for outcome in outcomes] == ["nobody"] * 3
