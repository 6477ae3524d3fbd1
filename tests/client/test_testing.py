"""The testing kit, as other programs' tests use it."""

import asyncio

import pytest

import zq
from bench.ports import free_port
from zq.client.embedded.engine import TravelClock
from zq.client.values import Submission, TakeRequest
from zq.testing import run_until_idle, server
from zq.testing.plugin import Working

pytest_plugins = ["pytester"]

MINUTE_S = 60


async def test_the_first_final_failure_is_raised_again() -> None:
    async with server() as running, running.app() as app:

        @app.task(max_attempts=1)
        async def divide(n: int) -> float:
            return 1 / n

        await divide.enqueue(0)
        with pytest.raises(ZeroDivisionError) as failure:
            await run_until_idle(app)
        assert "divide" in [entry.name for entry in failure.traceback]

        await divide.enqueue(0)
        (outcome,) = await run_until_idle(app, raise_failures=False)
        assert outcome.status == "dead"


async def test_time_passes_when_it_is_told_to() -> None:
    async with server() as running, running.app() as app:
        ran = []

        @app.task
        async def later(n: int) -> None:
            ran.append(n)

        await later.options(delay=MINUTE_S).enqueue(1)
        assert await run_until_idle(app) == []
        await running.advance(MINUTE_S)
        await run_until_idle(app)
        assert ran == [1]


async def test_a_restart_keeps_jobs_and_address() -> None:
    async with server(port=free_port()) as running, running.app() as app:
        backend, url = app.backend, running.url
        (job,) = await backend.enqueue([Submission("q", "work", 1)])
        stream = await backend.take(TakeRequest(("q",), 1))
        await stream.deliveries()
        await running.restart()
        assert running.url == url
        with pytest.raises(zq.Unavailable):
            await stream.deliveries()
        assert (await backend.get(job.id)).status == "ready"


async def test_a_worker_survives_a_restart_and_dropped_streams(zq_worker: Working) -> None:
    async with server(port=free_port()) as running, running.app() as app:

        @app.task
        async def double(n: int) -> int:
            return n * 2

        async with zq_worker(app):
            assert await double.call(1) == 2
            running.drop_streams()
            assert await double.call(2) == 4
            await running.restart()
            assert await double.call(3) == 6


LIGHT = ("-p", "no:schemathesis", "-p", "no:hypothesispytest")
"""Without plugins of our own environment that take a third of a start."""

USER_TESTS = """
import asyncio

import pytest

async def test_retry_then_ok(zq_app, zq_worker):
    runs = []
    queue = zq_app.queue("t", payload=int, result=int)

    @queue.handler
    async def handle(n, job):
        runs.append(job.attempt)
        if job.attempt < 3:
            raise RuntimeError("again")
        return n * 2

    async with zq_worker(zq_app):
        assert await queue.enqueue_and_wait("k", 21, timeout=60) == 42
    assert runs == [1, 2, 3]


async def test_schedules(zq_server, zq_app):
    from zq.testing import run_until_idle

    ran = []

    @zq_app.task
    async def tick():
        ran.append(1)

    await tick.options(delay=3600).enqueue()
    assert await run_until_idle(zq_app) == []
    await zq_server.advance(3600)
    await run_until_idle(zq_app)
    assert ran == [1]


def test_without_a_loop(zq_embedded):
    @zq_embedded.task
    def double(n: int) -> int:
        return n * 2

    job = double.enqueue_sync(21)
    assert job.id
"""


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_a_program_s_tests_find_the_fixtures(pytester: pytest.Pytester, mode: str) -> None:
    marked = USER_TESTS
    if mode == "strict":
        marked = marked.replace("async def test", "@pytest.mark.asyncio\nasync def test")
    pytester.makepyfile(marked)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    result = pytester.runpytest_subprocess(f"--asyncio-mode={mode}", "-W", "error", *LIGHT)
    result.assert_outcomes(passed=3)


async def test_timers_that_are_passed_fire_in_their_order_and_others_sooner() -> None:
    clock, fired = TravelClock(), list[str]()
    clock.call_later(7200, lambda: fired.append("two hours"))
    clock.call_later(3600, lambda: fired.append("one hour"))
    late = asyncio.Event()
    clock.call_later(10_800.01, late.set)
    clock.call_later(60, lambda: fired.append("never")).cancel()
    before = (clock.now_ms(), clock.monotonic())

    clock.advance(7_200_000)

    assert fired == ["one hour", "two hours"]
    assert clock.now_ms() >= before[0] + 7_200_000
    assert clock.monotonic() >= before[1] + 7200
    clock.advance(3_600_000)
    await late.wait()
