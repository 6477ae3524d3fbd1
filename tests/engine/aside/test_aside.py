"""Functions that run in a process of their own: what comes back, and how the process ends."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from manual_clock import ManualClock

from zq.engine.aside import IDLE_S, AsideLane
from zq.engine.process_lane import MOST_OF_ONE, MOST_WAITING
from zq.model.errors import InvalidRequest, ServiceUnavailable, TooLarge, TooManyValues
from zq.wire import weight

MIB = 2**20


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def aside(clock: ManualClock) -> AsyncIterator[AsideLane]:
    running = AsideLane(clock, 512 * MIB, [__name__, "zq.wire.weight"])
    yield running
    await running.close()


def halves(data: bytes) -> Iterator[bytes]:
    yield data[: len(data) // 2]
    yield data[len(data) // 2 :]


def what_is_allowed(_data: bytes, path: str) -> Iterator[bytes]:
    """What a function can do to the host."""
    yield str(os.environ).encode()
    try:
        Path(path).read_bytes()
    except OSError as error:
        yield type(error).__name__.encode()


def process(_data: bytes) -> Iterator[bytes]:
    yield str(os.getpid()).encode()


def end(_data: bytes) -> Iterator[bytes]:
    os._exit(1)
    yield b""


def fill_memory(_data: bytes) -> Iterator[bytes]:
    yield bytes(2**40)


async def pid(aside: AsideLane) -> int:
    (text,) = await aside.run(process, b"")
    return int(text)


async def test_outputs_come_back_in_their_order(aside: AsideLane) -> None:
    data = os.urandom(3 * MIB)
    assert await aside.run(halves, data) == [data[: len(data) // 2], data[len(data) // 2 :]]


async def test_an_error_of_the_function_is_raised_and_the_process_lasts(aside: AsideLane) -> None:
    before = await pid(aside)
    with pytest.raises(TooManyValues, match=r"more than 2 values.*--max-values"):
        await aside.run(weight.check_json, b"[1,2,3]", 2)
    with pytest.raises(InvalidRequest, match="invalid JSON"):
        await aside.run(weight.check_json, b"[1,", 9)
    assert await pid(aside) == before


async def test_a_function_reads_neither_files_nor_the_environment(
    aside: AsideLane, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("x")
    found = await aside.run(what_is_allowed, b"", str(tmp_path / "secret"))
    assert found == [b"environ({})", b"OSError"]


@pytest.mark.parametrize("function", [end, fill_memory])
async def test_a_process_that_dies_costs_its_own_call_alone(
    aside: AsideLane, function: object
) -> None:
    before = await pid(aside)
    with pytest.raises(TooLarge, match="too much time or memory"):
        await aside.run(function, b"")  # type: ignore[arg-type]
    assert await pid(aside) != before


async def test_a_caller_who_goes_ends_the_call_and_others_go_on(aside: AsideLane) -> None:
    before = await pid(aside)
    call = asyncio.create_task(aside.run(halves, b"x" * MIB))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    assert await aside.run(halves, b"ab") == [b"a", b"b"]
    assert await pid(aside) != before


async def test_the_process_ends_when_it_has_had_nothing_to_do_for_a_while(
    aside: AsideLane, clock: ManualClock
) -> None:
    before = await pid(aside)
    clock.advance(int(IDLE_S * 1000) - 1)
    assert await pid(aside) == before
    clock.advance(int(IDLE_S * 1000))
    assert await pid(aside) != before


async def test_one_owner_has_a_bound_that_leaves_places_for_others(aside: AsideLane) -> None:
    calls = [asyncio.create_task(pid(aside)) for _ in range(MOST_OF_ONE + 1)]
    await asyncio.sleep(0)
    with pytest.raises(ServiceUnavailable, match="try again shortly"):
        await pid(aside)
    calls.append(asyncio.create_task(aside.run(halves, b"", owner="other")))  # type: ignore[arg-type]
    await asyncio.gather(*calls)


async def test_an_owner_of_one_call_does_not_wait_for_all_those_of_another(
    aside: AsideLane,
) -> None:
    done: list[str] = []

    async def call(owner: str) -> None:
        await aside.run(halves, b"", owner=owner)
        done.append(owner)

    owners = ["many"] * MOST_OF_ONE + ["one", "two"]
    await asyncio.gather(*map(call, owners))
    # One call was under way, and one of the same owner was before the others in the line.
    assert done[:4] == ["many", "many", "one", "two"]


async def test_in_a_full_line_the_owner_of_most_calls_gives_way(aside: AsideLane) -> None:
    flood = [asyncio.create_task(pid(aside))]
    await asyncio.sleep(0)
    for owner in range(MOST_WAITING // MOST_OF_ONE):
        flood += [
            asyncio.create_task(aside.run(halves, b"", owner=owner))  # type: ignore[arg-type]
            for _ in range(MOST_OF_ONE)
        ]
    await asyncio.sleep(0)
    assert await aside.run(halves, b"ab", owner="late") == [b"a", b"b"]
    found = await asyncio.gather(*flood, return_exceptions=True)
    refused = [each for each in found if isinstance(each, ServiceUnavailable)]
    assert len(refused) == 1


async def test_calls_that_were_cancelled_in_the_line_leave_their_places(aside: AsideLane) -> None:
    first = asyncio.create_task(pid(aside))
    await asyncio.sleep(0)
    for _ in range(3):
        calls = [asyncio.create_task(pid(aside)) for _ in range(MOST_OF_ONE)]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
    await first
    assert await aside.run(halves, b"ab") == [b"a", b"b"]


async def test_a_call_that_begins_outside_of_a_task_first_becomes_one(aside: AsideLane) -> None:
    """The transport runs a handler without a task until it waits: a body may be there as a whole.

    The body has come to a process that is ready, so nothing before the time-out waits.
    """
    await pid(aside)
    call = aside.run(process, b"")
    begun = asyncio.get_running_loop().create_future()

    def begin() -> None:
        try:
            begun.set_result(call.send(None))
        except BaseException as error:
            begun.set_exception(error)

    asyncio.get_running_loop().call_soon(begin)
    assert await begun is None  # a bare yield, after which the transport makes a task
    assert len(await asyncio.create_task(call)) == 1
