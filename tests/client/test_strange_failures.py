"""Strange ways for a handler to end: each is a failure like any other."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App

from .conftest import working


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Odd(BaseException):
    pass


def _cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


def _raises(error: Callable[[], BaseException]) -> Callable[[], None]:
    def function() -> None:
        raise error()

    return function


class Mumbling(Exception):
    def __str__(self) -> str:
        raise SystemExit


class Shy(Exception):
    @property
    def to_dict(self) -> object:
        raise KeyboardInterrupt


class Interrupting:
    def model_dump(self, mode: str = "json") -> object:
        raise KeyboardInterrupt


STRANGE: dict[str, Callable[[], object]] = {
    "an exit for words": _raises(Mumbling),
    "no details": _raises(Shy),
    "a result that interrupts": Interrupting,
    "no words": _raises(Mute),
    "no exception": _raises(lambda: Odd("odd")),
    "no characters": _raises(lambda: FileNotFoundError("a\udcffb")),
    "long": _raises(lambda: ValueError("x" * 1_000_000)),
    "an iterator's end": _raises(StopIteration),
    "an exit": _raises(lambda: SystemExit(3)),
    "an interrupt": _raises(KeyboardInterrupt),
    "no time to wait": lambda: zq.current_job().retry(delay=float("nan")),
    "no number": _raises(lambda: zq.Retry(delay="soon")),  # type: ignore[arg-type]
    "beyond all time": _raises(lambda: zq.Retry(delay=1e300)),
}


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
@pytest.mark.parametrize("how", STRANGE)
async def test_a_strange_failure_is_a_failure_like_any_other(app: App, kind: str, how: str) -> None:
    if kind == "coroutine":

        @app.task(max_attempts=1)
        async def strange() -> Any:
            return STRANGE[how]()
    else:
        app.task(max_attempts=1, name="strange")(STRANGE[how])

    @app.task
    async def quick() -> str:
        return "done"

    job, other = await app.tasks["strange"].enqueue(), await quick.enqueue()
    async with working(app):
        with pytest.raises(zq.JobFailed):
            await job.result(PATIENCE_S)
        assert await other.result(PATIENCE_S) == "done"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("waits", [True, False])
async def test_an_exit_in_a_task_of_the_handler_fails_its_job_alone(
    app: App, error: type[BaseException], *, waits: bool
) -> None:
    """asyncio passes these on to the event loop, which would end the worker."""

    async def leave() -> None:
        raise error("gone")

    @app.task(max_attempts=1)
    async def work() -> None:
        side = asyncio.create_task(leave())
        await (side if waits else asyncio.Event().wait())

    @app.task
    async def quick() -> str:
        return "done"

    job, other = await work.enqueue(), await quick.enqueue()
    async with working(app):
        with pytest.raises(zq.JobFailed, match="a task of the handler raised gone"):
            await job.result(PATIENCE_S)
        assert await other.result(PATIENCE_S) == "done"


async def test_a_coroutine_function_inside_a_decorator_is_awaited(app: App) -> None:
    async def grown(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    @functools.wraps(grown)
    def decorated(n: int) -> Any:
        return grown(n)

    task: Any = app.task(name="grown")(decorated)
    job = await task.enqueue(1)
    async with working(app):
        assert await job.result(PATIENCE_S) == 2


async def test_a_handler_that_cancels_itself_has_failed(app: App) -> None:
    @app.task(max_attempts=1)
    async def work() -> None:
        _cancel_itself()
        await asyncio.sleep(0)

    await work.enqueue()
    (outcome,) = await zq.Worker(app).run_until_idle(PATIENCE_S)

    assert outcome.error is not None
    assert outcome.error.error_type == "CancelledError"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, Odd])
async def test_what_hooks_raise_ends_no_worker_and_keeps_no_job(
    app: App, error: type[BaseException]
) -> None:
    def fail(_: object) -> None:
        raise error("gone")

    @app.task(max_attempts=1)
    async def work() -> str:
        return "done"

    app.on("completed")(fail)
    app.on("error")(fail)
    app.on_shutdown(lambda: fail(None))
    async with working(app, after_execution=fail):
        for _ in range(2):
            job = await work.enqueue()
            assert await job.result(PATIENCE_S) == "done"
