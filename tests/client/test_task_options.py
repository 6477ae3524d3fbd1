"""The options of tasks: what they become in a job, and which are refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from conformance.site import Site

import zq
from zq.client.app import App
from zq.client.backend import Backend
from zq.client.options import CHECKS, Options
from zq.client.values import StoredJob, Submission

from .nowhere import NOWHERE, dead_app


async def only_job(backend: Backend) -> StoredJob:
    (job,) = (await backend.jobs()).jobs
    return job


async def test_what_is_not_said_is_sent_with_the_librarys_defaults(app: App) -> None:
    @app.task
    async def work() -> None: ...

    await work.enqueue()

    job = await only_job(app.backend)
    assert (job.queue, job.type, job.payload) == ("default", "work", {"args": [], "kwargs": {}})
    # Executions, the first included, are one more than retries.
    assert job.retry_limit == 2
    assert job.unique_key is None


async def test_options_are_checked_and_sent(app: App, site: Site) -> None:
    moment = datetime(2040, 1, 1, tzinfo=UTC)

    @app.task(queue="q", name="named", max_attempts=7, run_at=moment)
    async def work() -> None: ...

    await work.options(key="k", priority=3).enqueue()

    job = await only_job(app.backend)
    assert (job.type, job.priority, job.unique_key, job.retry_limit) == ("named", 3, "k", 6)
    assert (job.status, job.ready_at) == ("scheduled", round(moment.timestamp() * 1000))


async def test_the_retention_and_back_off_are_those_of_the_options() -> None:
    app = dead_app(defaults={"result_ttl": timedelta(minutes=1)})

    @app.task(backoff=zq.Backoff(exponent=2, base=0.5, jitter=0), timeout=9)
    async def work() -> None: ...

    sent: list[Submission] = []
    kept = work.options(meta={"a": 1}, user="u", timeout=1.5, group="g", dedupe="d").options()
    sent.append(kept._form.submission({}))
    body = msgspec.json.decode(msgspec.json.encode(sent[0]))

    # A worker knows what the task says of its time.
    assert work._form.submission({}).meta is None
    assert body == {
        "queue": "default",
        "type": "work",
        "payload": {},
        "retry_limit": 2,
        "backoff": {"exponent": 2.0, "base_ms": 500, "jitter_ms": 0},
        "retention": {"completed_ms": 60_000},
        "group": "g",
        "dedupe": {"id": "d"},
        "meta": {"a": 1, "user": "u", "timeout_ms": 1500},
    }


async def test_a_later_time_takes_the_place_of_an_earlier_one(live_app: App) -> None:
    moment = datetime(2040, 1, 1, tzinfo=UTC)

    @live_app.task(run_at=moment)
    async def work() -> None: ...

    await work.options(delay=3600).enqueue()

    job = await only_job(live_app.backend)
    assert job.status == "scheduled"
    assert 0 <= job.ready_at - job.created_at - 3_600_000 < 60_000 or (
        0 <= job.created_at + 3_600_000 - job.ready_at < 60_000
    )


def test_options_never_change_the_task_they_are_made_from() -> None:
    app = dead_app()

    @app.task(priority=1)
    async def work() -> None: ...

    other = work.options(priority=2, key="k")

    assert (work.effective["priority"], other.effective["priority"]) == (1, 2)
    assert "key" not in work.effective
    assert app.tasks == {"work": work}


def test_what_a_worker_reads_in_the_declaration_is_refused_for_a_call() -> None:
    app = dead_app()

    @app.task(on_exception={KeyError: None})
    async def work() -> None: ...

    said: Any = {"on_exception": {ValueError: None}}
    with pytest.raises(zq.InvalidOption, match=r"^on_exception: .*: give it to the declaration"):
        work.options(**said)
    assert work.options(priority=1).effective["on_exception"] == {KeyError: None}


BAD_OPTIONS: list[dict[str, Any]] = [
    {"fair_key": 7},
    {"fair_weight": 0},
    {"dely": 1},
    {"stall_limit": -1},
    {"max_attempts": 0},
    {"max_attempts": True},
    {"max_attempts": 2**32},
    {"priority": 65_536},
    {"priority": -1},
    {"priority": 1.5},
    {"delay": -1},
    {"delay": "5"},
    {"delay": float("nan")},
    {"run_at": datetime(2040, 1, 1)},
    {"run_at": 5},
    {"delay": 1, "run_at": datetime(2040, 1, 1, tzinfo=UTC)},
    {"result_ttl": 0},
    {"timeout": 0},
    {"backoff": 3},
    {"on_exception": {"ValueError": 1}},
    {"on_exception": {ValueError: -1}},
    {"on_exception": [ValueError]},
    {"key": 5},
    {"unique_while": "always"},
    {"group": 5},
    {"dedupe": 5},
    {"user": 5},
    {"meta": []},
    {"wait": -1},
    {"traceparent": 1},
    {"content_type": 1},
    {"batch": "b"},
    {"budgets": "b"},
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
def test_a_wrong_option_fails_where_it_is_written(options: dict[str, Any]) -> None:
    app = dead_app()

    with pytest.raises(zq.InvalidOption):
        app.task(**options)(lambda: None)
    with pytest.raises(zq.InvalidOption):
        App(NOWHERE, defaults=options)  # type: ignore[arg-type]
    assert app.tasks == {}


def test_every_option_has_a_check_and_every_check_is_tried() -> None:
    assert set(CHECKS) == Options.__required_keys__ | Options.__optional_keys__
    assert set(CHECKS) <= {name for options in BAD_OPTIONS for name in options}


@pytest.mark.parametrize("backoff", [{"exponent": -1}, {"base": -1}, {"jitter": 2**32}])
def test_a_back_off_that_cannot_be_is_refused(backoff: dict[str, Any]) -> None:
    with pytest.raises(zq.InvalidOption, match="Backoff"):
        zq.Backoff(**backoff)


async def test_a_job_that_a_job_enqueues_inherits_user_and_trace() -> None:
    app = dead_app()

    @app.task
    async def work() -> None: ...

    from zq.client.running import Running, current
    from zq.client.values import Delivery

    parent = Delivery("0" * 26, "t", "q", None, traceparent="00-1", meta={"user": "ann", "x": 1})
    token = current.set(Running(parent, None, app.backend))
    try:
        inherits = work.options(meta={"y": 2})._form.submission(None)
        own = work.options(user="bob")._form.submission(None)
    finally:
        current.reset(token)

    assert (inherits.meta, inherits.traceparent) == ({"y": 2, "user": "ann"}, "00-1")
    assert own.meta == {"user": "bob"}
    assert work._form.submission(None).meta is None
