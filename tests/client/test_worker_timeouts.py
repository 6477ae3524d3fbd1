"""The time that a handler may take: what becomes of a coroutine and of a thread after it."""

import asyncio
import threading

import pytest
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.values import Delivery

from .workers import finish


async def test_time_is_up_for_a_coroutine(app: App) -> None:
    ended = []

    @app.task(timeout=0.01, max_attempts=1)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(zq.current_job().id)

    job = await slow.enqueue()
    (outcome,) = await finish(app)

    assert ended == [job.id]
    assert outcome.error is not None
    assert outcome.error.error_type == "Timeout"


async def test_time_is_up_for_a_thread_which_is_told_but_not_stopped(app: App) -> None:
    noticed = threading.Event()

    @app.task(timeout=0.01, max_attempts=1)
    def slow() -> str:
        assert zq.current_job().cancelled.wait(PATIENCE_S)
        noticed.set()
        return "late"

    job = await slow.enqueue()
    (outcome,) = await finish(app)

    assert outcome.error is not None
    assert outcome.error.error_type == "Timeout"
    assert await asyncio.to_thread(noticed.wait, PATIENCE_S)
    with pytest.raises(zq.JobFailed, match="Timeout"):
        await job.result()


async def test_a_time_out_of_the_handlers_own_is_an_error_like_any_other(app: App) -> None:
    @app.task(timeout=PATIENCE_S, max_attempts=1)
    async def work() -> None:
        raise TimeoutError("theirs")

    await work.enqueue()
    (outcome,) = await finish(app)

    assert outcome.error is not None
    assert (outcome.error.error_type, outcome.error.message) == ("TimeoutError", "theirs")


async def test_a_job_that_says_its_own_time_has_that(app: App) -> None:
    from zq.client.worker.handlers import handler_of_task, timeout_of

    @app.task(timeout=9)
    async def work() -> None: ...

    handler = handler_of_task(work)
    job = Delivery("0" * 26, "work", "default", {})

    assert timeout_of(handler, job) == 9
    job = Delivery("0" * 26, "work", "default", {}, meta={"timeout_ms": 1500})
    assert timeout_of(handler, job) == 1.5
