"""The life of the process: its start, its death, calls that are cancelled, and what it leaves."""

import asyncio
import gc
import importlib.util
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from zq.engine.jq import child as jq_child
from zq.engine.jq.filter import MIB, JqFilter
from zq.model.errors import FilterAborted

from .processes import (
    ENDLESS,
    PATIENCE_S,
    children,
    eventually,
    is_busy,
    is_usable,
    only_child,
    stat,
)


def descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


async def test_a_process_that_dies_during_a_call_is_replaced(jq_filter: JqFilter) -> None:
    call = asyncio.create_task(jq_filter.matches(ENDLESS, ["null"]))
    await eventually(lambda: is_busy(os.getpid()))

    os.kill(only_child(), signal.SIGKILL)

    with pytest.raises(FilterAborted, match="status -9"):
        await call
    assert await is_usable(jq_filter)


async def test_a_process_that_died_between_calls_costs_no_call(jq_filter: JqFilter) -> None:
    threads = {*threading.enumerate()}
    await jq_filter.check(".")
    child = only_child()

    os.kill(child, signal.SIGKILL)

    # asyncio learns of the death in a thread, which tells the loop before it ends.
    await eventually(lambda: not stat(child) and threads.issuperset(threading.enumerate()))
    for _ in range(10):
        await asyncio.sleep(0)
    assert await is_usable(jq_filter)
    assert only_child() != child


async def test_a_stop_of_the_whole_service_does_not_end_a_call(jq_filter: JqFilter) -> None:
    await jq_filter.check(".")
    child = only_child()

    os.kill(child, signal.SIGTERM)

    assert await is_usable(jq_filter)
    assert only_child() == child


async def test_a_cancelled_call_does_not_answer_the_next(jq_filter: JqFilter) -> None:
    call = asyncio.create_task(jq_filter.matches(ENDLESS, ["null"]))
    await eventually(lambda: is_busy(os.getpid()))
    child = only_child()

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert await is_usable(jq_filter)
    await eventually(lambda: not stat(child))


async def test_a_call_cancelled_at_any_step_leaves_the_pipe_in_step(jq_filter: JqFilter) -> None:
    payloads = [json.dumps("x" * 1000)] * 1000
    for steps in range(20):
        call = asyncio.create_task(jq_filter.matches(".", payloads))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

        assert await is_usable(jq_filter)

    await eventually(lambda: len(children(os.getpid())) == 1)


async def test_a_call_cancelled_in_the_queue_leaves_the_running_one_alone(
    jq_filter: JqFilter,
) -> None:
    await jq_filter.check(".")
    child = only_child()
    running = asyncio.create_task(jq_filter.matches("last(range(1e5)) == 99999", ["1", "1"]))
    waiting = asyncio.create_task(jq_filter.matches(".", ["null"]))
    await asyncio.sleep(0)

    waiting.cancel()

    assert await running == [True, True]
    assert waiting.cancelled()
    assert only_child() == child


async def test_a_process_that_cannot_start_aborts_the_call_only(
    jq_filter: JqFilter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FilterAborted, match="did not start"):
        await jq_filter.check(".")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert await is_usable(jq_filter)


async def test_close_ends_calls_and_leaves_no_process_and_no_descriptor() -> None:
    gc.collect()  # What earlier tests left behind may close at any time.
    before = descriptors()
    jq_filter = JqFilter(timeout=600)
    calls = [asyncio.create_task(jq_filter.matches(ENDLESS, ["null"])) for _ in range(3)]
    await eventually(lambda: is_busy(os.getpid()))

    await jq_filter.close()

    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(end) for end in ends] == [FilterAborted] * 3
    assert children(os.getpid()) == []
    assert descriptors() <= before
    with pytest.raises(FilterAborted, match="stopping"):
        await jq_filter.check(".")
    await jq_filter.close()


@pytest.mark.parametrize("steps", range(10))
async def test_close_ends_a_call_whose_process_is_just_starting(steps: int) -> None:
    jq_filter = JqFilter(timeout=600)
    call = asyncio.create_task(jq_filter.matches(ENDLESS, ["null"]))
    for _ in range(steps):
        await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE_S):
        await jq_filter.close()

    with pytest.raises(FilterAborted):
        await call
    assert children(os.getpid()) == []


async def test_ended_processes_leave_no_zombie_and_no_descriptor() -> None:
    gc.collect()  # What earlier tests left behind may close at any time.
    before = descriptors()
    for steps in range(13):
        jq_filter = JqFilter(timeout=600, memory=64 * MIB)
        call = asyncio.create_task(jq_filter.matches('"x" * 1e9', ["null"]))
        # Cut short: while the process starts, or not at all.
        for _ in range(steps if steps < 10 else 0):
            await asyncio.sleep(0)
        if steps < 10:
            call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await jq_filter.close()

    assert children(os.getpid()) == []
    assert descriptors() <= before


def test_the_process_ends_with_its_parent_even_in_the_middle_of_a_program() -> None:
    script = (
        "import asyncio; from zq.engine.jq.filter import JqFilter;"
        f"asyncio.run(JqFilter(timeout=3600).matches({ENDLESS!r}, ['null']))"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        deadline = time.monotonic() + PATIENCE_S
        while not is_busy(parent.pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (child,) = children(parent.pid)

        parent.kill()

    deadline = time.monotonic() + PATIENCE_S
    while (fields := stat(child)) and fields[0] != "Z":
        assert time.monotonic() < deadline, "the process outlived its parent"
        time.sleep(0.01)


def run_alone(requests: bytes, cpu_seconds: int) -> subprocess.CompletedProcess[bytes]:
    """Run the child program by hand on `requests`, then the end of input."""
    found = importlib.util.find_spec("jq")
    assert found is not None
    assert found.origin is not None
    options = [str(Path(found.origin).parent), str(64 * MIB), str(cpu_seconds)]
    return subprocess.run(
        [sys.executable, "-I", "-S", jq_child.__file__, *options],
        input=requests,
        capture_output=True,
    )


def test_the_child_program_speaks_its_protocol_and_ends_with_its_input() -> None:
    requests = (
        struct.pack(">?II", False, 1, 2) + b"." + struct.pack(">I4sI4s", 4, b"true", 4, b"null")
    )

    run = run_alone(requests, 60)

    assert run.stdout == struct.pack(">?I", True, 0) + struct.pack(">?I2s", True, 2, b"\1\0")
    assert (run.returncode, run.stderr) == (0, b"")


def test_the_kernel_ends_a_program_that_outstays_its_processor_time() -> None:
    program = ENDLESS.encode()

    run = run_alone(
        struct.pack(f">?II{len(program)}sI1s", False, len(program), 1, program, 1, b"1"), 0
    )

    assert run.returncode == -signal.SIGXCPU
