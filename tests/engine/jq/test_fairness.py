"""Who waits for whom: slow programs keep no quick one waiting, and the line is bounded."""

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import pytest

from zq.engine.jq.filter import MIB, JqFilter
from zq.engine.jq.lane import JqLane, Overtime
from zq.engine.process_lane import MOST_OF_ONE
from zq.engine.turns import ASKER
from zq.model.errors import FilterAborted, FiltersBusy

from .processes import ENDLESS, busy, children, eventually, is_busy, only_child

T = TypeVar("T")


def endless(count: int) -> list[str]:
    """Programs without an end, each another one."""
    return [f"def f{n}: f{n}; f{n}" for n in range(count)]


async def until_busy(calls: Sequence[asyncio.Task[Any]]) -> None:
    """Wait until one of them runs, and let it rest from then on. It is endless in any case."""
    await eventually(lambda: is_busy(os.getpid()))
    assert not any(call.done() for call in calls)
    for child in busy(os.getpid()):
        os.kill(child, signal.SIGSTOP)


async def cancel(calls: Iterable[asyncio.Task[Any]]) -> None:
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_a_filter_that_has_behaved_does_not_wait_for_endless_ones() -> None:
    jq_filter = JqFilter(timeout=32)
    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]
    calls = [asyncio.create_task(jq_filter.matches(p, ["null"])) for p in endless(12)]
    await until_busy(calls)

    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]

    assert not any(call.done() for call in calls)
    await cancel(calls)
    await jq_filter.close()


async def test_a_line_full_of_new_filters_shuts_out_none_that_has_behaved() -> None:
    jq_filter = JqFilter(timeout=32)
    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]
    calls = [asyncio.create_task(jq_filter.matches(p, ["null"])) for p in endless(MOST_OF_ONE + 1)]
    await asyncio.sleep(0)  # One has its turn by now, and all others are in the line.
    with pytest.raises(FiltersBusy):
        await jq_filter.matches("1", ["null"])
    await until_busy(calls)

    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]

    await cancel(calls)
    await jq_filter.close()


async def make_slow(jq_filter: JqFilter, program: str, payload: str) -> None:
    """Have a program end its process, by which it is known from then on."""
    call = asyncio.create_task(jq_filter.matches(program, [payload]))
    await eventually(lambda: is_busy(os.getpid()))
    os.kill(only_child(), signal.SIGKILL)
    with pytest.raises(FilterAborted):
        await call


async def test_filters_that_are_known_to_be_slow_keep_no_new_one_waiting(
    jq_filter: JqFilter,
) -> None:
    await make_slow(jq_filter, ENDLESS, "null")
    calls = [asyncio.create_task(jq_filter.matches(ENDLESS, ["null"])) for _ in range(12)]
    await until_busy(calls)

    assert await jq_filter.matches(".n == 1", ['{"n":1}']) == [True]

    assert not any(call.done() for call in calls)
    assert len(children(os.getpid())) == 2
    await cancel(calls)


async def test_a_filter_that_is_quick_again_goes_with_the_quick_ones(jq_filter: JqFilter) -> None:
    program = "if . == 1 then def f: f; f else . == 2 end"
    await make_slow(jq_filter, program, "1")
    assert await jq_filter.matches(program, ["2"]) == [True]
    assert len(children(os.getpid())) == 1

    assert await jq_filter.matches(program, ["2"]) == [True]

    assert len(children(os.getpid())) == 2


async def test_the_line_is_bounded_and_whoever_is_refused_may_come_again(
    jq_filter: JqFilter,
) -> None:
    calls = [asyncio.create_task(jq_filter.matches(p, ["null"])) for p in endless(MOST_OF_ONE + 1)]
    await until_busy(calls)
    for _ in range(2):
        with pytest.raises(FiltersBusy, match="try again later") as refusal:
            await jq_filter.matches(".", ["null"])
    assert refusal.value.retry_after_s >= 1

    calls.pop().cancel()
    await asyncio.sleep(0)
    waiting = asyncio.create_task(jq_filter.matches(".", ["1"]))
    await cancel(calls)

    assert await waiting == [True]


async def test_the_time_out_of_a_call_covers_its_wait_for_others() -> None:
    lane = JqLane(256 * MIB, 600)

    async def run(program: str, seconds: float) -> None:
        async with asyncio.timeout(seconds) as limit:
            await lane.run(program.encode(), ["1"], limit, seconds=600)

    running = asyncio.create_task(run(ENDLESS, 600))
    await eventually(lambda: is_busy(os.getpid()))
    with pytest.raises(TimeoutError):
        await run(".", 0.01)

    assert not running.done()
    await cancel([running])
    # Nothing is left of it in the line.
    await run(".", 600)
    await lane.close()


def asked_by(asker: str, call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A call for the request of somebody."""

    async def run() -> T:
        ASKER.set(asker)
        return await call

    return asyncio.create_task(run())


async def test_the_slow_programs_of_one_client_do_not_use_up_the_time_of_another() -> None:
    lane = JqLane(256 * MIB, 600)

    async def run(program: str, seconds: float, most: float) -> bytes:
        async with asyncio.timeout(most) as limit:
            answer = await lane.run(program.encode(), ["1"], limit, seconds=seconds)
        return answer.body

    await run(".", 600, 600)  # There is a process now, so the next call begins at once.
    running = asked_by("many", run(ENDLESS, 2.0, 600))
    await asyncio.sleep(0)
    os.kill(only_child(), signal.SIGSTOP)

    # It has less time than the call before it takes, and waits nevertheless.
    body = await asked_by("other", run(".", 600, 1.5))

    assert len(body) == 1
    with pytest.raises(Overtime):
        await running
    await lane.close()


async def test_those_who_wait_for_jq_take_turns() -> None:
    lane = JqLane(256 * MIB, 600)
    done: list[str] = []

    async def run(asker: str) -> None:
        async with asyncio.timeout(600) as limit:
            await lane.run(b".", ["1"], limit, seconds=600)
        done.append(asker)

    calls = [asked_by(asker, run(asker)) for asker in [*("many",) * 5, "other", "third"]]
    await asyncio.gather(*calls)

    # The first call runs at once, and one more of its owner is ahead of the others.
    assert done[:4] == ["many", "many", "other", "third"]
    await lane.close()
