"""Jobs that the worker has neither task nor handler for: they go back, and the log names them."""

import asyncio

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause

from zq.client.app import App
from zq.client.values import Submission
from zq.client.worker.holding import LogLimiter

from .conftest import working
from .workers import finish


async def test_a_job_of_an_unknown_task_goes_back_after_a_pause_without_an_attempt(
    app: App, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    told = []
    app.on("requeued")(lambda event: told.append(event.id))

    @app.task(queue="q")
    async def known() -> None: ...

    stored = await app.backend.enqueue([Submission("q", "other", None, retry_limit=0)] * 30)
    await known.enqueue()
    outcomes = await finish(app)

    assert [outcome.job.type for outcome in outcomes] == ["known"]
    for each in stored:
        job = await app.backend.get(each.id)
        assert (job.status, job.attempts, job.ready_at) == ("scheduled", 0, site.now + 10_000)
    assert told == [each.id for each in stored]
    said = [each.message for each in caplog.records if "'other'" in each.message]
    assert len(said) == 1
    assert "nor a handler for 'q': a job goes back" in said[0]


@pytest.mark.parametrize(
    "payload",
    [
        *({"to": 1, "cc": 2}, {"args": 1, "kwargs": {}}, {"args": [1]}),
        {"args": [1], "kwargs": {"cc": 1}},
    ],
)
async def test_an_argument_of_a_later_version_waits_for_a_worker_that_knows_it(
    payload: object, app: App, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(queue="q")
    async def send(to: int, at: int = 0) -> None:
        raise AssertionError

    (stored,) = await app.backend.enqueue([Submission("q", "send", payload, retry_limit=0)])
    assert await finish(app) == []

    job = await app.backend.get(stored.id)
    assert (job.status, job.attempts, job.ready_at) == ("scheduled", 0, site.now + 10_000)
    (said,) = [each.message for each in caplog.records if "no parameters in" in each.message]
    assert f"send for the arguments of {job.id}: a job goes back to the queue" in said


@pytest.mark.parametrize("payload", [[1, 2, 3], {"args": [1, 2, 3], "kwargs": {}}])
async def test_too_many_arguments_without_names_are_refused(payload: object, app: App) -> None:
    @app.task(queue="q")
    async def send(to: int, at: int = 0) -> None:
        raise AssertionError

    (stored,) = await app.backend.enqueue([Submission("q", "send", payload, retry_limit=5)])
    (outcome,) = await finish(app)
    assert outcome.error is not None
    assert "does not fit" in str(outcome.error)
    assert "too many positional arguments" in str(outcome.error)
    found = await app.backend.get(stored.id)
    assert (found.status, found.attempts) == ("dead", 1)


async def test_unknown_jobs_do_not_wait_behind_those_that_run(app: App) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task(queue="q")
    async def known() -> None:
        begun.set()
        await go_on.wait()

    job = await known.enqueue()
    async with working(app, prefetch=2):
        await begun.wait()
        (stranger,) = await app.backend.enqueue([Submission("q", "other", None)])
        async with asyncio.timeout(PATIENCE_S):
            while (await app.backend.get(stranger.id)).status != "scheduled":
                await pause()
        go_on.set()
        await job.result(PATIENCE_S)


def test_the_same_is_said_once_a_minute_with_how_often_it_was() -> None:
    now = 0.0
    limiter = LogLimiter(lambda: now)

    told = [limiter.count("a") for _ in range(3)]
    now = 59.0
    told += [limiter.count("a"), limiter.count("b")]
    now = 60.0
    told += [limiter.count("a"), limiter.count("a")]

    assert told == [1, 0, 0, 0, 1, 4, 0]
