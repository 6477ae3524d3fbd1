"""A coroutine function behind an ordinary decorator, which looks like an ordinary function."""

import asyncio
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import zq
from zq.client.app import App
from zq.client.files.registry import queues

from .workers import finish

FILE = """
import functools

def handle(payload: int) -> object:
    return add_one(payload)

async def add_one(payload):
    return payload + 1
"""


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """An ordinary decorator, such as one that logs calls."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


async def test_it_is_awaited_for_a_task_a_queue_and_a_file(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"wrapped_{tmp_path.name}"
    folder.mkdir()
    (folder / "filed.py").write_text(FILE)
    app.discover(folder)
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        monkeypatch.delitem(sys.modules, name)
    try:
        job = await one_of_each(app)
        outcomes = await finish(app)
    finally:
        queues.clear()

    assert {each.job.queue: each.result for each in outcomes} == {
        "default": 2,
        "filed": 6,
        "q": 11,
        "with_job": 101,
    }
    assert await job.result() == 2


async def one_of_each(app: App) -> zq.Job[Any]:
    @app.task
    @logged
    async def add(n: int) -> int:
        assert zq.current_job().type == "add"
        return n + 1

    queue, with_job = app.queue("q"), app.queue("with_job")

    @queue.handler
    @logged
    async def handle(n: int) -> int:
        return n + 1

    @with_job.handler
    @logged
    async def handle_job(n: int, job: zq.Running[int]) -> int:
        return n + job.attempt

    job: zq.Job[Any] = await add.enqueue(1)
    await app.queue("filed").enqueue("a", 5)
    await queue.enqueue("a", 10)
    await with_job.enqueue("a", 100)
    return job


async def test_its_time_is_limited(app: App) -> None:
    cancelled = asyncio.Event()

    @app.task(timeout=0.05, max_attempts=1)
    @logged
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    await work.enqueue()
    (outcome,) = await finish(app)

    assert cancelled.is_set()
    assert outcome.error is not None
    assert outcome.error.error_type == "Timeout"
