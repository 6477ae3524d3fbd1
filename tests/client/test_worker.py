"""The worker: how jobs are executed, fail, are limited, and are returned."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import ClientSession
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.values import Delivery, JobQuery, Submission
from zq.client.worker.handlers import delay_of, failure_of
from zq.client.worker.holding import Seldom

from .conftest import working


async def finish(app: App, **options: Any) -> list[zq.Outcome]:
    return await zq.Worker(app, **options).run_until_idle(PATIENCE_S)


async def until_ready(app: App, count: int) -> None:
    """The server has to notice that a stream has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while await app.backend.count(JobQuery(statuses=("ready",))) != count:
            pass


async def pass_time(app: App, site: Site, ms: int) -> None:
    """Let time pass, and what falls due by it become ready."""
    site.clock.advance(ms)
    async with asyncio.timeout(PATIENCE_S):
        while await app.backend.count(JobQuery(statuses=("scheduled",))):
            pass


async def test_so_many_jobs_run_at_a_time_and_no_more(app: App) -> None:
    running = 0
    most = 0
    all_in, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            all_in.set()
        await go_on.wait()
        running -= 1

    await work.enqueue_many([work.args()] * 9)
    finishing = asyncio.create_task(finish(app, concurrency=3, prefetch=9))
    await all_in.wait()
    go_on.set()

    assert len(await finishing) == 9
    assert most == 3


async def test_ordinary_functions_run_in_threads_beside_the_loop(app: App) -> None:
    barrier = threading.Barrier(3, timeout=PATIENCE_S)
    names = set()

    @app.task
    def work(n: int) -> int:
        barrier.wait()
        names.add(threading.current_thread().name)
        assert zq.current_job().payload["args"] == [n]
        return n

    jobs = await work.enqueue_many(work.args(n) for n in range(3))
    await finish(app, concurrency=3)

    assert [await job.result() for job in jobs] == [0, 1, 2]
    assert len(names) == 3
    assert threading.main_thread().name not in names


async def test_what_a_handler_sees_of_its_job(app: App, site: Site) -> None:
    seen: dict[str, Any] = {}

    @app.task(queue="q", max_attempts=2)
    async def work(n: int) -> None:
        job = zq.current_job()
        names = ("id", "type", "queue", "key", "attempt", "max_attempts", "group", "user", "params")
        seen.update({name: getattr(job, name) for name in names})
        seen["created_ms"] = job.created_at.timestamp() * 1000
        assert not job.cancelled.is_set()
        seen["job"] = job
        raise ValueError("no")

    job = await work.options(key="k").enqueue(1)
    await finish(app)
    await pass_time(app, site, 10_000)
    await finish(app)

    finished = seen.pop("job")
    assert seen == {
        "id": job.id,
        "type": "work",
        "queue": "q",
        "key": "k",
        "attempt": 2,
        "max_attempts": 2,
        "group": None,
        "user": None,
        "params": {},
        "created_ms": site.now - 10_000,
    }
    assert finished.cancelled.is_set()
    with pytest.raises(LookupError):
        zq.current_job()


async def test_a_job_is_tried_as_often_as_it_may(
    app: App, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    told = []
    for name in ("failing", "failed", "completed"):
        app.on(name)(lambda event: told.append((event.name, event.attempt)))
    attempts = []

    @app.task(max_attempts=3)
    async def third_time() -> str:
        attempts.append(zq.current_job().attempt)
        if len(attempts) < 3:
            raise RuntimeError("again")
        return "done"

    @app.task(max_attempts=2)
    async def never() -> None:
        raise RuntimeError("no")

    good, bad = await third_time.enqueue(), await never.enqueue()
    for _ in range(3):
        await finish(app)
        await pass_time(app, site, 60_000)

    assert await good.result() == "done"
    assert attempts == [1, 2, 3]
    with pytest.raises(zq.RetriesExhausted, match="failed 2 times") as exhausted:
        await bad.result()
    assert exhausted.value.attempts == 2
    assert told == [
        ("failing", 1),
        ("failing", 1),
        ("failing", 2),
        ("failed", 2),
        ("completed", 3),
    ]
    logged = [(each.levelname, each.message) for each in caplog.records if bad.id in each.message]
    assert logged == [
        ("WARNING", f"never {bad.id} (default) failed at attempt 1: RuntimeError: no"),
        (
            "ERROR",
            f"never {bad.id} (default) failed at attempt 2 for the last time: RuntimeError: no",
        ),
    ]


@pytest.mark.parametrize("error", [zq.Discard("gone"), zq.Kill("never")])
async def test_a_handler_may_say_that_there_is_to_be_no_other_try(
    app: App, error: Exception
) -> None:
    @app.task
    async def work() -> None:
        raise error

    job = await work.enqueue()
    (outcome,) = await finish(app)

    assert (outcome.status, outcome.attempts) == ("dead", 1)
    with pytest.raises(zq.JobFailed, match=str(error)):
        await job.result()


async def test_a_handler_may_ask_for_another_try_after_its_own_time(live_app: App) -> None:
    runs = 0

    @live_app.task
    async def work() -> int:
        nonlocal runs
        runs += 1
        if runs == 1:
            zq.current_job().retry(delay=0.01)
        return runs

    async with working(live_app):
        # By the server's back-off it would take a second.
        assert await work.call() == 2


async def test_what_becomes_of_a_job_depends_on_what_its_handler_raises() -> None:
    delivery = Delivery("0" * 26, "t", "q", None, retry_limit=2, lease=4)
    rules: Any = {
        LookupError: None,
        KeyError: 5.0,
        OSError: zq.Backoff(exponent=0, base=2, jitter=0),
    }
    before = time.time()

    unlisted = failure_of(ValueError("v"), delivery, rules)
    listed = failure_of(IndexError("i"), delivery, rules)
    nearest = failure_of(KeyError("k"), delivery, rules)
    backed_off = failure_of(ConnectionError("c"), delivery, rules)

    assert (unlisted.kill, unlisted.retry_at, unlisted.lease) == (None, None, 4)
    assert (unlisted.message, unlisted.error_type) == ("v", "ValueError")
    assert (listed.kill, listed.retry_at) == (True, None)
    assert nearest.kill is None
    assert nearest.retry_at is not None
    assert 4.999 <= nearest.retry_at / 1000 - before < 5 + PATIENCE_S
    assert backed_off.retry_at is not None
    assert 2.999 <= backed_off.retry_at / 1000 - before < 3 + PATIENCE_S
    delivery.attempts = 2
    # The last try: a time to retry at would override the limit.
    assert failure_of(KeyError("k"), delivery, rules).retry_at is None


def test_the_back_off_follows_its_formula() -> None:
    flat = zq.Backoff(exponent=2, base=0.5, jitter=0)

    assert [delay_of(flat, n) for n in (1, 2, 3)] == [1.5, 4.5, 9.5]
    spread = [delay_of(zq.Backoff(exponent=0, jitter=1), 4) for _ in range(200)]
    assert 1 <= min(spread) < 2
    assert 4 < max(spread) < 5


async def test_an_exception_without_words_is_named(app: App) -> None:
    @app.task(max_attempts=1)
    async def work() -> None:
        raise KeyError

    @app.task(max_attempts=1)
    def leave() -> None:
        raise SystemExit(3)

    await work.enqueue()
    await leave.enqueue()
    outcomes = await finish(app)

    assert [outcome.error.message for outcome in outcomes if outcome.error] == ["KeyError", "3"]


class Declined(Exception):
    def __init__(self, details: object) -> None:
        super().__init__("declined\nby the bank")
        self._details = details

    def to_dict(self) -> object:
        return self._details


async def test_what_an_exception_says_of_itself_reaches_who_asks(app: App) -> None:
    told: list[Any] = []
    app.on("failed")(lambda event: told.append(event.error and event.error.details))
    details = {"code": "DECLINED", "reasons": ["limit", None], "text": "a\nb\u2028ž"}
    pay = app.queue("pay")

    @pay.handler
    async def handle(_: object) -> None:
        raise Declined(details)

    async with working(app):
        with pytest.raises(zq.JobFailed, match="Declined: declined") as failed:
            await pay.enqueue_and_wait("a", 1, max_attempts=1, timeout=PATIENCE_S)

    status = await pay.status("a")
    assert status is not None
    assert failed.value.error is not None
    assert status.error is not None
    assert (failed.value.error.details, status.error.details, told) == (details, details, [details])
    assert "Traceback" in (status.error.backtrace or "")


@pytest.mark.parametrize("details", [object(), "x" * 20_000, {b"": 1j}], ids=lambda _: "")
async def test_details_that_cannot_be_kept_fail_nothing(
    app: App, details: object, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(max_attempts=1)
    async def work() -> None:
        raise Declined(details)

    await work.enqueue()
    (outcome,) = await finish(app)

    assert outcome.error is not None
    assert (outcome.error.error_type, outcome.error.details) == ("Declined", None)
    assert "details" in caplog.text


async def test_a_worker_says_how_much_it_does_at_a_time(app: App, site: Site) -> None:
    app.task(lambda: None)
    async with working(app, concurrency=3, prefetch=7, worker_id="w"), ClientSession() as http:
        workers: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE_S):
            while not workers:
                async with http.get(f"{site.url}/workers") as answer:
                    workers = (await answer.json())["workers"]

    (told,) = workers
    assert (told["id"], told["concurrency"], told["prefetch"]) == ("w", 3, 7)


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
    assert "nor a handler for the queue 'q': a job goes back" in said[0]


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
                pass
        go_on.set()
        await job.result(PATIENCE_S)


def test_the_same_is_said_once_a_minute_with_how_often_it_was() -> None:
    now = 0.0
    seldom = Seldom(lambda: now)

    told = [seldom.count("a") for _ in range(3)]
    now = 59.0
    told += [seldom.count("a"), seldom.count("b")]
    now = 60.0
    told += [seldom.count("a"), seldom.count("a")]

    assert told == [1, 0, 0, 0, 1, 4, 0]


async def test_time_is_up_for_a_coroutine(app: App) -> None:
    ended = []

    @app.task(timeout=0.01, max_attempts=1)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(zq.current_job().id)

    job = await slow.enqueue()
    (outcome,) = await finish(app)

    assert ended == [job.id]
    assert outcome.error is not None
    assert outcome.error.error_type == "Timeout"


async def test_time_is_up_for_a_thread_which_is_told_but_not_stopped(app: App) -> None:
    noticed = threading.Event()

    @app.task(timeout=0.01, max_attempts=1)
    def slow() -> str:
        assert zq.current_job().cancelled.wait(PATIENCE_S)
        noticed.set()
        return "late"

    job = await slow.enqueue()
    (outcome,) = await finish(app)

    assert outcome.error is not None
    assert outcome.error.error_type == "Timeout"
    assert await asyncio.to_thread(noticed.wait, PATIENCE_S)
    with pytest.raises(zq.JobFailed, match="Timeout"):
        await job.result()


async def test_a_time_out_of_the_handlers_own_is_an_error_like_any_other(app: App) -> None:
    @app.task(timeout=PATIENCE_S, max_attempts=1)
    async def work() -> None:
        raise TimeoutError("theirs")

    await work.enqueue()
    (outcome,) = await finish(app)

    assert outcome.error is not None
    assert (outcome.error.error_type, outcome.error.message) == ("TimeoutError", "theirs")


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


@pytest.mark.parametrize("result", [object(), {1: object()}, 2**70])
async def test_a_result_that_cannot_be_stored_fails_its_job_alone(app: App, result: Any) -> None:
    @app.task
    async def work(good: bool) -> Any:
        return "fine" if good else result

    jobs = await work.enqueue_many(work.args(n != 3) for n in range(8))
    await finish(app, concurrency=8)

    for n, job in enumerate(jobs):
        if n != 3:
            assert await job.result() == "fine"
    with pytest.raises(zq.JobFailed, match="cannot store the result") as failed:
        await jobs[3].result()
    assert failed.value.error is not None
    assert failed.value.error.error_type == "ResultNotSerializable"


@pytest.mark.settings(max_result=100)
async def test_a_result_that_is_too_large_fails_its_job_alone(app: App) -> None:
    @app.task
    async def work(size: int) -> str:
        return "x" * size

    good, bad = await work.enqueue(50), await work.enqueue(500)
    await finish(app, concurrency=2)

    assert await good.result() == "x" * 50
    with pytest.raises(zq.JobFailed, match="cannot store the result"):
        await bad.result()


async def test_a_burst_ends_when_nothing_is_left(app: App) -> None:
    @app.task
    async def work(depth: int) -> None:
        if depth:
            await work.enqueue(depth - 1)

    await work.enqueue(3)
    report = await zq.Worker(app, burst=True).run()

    assert (report.finished, report.returned) == (4, [])


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


async def test_so_many_jobs_and_no_more(app: App) -> None:
    @app.task
    async def work() -> None: ...

    await work.enqueue_many([work.args()] * 10)
    report = await zq.Worker(app, concurrency=2, prefetch=10, max_jobs=3).run()

    assert report.finished == 3
    await until_ready(app, 7)


async def test_a_worker_takes_from_the_queues_that_it_is_told(app: App) -> None:
    done = []

    @app.task(queue="a")
    async def first() -> None:
        done.append("a")

    @app.task(queue="b")
    async def second() -> None:
        done.append("b")

    await first.enqueue()
    await second.enqueue()
    assert zq.Worker(app).queues == ["a", "b"]
    await finish(app, queues=["b"])

    assert done == ["b"]


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


async def test_messagepack_carries_the_same(site: Site) -> None:
    value = {"text": "ž", "big": 2**63, "list": [1.5, None, True], "raw": "AP8="}
    async with App(site.url, codec=zq.MSGPACK) as app:

        @app.task
        async def echo(given: dict[str, Any], raw: bytes) -> list[Any]:
            return [given, raw]

        jobs = await echo.enqueue_many([echo.args(value, b"\0\xff")] * 3)
        await finish(app, concurrency=2)

        assert [await job.result() for job in jobs] == [[value, "AP8="]] * 3


async def test_two_workers_share_the_jobs_of_a_queue(app: App) -> None:
    done: list[int] = []
    both = asyncio.Barrier(2)

    @app.task
    async def work(n: int) -> None:
        done.append(n)
        if n < 2:
            await both.wait()

    await work.enqueue_many(work.args(n) for n in range(20))
    async with working(app, prefetch=1), working(app, prefetch=1):
        async with asyncio.timeout(PATIENCE_S):
            while await app.backend.count(JobQuery(statuses=("completed",))) != 20:
                pass

    assert sorted(done) == list(range(20))


async def test_a_job_that_says_its_own_time_has_that(app: App) -> None:
    from zq.client.worker.handlers import handler_of_task, timeout_of

    @app.task(timeout=9)
    async def work() -> None: ...

    handler = handler_of_task(work)
    job = Delivery("0" * 26, "work", "default", {})

    assert timeout_of(handler, job) == 9
    job.meta = {"timeout_ms": 1500}
    assert timeout_of(handler, job) == 1.5
