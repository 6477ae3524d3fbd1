"""Handlers that fail, or give back what cannot be stored: tries, back-off, and errors."""

import time
from typing import Any

import msgspec
import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.values import Delivery
from zq.client.worker.handlers import delay_of, failure_of

from .conftest import working
from .workers import finish, pass_time


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
    delivery = msgspec.structs.replace(delivery, attempts=2)
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


class Unwritable:
    """A value whose own code raises while it is written."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    def model_dump(self, mode: str) -> object:
        raise self._error("no")


class Mute(Exception):
    """An error whose message cannot be read."""

    def __str__(self) -> str:
        raise ValueError("nothing to say")


UNWRITABLE = [Unwritable(error) for error in (ValueError, KeyError, SystemExit, Mute)]


@pytest.mark.parametrize("argument", UNWRITABLE, ids=lambda value: value._error.__name__)
async def test_an_argument_that_cannot_be_written_is_an_error_of_zq(
    app: App, argument: Unwritable
) -> None:
    @app.task
    async def work(value: Any) -> None: ...

    with pytest.raises(zq.ZqError, match="cannot be sent"):
        await work.enqueue(argument)


@pytest.mark.parametrize("result", [object(), {1: object()}, 2**70, *UNWRITABLE])
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
