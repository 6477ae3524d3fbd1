"""The app's own functions around jobs: at startup, middleware, after execution, and listeners."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App

from .conftest import working
from .relay import Relay
from .workers import finish, pass_time, until_leased, until_resumed


async def test_middleware_goes_around_every_execution_outermost_first(site: Site) -> None:
    order: list[str] = []

    def layer(name: str) -> zq.Middleware:
        async def around(job: zq.Running[Any], call_next: Callable[[], Awaitable[Any]]) -> Any:
            order.append(f"{name} before {job.type}")
            result = await call_next()
            order.append(f"{name} after")
            return (name, result)

        return around

    async with App(site.url, middleware=[layer("outer"), layer("inner")]) as app:

        @app.task
        def work() -> str:
            order.append("work")
            return "done"

        job = await work.enqueue()
        await finish(app)

        result: Any = await job.result()
        assert result == ["outer", ["inner", "done"]]
    assert order == ["outer before work", "inner before work", "work", "inner after", "outer after"]


async def test_the_hook_runs_once_before_the_final_outcome_is_stored(app: App, site: Site) -> None:
    seen: list[zq.Outcome] = []

    async def hook(outcome: zq.Outcome) -> None:
        seen.append(outcome)
        assert outcome.ttl is None
        if outcome.ok:
            assert outcome.encoded == b"1"
            outcome.result, outcome.ttl = {"value": 777}, 0.02
        else:
            assert outcome.error is not None
            outcome.error = zq.JobError(outcome.error.attempt, "changed", "Other")
            outcome.ttl = 0.2

    queue = app.queue("q", max_attempts=2)

    @queue.handler
    async def handle(n: int) -> int:
        return 1 // n

    await queue.enqueue("good", 1)
    await queue.enqueue("bad", 0)
    await finish(app, after_execution=hook)
    assert [outcome.status for outcome in seen] == ["completed"]
    assert seen[0].duration >= 0
    assert await queue.result("good") == {"value": 777}
    site.clock.advance(20)
    assert await queue.status("good") is None

    await pass_time(app, site, 60_000)
    await finish(app, after_execution=hook)
    assert [outcome.status for outcome in seen] == ["completed", "dead"]
    status = await queue.status("bad")
    assert status is not None
    assert status.error is not None
    assert (status.error.message, status.error.error_type) == ("changed", "Other")
    site.clock.advance(199)
    assert await queue.status("bad") is not None
    site.clock.advance(1)
    assert await queue.status("bad") is None


class Slow:
    """A hook that takes its time."""

    def __init__(self) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def __call__(self, outcome: zq.Outcome) -> None:
        self.begun.set()
        await self.go_on.wait()


async def test_a_hook_may_take_many_times_the_lease_of_its_job(app: App, site: Site) -> None:
    hook, runs = Slow(), []

    @app.task
    async def work() -> str:
        runs.append(zq.current_job().delivery.lease)
        return "done"

    job = await work.enqueue()
    async with working(app, lease=0.3, after_execution=hook) as worker:
        await asyncio.wait_for(hook.begun.wait(), PATIENCE_S)
        assert worker.counts == (1, 0)
        for _ in range(5):
            site.clock.advance(200)
            await until_leased(app, job.id, site.now + 300)
        hook.go_on.set()
        assert await job.result(PATIENCE_S) == "done"

    assert runs == [1]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_stream_that_breaks_during_a_hook_costs_no_outcome(site: Site, fails: bool) -> None:
    hook, runs = Slow(), []
    async with Relay.to(site) as relay, App(relay.url) as app, App(site.url) as near:

        @app.task(max_attempts=1)
        async def work() -> str:
            runs.append(zq.current_job().delivery.lease)
            if fails:
                raise ValueError("no")
            return "done"

        job = near.job((await work.enqueue()).id)
        async with working(app, after_execution=hook):
            await asyncio.wait_for(hook.begun.wait(), PATIENCE_S)
            relay.cut()
            await until_resumed(site, near, job.id, 2)
            hook.go_on.set()
            if fails:
                with pytest.raises(zq.JobFailed, match="no"):
                    await job.result(PATIENCE_S)
            else:
                assert await job.result(PATIENCE_S) == "done"

    assert runs == [1]


@pytest.mark.parametrize("ttl", [None, -1])
async def test_the_trouble_of_a_hook_is_not_the_jobs(app: App, site: Site, ttl: Any) -> None:
    errors = []
    app.on("error")(lambda event: errors.append(event.exception))

    def hook(outcome: zq.Outcome) -> None:
        outcome.ttl = ttl
        if ttl is None:
            raise RuntimeError("hook")

    @app.task
    async def work() -> int:
        return 1

    job = await work.enqueue()
    await finish(app, after_execution=hook)

    assert await job.result() == 1
    (error,) = errors
    assert isinstance(error, RuntimeError if ttl is None else zq.InvalidOption)


async def test_trouble_that_nobody_listens_for_is_logged(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(_: zq.Outcome) -> None:
        raise RuntimeError("hook")

    @app.task
    async def work() -> None: ...

    await work.enqueue()
    await finish(app, after_execution=hook)

    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["hook"]


async def test_listeners_may_be_coroutine_functions_and_may_fail(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    results = []

    @app.on("completed")
    async def first(event: zq.Event) -> None:
        await asyncio.sleep(0)
        results.append((event.result, event.key))
        raise RuntimeError("listener")

    app.on("completed")(lambda event: results.append((event.id, event.queue)))

    @app.task
    async def work() -> int:
        return 5

    job = await work.options(key="k").enqueue()
    await finish(app)

    assert results == [(5, "k"), (job.id, "default")]
    assert "a listener of 'completed' failed" in caplog.text


async def test_what_is_to_be_warm_is_so_before_the_first_job(app: App) -> None:
    order = []

    @app.on_startup
    async def connect() -> None:
        order.append("connect")

    app.on_startup(lambda: order.append("load"))

    @app.task
    async def work() -> None:
        order.append("work")

    await work.enqueue()
    await finish(app)

    assert order == ["connect", "load", "work"]
