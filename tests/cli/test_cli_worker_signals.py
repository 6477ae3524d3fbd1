"""What signals do to `zq worker`, whatever its handlers do."""

import asyncio
import faulthandler
import signal
from pathlib import Path

import pytest
from conformance.streams import PATIENCE_S, pause

import zq
from zq.client.app import App

from .workers import app_url, shop, worker


async def test_the_first_signal_lets_what_runs_finish(app: App, tmp_path: Path) -> None:
    _, slow, _ = shop(app)
    job = await slow.enqueue(0.5)

    async with worker(tmp_path, app_url(app)) as process:
        await process.line("begun")
        process.signal(signal.SIGTERM)
        assert (await process.ended())[0] == 0

    assert await job.result() == "done"


async def test_the_second_signal_ends_it_and_the_job_goes_back_at_once(
    app: App, tmp_path: Path
) -> None:
    _, slow, _ = shop(app)
    job = await slow.enqueue(3600)

    async with worker(tmp_path, app_url(app)) as process:
        await process.line("begun")
        process.signal(signal.SIGINT)
        await process.line("running jobs may finish")
        process.signal(signal.SIGINT)
        assert (await process.ended())[0] == 1

    await until_ready(app, job.id)


async def until_ready(app: App, id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await app.backend.get(id)).status != "ready":
            await pause()
    assert (await app.backend.get(id)).attempts == 0


async def test_a_thread_that_does_not_end_does_not_keep_the_worker(
    app: App, tmp_path: Path
) -> None:
    _, _, stubborn = shop(app)
    job = await stubborn.enqueue()

    async with worker(tmp_path, app_url(app), "--shutdown-timeout", "1ms") as process:
        await process.line("begun")
        process.signal(signal.SIGTERM)
        assert (await process.ended())[0] == 1

    await until_ready(app, job.id)


@pytest.mark.parametrize("task", ["stubborn", "deaf"])
async def test_a_handler_that_hears_nothing_does_not_keep_the_worker_beyond_its_time(
    app: App, tmp_path: Path, task: str
) -> None:
    shop(app)
    job = await app.tasks[task].enqueue()

    async with worker(tmp_path, app_url(app), "--shutdown-timeout", "1s") as process:
        await process.line("begun")
        process.signal(signal.SIGTERM)
        code, said = await process.ended()

    assert code == 1
    assert f"of shop.{task} goes on although" in said
    await until_ready(app, job.id)


@pytest.mark.parametrize("task", ["stubborn", "deaf", "blocking"])
async def test_the_second_signal_ends_a_worker_whatever_its_handler_does(
    app: App, tmp_path: Path, task: str
) -> None:
    shop(app)
    job = await app.tasks[task].enqueue()

    async with worker(tmp_path, app_url(app), "--shutdown-timeout", "1h") as process:
        await process.line("begun")
        threads = process.threads()
        process.signal(signal.SIGINT)
        if task != "blocking":
            await process.line("running jobs may finish")
        # A blocked event loop says nothing of the first, but a thread watches it from then on.
        async with asyncio.timeout(PATIENCE_S):
            while process.threads() <= threads:  # noqa: ASYNC110 - another process starts it
                await asyncio.sleep(0.01)
        process.signal(signal.SIGINT)
        code, said = await process.ended()

    assert code == 1
    assert f"in {task}" in said if task == "blocking" else "goes on although" in said
    await until_ready(app, job.id)


async def test_a_blocked_event_loop_does_not_keep_the_worker_for_ever(
    app: App, tmp_path: Path
) -> None:
    shop(app)
    job = await app.tasks["blocking"].enqueue()

    async with worker(tmp_path, app_url(app), "--shutdown-timeout", "1ms") as process:
        await process.line("begun")
        process.signal(signal.SIGTERM)
        code, said = await process.ended()

    assert code == 1
    assert 'shop.py", line' in said
    await until_ready(app, job.id)


async def test_a_signal_that_comes_while_the_first_is_handled_counts_as_the_second(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[float] = []

    def note(seconds: float, **_: object) -> None:
        if len(ends) == 0:
            ends.append(seconds)
            signal.raise_signal(signal.SIGTERM)
        ends.append(seconds)

    monkeypatch.setattr(faulthandler, "dump_traceback_later", note)

    @app.task
    async def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    await interrupt.enqueue()
    await zq.Worker(app, shutdown_timeout=3600).run(handle_signals=True)

    assert ends[0] > 3600
    assert ends[-1] < 60
