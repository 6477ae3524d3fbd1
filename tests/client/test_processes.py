"""Functions in processes of their own."""

import asyncio
import logging
import os
import select
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause

import zq
from client import heavy, slow, surrounded
from client.conftest import working
from zq.client.app import App
from zq.client.http.address import Address
from zq.client.http.backend import HttpBackend
from zq.client.worker.processes import find

from .relay import Relay
from .workers import until_resumed


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
    wrapped: zq.Job[Any] = await heavy.wrapped.enqueue(1)
    await heavy.queue.enqueue("a", 21)
    await finish(app)

    (pid,) = {await job.result() for job in jobs}
    assert pid != os.getpid()
    assert await beside.result() == os.getpid()
    assert await who.result() == [who.id, 1, "who"]
    assert await heavy.queue.result("a") == 42
    assert await wrapped.result() == 2
    async with asyncio.timeout(PATIENCE_S):
        # Its parent has to notice that it has been killed.
        while await asyncio.to_thread(Path(f"/proc/{pid}").exists):
            await pause()


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


def kill(pid: int) -> None:
    """Kill a process, and wait until it has ended."""
    os.kill(pid, signal.SIGKILL)
    with select.epoll() as poll:
        poll.register(os.pidfd_open(pid))
        assert poll.poll(PATIENCE_S)


@pytest.mark.parametrize("task", [heavy.pid, heavy.other_pid], ids=["known", "not known"])
async def test_a_process_that_dies_without_a_job_fails_none(
    app: App, task: zq.Task[[], int]
) -> None:
    async with working(app, processes=1):
        pid = await (await heavy.pid.enqueue()).result(PATIENCE_S)
        kill(pid)
        job = await task.options(max_attempts=1).enqueue()
        assert await job.result(PATIENCE_S) not in (pid, os.getpid())


async def test_a_process_that_dies_before_it_is_told_of_a_job_fails_none(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    log, begins = logging.getLogger("zq.worker"), logging.Handler()
    caplog.set_level(logging.DEBUG, log.name)
    async with working(app, processes=1):
        pid = await (await heavy.pid.enqueue()).result(PATIENCE_S)

        def emit(record: logging.LogRecord) -> None:
            if record.msg == "started":  # the process is prepared, and has not got the job
                log.removeHandler(begins)
                kill(pid)

        begins.emit = emit  # type: ignore[method-assign]
        log.addHandler(begins)
        job = await heavy.pid.options(max_attempts=1).enqueue()
        assert await job.result(PATIENCE_S) not in (pid, os.getpid())
    assert begins not in log.handlers


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


# What the app's module says holds in the process, and the process ends with the worker


@pytest.fixture
async def shop(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    (tmp_path / "ended").mkdir()
    monkeypatch.setenv("ENDED", str(tmp_path / "ended"))
    surrounded.started.clear()
    surrounded.app.core.backend = HttpBackend(Address(site.url))
    async with surrounded.app as app:
        yield app


def has_ended(pid: int) -> bool:
    """Whether a process has ended. A zombie has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # The second, if it goes during the look.
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def written(path: Path) -> int:
    """The number in a file, or 0."""
    return int(path.read_text() or 0) if path.exists() else 0


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(100 * round(PATIENCE_S)):
            if condition():
                return
            await asyncio.sleep(0.01)


async def test_middleware_and_the_functions_of_an_app_run_in_the_process(
    shop: App, tmp_path: Path
) -> None:
    job = await surrounded.where.options(result_ttl=60).enqueue()
    await finish(shop)
    result = await job.result(PATIENCE_S)
    pid = int(result.removeprefix("Corner shop in "))
    assert pid != os.getpid()
    assert surrounded.started == [os.getpid()]
    ended = {int(each.name) for each in (tmp_path / "ended").iterdir()}
    assert ended == {pid, os.getpid()}


async def test_middleware_that_the_process_does_not_have_is_told(
    shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(job: zq.Running[Any], call_next: Callable[[], Awaitable[Any]]) -> Any:
        return await call_next()

    monkeypatch.setattr(shop.core, "middleware", (*shop.core.middleware, late))
    await surrounded.where.enqueue()
    error = (await finish(shop))["where"].error
    assert error is not None
    assert "has 1 of 2 middleware: put all of them where the module makes the app" in error.message


async def test_what_a_job_has_started_is_killed_with_it(shop: App, tmp_path: Path) -> None:
    await surrounded.starts_another.enqueue(str(tmp_path / "pid"))
    error = (await finish(shop))["starts_another"].error
    assert error is not None
    assert error.error_type == "Timeout"
    await until(lambda: has_ended(written(tmp_path / "pid")))


async def test_a_process_whose_stream_broke_is_heard(
    shop: App, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZQ_URL", site.url)
    begun = tmp_path / "begun"
    async with Relay.to(site) as relay, App(site.url) as near:
        shop.core.backend = HttpBackend(Address(relay.url))
        stored = await surrounded.fails_when_told.enqueue(str(begun))
        job = near.job(stored.id)
        async with working(shop, processes=1), asyncio.timeout(PATIENCE_S):
            await until(begun.exists)
            relay.cut()
            await until_resumed(site, near, stored.id, 2)
            begun.unlink()
            # Its report of progress was not refused, and neither is this.
            with pytest.raises(zq.JobFailed, match="lost"):
                await job.result(PATIENCE_S)

        errors = await near.backend.errors(stored.id)
    assert [(each.attempt, each.error_type) for each in errors] == [(1, "LookupError")]


async def test_processes_end_with_a_worker_that_is_killed(
    shop: App, site: Site, tmp_path: Path
) -> None:
    await surrounded.goes_on.enqueue(str(tmp_path / "pid"))
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zq.cli", "worker", "client.surrounded:app", "--processes", "1"),
        env={**os.environ, "ZQ_URL": site.url, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    await until(lambda: written(tmp_path / "pid"))
    worker.kill()
    await worker.wait()
    await until(lambda: has_ended(written(tmp_path / "pid")))
