"""Functions in processes of their own."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from client import heavy, slow
from zq.client.app import App
from zq.client.http.address import Address
from zq.client.http.backend import HttpBackend
from zq.client.worker.processes import find


@pytest.fixture
async def app(site: Site) -> AsyncIterator[App]:
    heavy.app.core.backend = HttpBackend(Address(site.url))
    async with heavy.app as app:
        yield app


async def finish(app: App) -> dict[str, zq.Outcome]:
    """Outcomes by the types of their jobs."""
    outcomes = await zq.Worker(app, processes=1).run_until_idle(PATIENCE_S)
    return {outcome.job.type: outcome for outcome in outcomes}


async def test_a_function_runs_in_a_process_that_is_used_again(app: App) -> None:
    jobs = await heavy.pid.enqueue_many([heavy.pid.args()] * 3)
    beside, who = await heavy.beside.enqueue(), await heavy.who.enqueue()
    await heavy.queue.enqueue("a", 21)
    await finish(app)

    (pid,) = {await job.result() for job in jobs}
    assert pid != os.getpid()
    assert await beside.result() == os.getpid()
    assert await who.result() == [who.id, 1, "who"]
    assert await heavy.queue.result("a") == 42
    async with asyncio.timeout(PATIENCE_S):
        # Its parent has to notice that it has been killed.
        while await asyncio.to_thread(Path(f"/proc/{pid}").exists):
            pass


async def test_a_failure_comes_back_with_its_traceback_and_its_fate(app: App) -> None:
    await heavy.fail.enqueue("lost")
    await heavy.fail_for_good.enqueue()
    await heavy.buy.enqueue()
    outcomes = await finish(app)

    error = outcomes["fail"].error
    assert error is not None
    assert (error.error_type, error.message) == ("LookupError", "lost")
    assert "heavy.py" in (error.backtrace or "")
    assert outcomes["fail_for_good"].status == "dead"
    assert outcomes["buy"].error is not None
    assert outcomes["buy"].error.details == {"code": "OUT_OF_STOCK", "left": 0}


async def test_time_is_up_for_a_process_which_is_killed(app: App) -> None:
    await heavy.hang.enqueue()
    after = await heavy.pid.enqueue()
    outcomes = await finish(app)

    error = outcomes["hang"].error
    assert error is not None
    assert error.error_type == "Timeout"
    # The place of the killed one is taken by another.
    assert await after.result() != os.getpid()


async def test_the_time_of_a_handler_begins_when_a_process_has_imported_it(site: Site) -> None:
    slow.app.core.backend = HttpBackend(Address(site.url))
    async with slow.app as app:
        jobs = await slow.quick.enqueue_many([slow.quick.args()] * 4)
        worker = zq.Worker(app, concurrency=4, processes=1)
        outcomes = await worker.run_until_idle(PATIENCE_S)

        assert [outcome.error for outcome in outcomes] == [None] * 4
        assert [await job.result() for job in jobs] == ["done"] * 4


async def test_a_process_that_dies_fails_its_job_alone(app: App) -> None:
    await heavy.die.enqueue()
    after = await heavy.pid.enqueue()
    outcomes = await finish(app)

    error = outcomes["die"].error
    assert error is not None
    assert error.error_type == "ProcessDied"
    assert error.message.endswith("died of SIGKILL, which the kernel sends where memory runs out")
    assert error.backtrace is None  # it would show zq alone
    assert await after.result() != os.getpid()


async def test_a_process_that_exits_is_told_with_its_exit_code(app: App) -> None:
    await heavy.leave.enqueue()
    error = (await finish(app))["leave"].error

    assert error is not None
    assert error.message == "the process that ran the job has died with exit code 3"


async def test_a_result_that_is_no_data_fails_its_job(app: App) -> None:
    await heavy.no_data.enqueue()
    outcomes = await finish(app)

    error = outcomes["no_data"].error
    assert error is not None
    assert error.error_type == "InvalidPayload"


def test_a_function_that_cannot_be_found_is_told() -> None:
    for name in ("getpid", "walk.<locals>.inner", "<lambda>"):
        with pytest.raises(zq.InvalidOption, match=f"os.{name} is neither .* by name"):
            find("os", name)
