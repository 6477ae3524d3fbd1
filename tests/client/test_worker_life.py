"""The life of a worker: what it needs to start, when it ends by itself, and how it is stopped."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause

import zq
from bench.ports import free_port
from zq.client.app import App

from .workers import until_ready


async def test_a_burst_ends_when_nothing_is_left(app: App) -> None:
    @app.task
    async def work(depth: int) -> None:
        if depth:
            await work.enqueue(depth - 1)

    await work.enqueue(3)
    report = await zq.Worker(app, burst=True).run()

    assert (report.finished, report.returned) == (4, [])


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_so_many_jobs_and_no_more(app: App, concurrency: int) -> None:
    """The race: the server's notice that the worker drains comes while a job has not begun."""

    @app.task
    async def work() -> None:
        await asyncio.sleep(0.1)

    await work.enqueue_many([work.args()] * 10)
    report = await zq.Worker(app, concurrency=concurrency, prefetch=10, max_jobs=3).run()

    assert report.finished == 3
    await until_ready(app, 7)


def test_a_worker_without_work_is_a_mistake() -> None:
    app = App("http://127.0.0.1:1")
    with pytest.raises(zq.InvalidOption, match="no tasks"):
        zq.Worker(app)
    app.task(lambda: None)
    wrong: list[dict[str, Any]] = [
        *({"concurrency": 0}, {"max_jobs": -1}, {"max_jobs": 0}, {"threads": 0}),
        *({"processes": -1}, {"shutdown_timeout": -1}, {"cleanup_timeout": -1}),
    ]
    for options in wrong:
        with pytest.raises(zq.InvalidOption):
            zq.Worker(app, **options)


async def test_a_server_that_is_not_there_is_told_at_the_start() -> None:
    async with App("http://127.0.0.1:1") as app:
        app.task(lambda: None)

        with pytest.raises(zq.Unavailable, match="zq serve"):
            await zq.Worker(app, connect_timeout=0).run()


async def test_work_that_does_not_end_is_told_by_run_until_idle(app: App) -> None:
    @app.task
    async def work() -> None:
        await asyncio.Event().wait()

    await work.enqueue()
    worker = zq.Worker(app, shutdown_timeout=0)
    with pytest.raises(zq.WaitTimeout, match=r"left after 0\.2 s"):
        await worker.run_until_idle(timedelta(seconds=0.2))

    await until_ready(app, 1)


async def test_a_stop_lets_what_runs_finish_and_gives_back_the_rest(app: App) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    told = []
    for name in ("started", "stopped", "requeued"):
        app.on(name)(lambda event: told.append(event.name))

    @app.task
    async def work(n: int) -> int:
        begun.set()
        await go_on.wait()
        return n

    jobs = await work.enqueue_many(work.args(n) for n in range(4))
    worker = zq.Worker(app, prefetch=4)
    running = asyncio.create_task(worker.run())
    await begun.wait()
    stopping = asyncio.create_task(worker.stop())
    go_on.set()
    report = await stopping

    assert await running == report
    assert report is not None
    assert (report.finished, report.returned) == (1, [job.id for job in jobs[1:]])
    assert await jobs[0].result() == 0
    await until_ready(app, 3)
    assert told == ["started", "requeued", "requeued", "requeued", "stopped"]
    assert await worker.stop() is None


async def test_what_does_not_finish_in_time_goes_back_without_a_failure(app: App) -> None:
    begun = asyncio.Event()

    @app.task
    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    job = await work.enqueue()
    worker = zq.Worker(app)
    running = asyncio.create_task(worker.run())
    await begun.wait()
    report = await worker.stop(0)
    await running

    assert report is not None
    assert report.returned == [job.id]
    await until_ready(app, 1)
    assert (await app.backend.get(job.id)).attempts == 0


async def test_a_worker_runs_again_after_a_stop(app: App) -> None:
    @app.task
    async def double(n: int) -> int:
        return n * 2

    worker = zq.Worker(app)
    for n in (1, 21):
        running = asyncio.create_task(worker.run())
        assert await double.call(n) == n * 2
        with pytest.raises(RuntimeError, match="already running"):
            await worker.run()
        await worker.stop()
        await running


async def test_a_worker_can_be_stopped_while_it_warms_up(app: App) -> None:
    warming = asyncio.Event()

    @app.on_startup
    async def hang() -> None:
        warming.set()
        await asyncio.Event().wait()

    app.task(lambda: None)
    worker = zq.Worker(app)
    running = asyncio.create_task(worker.run())
    await warming.wait()
    async with asyncio.timeout(PATIENCE_S):
        await worker.stop()
        with pytest.raises(zq.Unavailable, match="stopped"):
            await running


async def test_a_worker_that_is_cancelled_while_it_warms_up_leaves_nothing(app: App) -> None:
    warming = asyncio.Event()
    calls: list[str] = []

    @app.on_startup
    async def hang() -> None:
        warming.set()
        try:
            await asyncio.Event().wait()
        finally:
            calls.append("ended")

    app.on_shutdown(lambda: calls.append("shutdown"))
    app.task(lambda: None)
    before = asyncio.all_tasks()
    running = asyncio.create_task(zq.Worker(app).run())
    await warming.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert asyncio.all_tasks() == before
    assert calls == ["ended"]


@pytest.mark.parametrize("how", ["absent", "stopped", "cancelled"])
async def test_what_has_begun_is_shut_down_although_no_server_came(how: str) -> None:
    calls: list[str] = []
    begun = asyncio.Event()
    async with App("http://127.0.0.1:1") as app:

        @app.on_startup
        def start() -> None:
            calls.append("startup")
            begun.set()

        app.on_shutdown(lambda: calls.append("shutdown"))
        app.task(lambda: None)
        worker = zq.Worker(app, connect_timeout=0.001 if how == "absent" else 3600)
        running = asyncio.create_task(worker.run())
        await begun.wait()
        if how == "stopped":
            await worker.stop()
        elif how == "cancelled":
            running.cancel()
        error = asyncio.CancelledError if how == "cancelled" else zq.Unavailable
        with pytest.raises(error):
            await running

    assert calls == ["startup", "shutdown"]


@pytest.mark.settings(port=lambda _: free_port())
async def test_a_worker_beside_other_code_waits_for_its_server(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    url = site.url
    await site.stop()
    async with App(url) as app:

        @app.periodic("0 0 * * *")
        async def double(n: int = 21) -> int:
            return n * 2

        async with zq.Worker(app) as worker:
            async with asyncio.timeout(PATIENCE_S):
                while "the worker waits for its server" not in caplog.text:
                    await pause()
            await site.start()
            assert await double.call(4) == 8
            assert not worker.ended.done()

        assert (await worker.ended).finished == 1
        assert "has ended" not in caplog.text


async def test_a_block_may_end_before_the_server_has_come() -> None:
    async with App("http://127.0.0.1:1") as app:
        app.task(lambda: None)
        async with zq.Worker(app):
            await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="async with"):
            _ = zq.Worker(app).ended


@pytest.mark.parametrize("entered", [True, False])
async def test_a_program_learns_why_its_worker_has_ended(
    app: App, caplog: pytest.LogCaptureFixture, *, entered: bool
) -> None:
    faults = []
    app.on("error")(lambda event: faults.append(event.exception))
    fault = OSError("no disk")

    @app.while_working
    async def fail() -> None:
        raise fault

    app.task(lambda: None)
    worker = zq.Worker(app)
    if entered:
        with pytest.raises(OSError, match="no disk"):
            async with worker:
                await asyncio.wait([worker.ended])
    else:
        with pytest.raises(OSError, match="no disk"):
            await worker.run()

    assert faults == [fault]
    assert f"the worker {worker.worker_id} has ended: no disk" in caplog.text


async def test_a_program_learns_that_its_worker_was_drained(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    ready = asyncio.Event()
    app.on("started")(lambda _: ready.set())
    app.task(lambda: None)
    async with zq.Worker(app) as worker:
        await ready.wait()
        await app.backend.drain(worker.worker_id)
        assert (await worker.ended).finished == 0

    assert "was drained, and takes no more jobs" in caplog.text
