"""Tasks: the jobs that they enqueue, calls that wait for a result, keys, and names."""

import asyncio
from typing import Any

import pytest

import zq
from zq.client.app import App

from .conftest import working
from .nowhere import dead_app
from .workers import finish


async def test_a_task_is_called_by_a_worker_with_its_arguments(app: App) -> None:
    calls = []

    @app.task(queue="mail")
    async def send(to: str, *more: str, cc: str = "", **rest: int) -> str:
        calls.append((to, more, cc, rest))
        return to

    job = await send.enqueue("a", "b", cc="c", d=4)
    await finish(app)

    assert calls == [("a", ("b",), "c", {"d": 4})]
    assert (await job.result(), job.queue, job.duplicate) == ("a", "mail", False)
    assert await send("x") == "x"


async def test_a_call_that_the_function_does_not_take_is_refused_at_once() -> None:
    app = dead_app()

    @app.task
    async def add(a: int, b: int = 0, *, c: int = 0) -> int:
        return a + b + c

    wrong: Any = add
    for args, kwargs in (((), {}), ((1, 2, 3), {}), ((1,), {"d": 1}), ((1,), {"a": 1})):
        with pytest.raises(TypeError):
            await wrong.enqueue(*args, **kwargs)


async def test_call_is_request_and_response(app: App) -> None:
    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(max_attempts=1)
    async def fail() -> None:
        raise ValueError("no")

    async with working(app, concurrency=2):
        assert await add.call(1, b=2) == 3
        assert await asyncio.to_thread(add.call_sync, 3, 4) == 7
        with pytest.raises(zq.RetriesExhausted, match="ValueError: no") as failed:
            await fail.call()
    assert failed.value.attempts == 1
    assert failed.value.error is not None
    assert failed.value.error.backtrace is not None
    assert "test_tasks.py" in failed.value.error.backtrace


async def test_call_waits_as_long_as_it_is_told(live_app: App) -> None:
    @live_app.task
    async def never() -> None:
        raise AssertionError

    with pytest.raises(zq.WaitTimeout, match=r"not finished after 0\.05 s") as late:
        await never.options(wait=0.05).call()

    assert 'nobody takes jobs of queue "default"' in str(late.value)
    assert await late.value.job.cancel() == "cancelled"
    with pytest.raises(zq.JobCancelled):
        await late.value.job.result()


async def test_a_result_that_is_not_kept_reaches_who_waits(app: App) -> None:
    @app.task(result_ttl=None)
    async def add(a: int, b: int) -> int:
        return a + b

    async with working(app):
        assert await add.call(1, 2) == 3
    assert await app.backend.count() == 0


def test_two_tasks_of_one_name_are_refused() -> None:
    app = dead_app()

    def work() -> None: ...

    app.task(work)
    with pytest.raises(zq.InvalidOption, match="name="):
        app.task(work)
    app.task(name="other")(work)
    assert set(app.tasks) == {"work", "other"}


async def test_a_duplicate_by_key_is_told_from_a_new_job(app: App) -> None:
    told = []
    app.on("enqueued")(lambda event: told.append(event.id))

    @app.task
    async def work() -> None: ...

    first = await work.options(key="k").enqueue()
    second = await work.options(key="k").enqueue()

    assert (first.duplicate, second.duplicate) == (False, True)
    assert second.id == first.id
    assert told == [first.id]
    await finish(app)
    # By default the key is free once the job is done.
    assert not (await work.options(key="k").enqueue()).duplicate
    assert (await work.options(key="k", unique_while="exists").enqueue()).duplicate
