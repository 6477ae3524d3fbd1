"""Handlers without tasks: their waits, their ends, and the notice of these."""

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

import pytest

from zq.engine.inbox import PendingReply
from zq.http.transport.connection import Handling


class Run:
    """A handler under way, and what was heard of its end."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.ends: list[BaseException | None] = []
        self.handling = Handling(coroutine, self.ends.append, PendingReply)
        self.handling.begin()


def reply() -> PendingReply[object]:
    return PendingReply(loop=asyncio.get_running_loop())


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_waits_for_nothing_is_done_when_it_has_begun() -> None:
    async def handler() -> None:
        assert asyncio.current_task() is not None  # that of the test, which has begun it

    assert Run(handler()).ends == [None]


async def test_what_waits_for_ticks_has_no_task() -> None:
    replies = [reply(), reply()]
    seen: list[object] = []

    async def handler() -> None:
        for one in replies:
            value = await one
            seen.append((value, asyncio.current_task()))

    tasks = asyncio.all_tasks()
    run = Run(handler())
    for number, one in enumerate(replies):
        await turns()
        assert len(seen) == number
        assert asyncio.all_tasks() == tasks
        one.set_result(number)
    await turns()
    assert seen == [(0, None), (1, None)]
    assert run.ends == [None]


async def test_a_task_of_a_handler_is_one_that_every_python_accepts() -> None:
    waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def handler() -> None:
        await waits

    before = asyncio.all_tasks()
    run = Run(handler())
    (task,) = asyncio.all_tasks() - before
    # Since Python 3.12 a generator that is decorated as a coroutine is refused.
    assert inspect.iscoroutine(task.get_coro())
    waits.set_result(None)
    await turns()
    assert run.ends == [None]


async def test_what_waits_for_anything_else_goes_on_as_a_task() -> None:
    first, other = reply(), asyncio.get_running_loop().create_future()
    seen: list[object] = []

    async def handler() -> None:
        seen.append(await first)
        seen.append(await other)
        async with asyncio.timeout(60):
            await asyncio.sleep(0)
            seen.append(await second)

    second = reply()
    run = Run(handler())
    for future, value in ((first, 1), (other, 2), (second, 3)):
        await turns()
        future.set_result(value)
    await run.handling.wait()
    assert (seen, run.ends) == ([1, 2, 3], [None])


async def test_a_bare_turn_of_the_loop_makes_a_task() -> None:
    seen: list[object] = []

    async def handler() -> None:
        await asyncio.sleep(0)
        seen.append(asyncio.current_task())

    run = Run(handler())
    await run.handling.wait()
    assert seen[0] not in (None, asyncio.current_task())
    assert run.ends == [None]


@pytest.mark.parametrize("as_task", [False, True])
async def test_a_handler_is_cancelled_where_it_waits_and_may_clean_up(as_task: bool) -> None:
    tick, other = reply(), asyncio.get_running_loop().create_future()
    heard: list[str] = []

    async def handler() -> None:
        try:
            await (other if as_task else tick)
        except asyncio.CancelledError:
            heard.append("cancelled")
            await cleaned
            heard.append("clean")
            raise

    cleaned = reply()
    run = Run(handler())
    await turns()
    run.handling.cancel()
    await turns()
    assert (heard, run.ends) == (["cancelled"], [])
    cleaned.set_result(None)
    await turns()
    assert heard == ["cancelled", "clean"]
    assert [type(end) for end in run.ends] == [asyncio.CancelledError]


@pytest.mark.parametrize("as_task", [False, True])
async def test_a_handler_is_cancelled_in_any_turn(as_task: bool) -> None:
    """Its reply has come, or its task has not begun: it ends all the same, and cleans up."""
    tick, other = reply(), asyncio.get_running_loop().create_future()
    heard: list[str] = []

    async def handler() -> None:
        try:
            await (other if as_task else tick)
            await waiting
        except asyncio.CancelledError:
            heard.append("cancelled")
            await cleaned
            heard.append("clean")
            raise

    waiting, cleaned = reply(), reply()
    run = Run(handler())
    if not as_task:
        tick.set_result(None)
    run.handling.cancel()
    await turns()
    assert (heard, run.ends) == (["cancelled"], [])
    cleaned.set_result(None)
    await turns()
    assert heard == ["cancelled", "clean"]
    assert [type(end) for end in run.ends] == [asyncio.CancelledError]


@pytest.mark.parametrize("as_task", [False, True])
async def test_an_error_is_told_of_once(as_task: bool) -> None:
    tick, other = reply(), asyncio.get_running_loop().create_future()

    async def handler() -> None:
        await (other if as_task else tick)
        raise ValueError("wrong")

    run = Run(handler())
    await turns()
    (other if as_task else tick).set_result(None)
    await turns()
    assert [str(end) for end in run.ends] == ["wrong"]


async def test_what_a_client_that_has_gone_submitted_lives_on() -> None:
    tick = reply()

    async def handler() -> None:
        await tick

    run = Run(handler())
    run.handling.cancel()
    await turns()
    assert tick.cancelled()  # the command is the inbox's: only its answer has nobody to hear it
    assert [type(end) for end in run.ends] == [asyncio.CancelledError]


async def test_a_handler_that_ends_when_its_task_is_cancelled_has_ended_well() -> None:
    other = asyncio.get_running_loop().create_future()

    async def handler() -> None:
        try:
            await other
        except asyncio.CancelledError:
            return

    run = Run(handler())
    await turns()
    run.handling.cancel()
    await turns()
    assert run.ends == [None]
