"""A worker's log lines about jobs, and its tracebacks."""

import asyncio
import json
import logging
import logging.config
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.connect import connect
from zq.client.values import Submission
from zq.client.worker import standstill
from zq.client.worker.handlers import traceback_of
from zq.logs import JsonFormatter


@pytest.fixture
def app(site: Site) -> App:
    return App(site.url, defaults={"max_attempts": 1})


async def finish(app: App) -> list[zq.Outcome]:
    async with app:
        return await zq.Worker(app).run_until_idle(PATIENCE_S)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (each.levelname, each.message, getattr(each, "fields", {}))
        for each in caplog.records
        if each.name == "zq.worker"
    ]


async def test_a_job_is_told_of_when_it_begins_and_when_it_ends(
    app: App, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(queue="mail")
    async def welcome() -> None:
        await asyncio.sleep(0)

    job = await welcome.enqueue()
    with caplog.at_level(logging.DEBUG, "zq.worker"):
        await finish(app)
    (_, started, of_start), (level, completed, of_end) = told(caplog)
    assert (started, completed, level) == ("started", "completed", "INFO")
    who = {"task": "welcome", "job": job.id, "queue": "mail", "attempt": 1}
    assert of_start == who
    assert {name: of_end[name] for name in who} == who
    assert [of_end[name][-1] for name in ("waited", "ran")] == ["s", "s"]


async def test_successes_are_not_told_where_nobody_asks_for_them(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def quiet() -> None: ...

    await quiet.enqueue()
    with caplog.at_level(logging.WARNING, "zq.worker"):
        await finish(app)
    assert told(caplog) == []


async def test_a_failure_is_told_with_the_frames_of_its_author_alone(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def read() -> None:
        try:
            dict[str, int]()["a"]
        except KeyError as error:
            raise ValueError("no a") from error

    @app.task
    def read_in_a_thread() -> None:
        raise ValueError("no b")

    @app.task
    async def ask() -> None:
        await app.backend.get("nobody")

    for task in (read, read_in_a_thread, ask):
        await task.enqueue()
    with caplog.at_level(logging.WARNING, "zq.worker"):
        outcomes = await finish(app)
    for outcome, (level, _, fields) in zip(outcomes, told(caplog), strict=True):
        assert outcome.error is not None
        trace = outcome.error.backtrace
        assert trace is not None
        assert (level, fields["traceback"]) == ("ERROR", trace)
        assert "test_journal.py" in trace
        assert zq.__file__.removesuffix("__init__.py") not in trace
        assert "concurrent" not in trace and "asyncio" not in trace
    causes = outcomes[0].error
    assert causes is not None and causes.backtrace is not None
    assert causes.backtrace.count("test_journal.py") == 2


async def test_a_result_that_cannot_be_stored_is_told_as_the_failure_that_it_is(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    async def work() -> Any:
        return object()

    heard: list[str | None] = []
    app.on("failed")(lambda event: heard.append(event.error and event.error.error_type))
    job = await work.enqueue()
    (outcome,) = await finish(app)

    assert (outcome.status, heard) == ("dead", ["ResultNotSerializable"])
    level, message, _ = told(caplog)[-1]
    assert (level, message.partition(":")[0]) == (
        "ERROR",
        f"work {job.id} (default) failed for good after its handler had returned",
    )
    assert "values of type object cannot be sent" in message


async def test_a_handler_that_blocks_the_event_loop_is_told_with_its_line(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standstill, "BEAT_S", 0.02)
    monkeypatch.setattr(standstill, "STILL_S", 0.1)
    heard: list[str] = []
    blocked = threading.Event()

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            # A busy machine lets the loop stand still elsewhere, too.
            frames = vars(record).get("fields", {}).get("traceback", "")
            if "stood still" in record.getMessage() and "in work" in frames:
                heard.append(frames)
                blocked.set()

    @app.task
    async def work() -> bool:
        return blocked.wait(PATIENCE_S)

    listening = Listening()
    logging.getLogger("zq.worker").addHandler(listening)
    try:
        await work.enqueue()
        (outcome,) = await finish(app)
    finally:
        logging.getLogger("zq.worker").removeHandler(listening)

    assert outcome.result is True
    (frames,) = heard
    assert "in work" in frames.splitlines()[0]
    assert "blocked.wait(PATIENCE_S)" in frames.splitlines()[1]
    assert "zq/client" not in frames


def test_an_error_of_zq_alone_keeps_its_frames() -> None:
    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(connect, "ftp://example.org").exception()
    assert error is not None
    assert "connect.py" in traceback_of(error)


def test_a_chain_of_errors_that_bites_its_tail_ends() -> None:
    try:
        raise ValueError("a")
    except ValueError as error:
        error.__cause__ = error
        assert "ValueError: a" in traceback_of(error)


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_what_a_handler_logs_says_which_job_it_is_about(app: App, kind: str) -> None:
    lines: list[str] = []

    class Sink(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    plain, ours = Sink(), Sink()
    plain.setFormatter(logging.Formatter("%(task)s %(job_id)s %(message)s"))
    ours.setFormatter(JsonFormatter())
    log = logging.getLogger("shop")
    log.setLevel(logging.INFO)
    for sink in (plain, ours):
        sink.addFilter(zq.JobContext())
        log.addHandler(sink)

    if kind == "coroutine":

        @app.task(name="charge")
        async def charge() -> None:
            log.info("charged", extra={"fields": {"amount": 3}})
    else:

        @app.task(name="charge")
        def charge() -> None:
            log.info("charged", extra={"fields": {"amount": 3}})

    try:
        log.info("outside")
        job = await charge.enqueue()
        await finish(app)
    finally:
        for sink in (plain, ours):
            log.removeHandler(sink)
    assert lines[0] == "  outside"
    assert lines[2] == f"charge {job.id} charged"
    assert json.loads(lines[1])["fields"] == {"message": "outside"}
    assert json.loads(lines[3])["fields"] == {
        "message": "charged",
        "amount": 3,
        "task": "charge",
        "job_id": job.id,
    }


async def test_a_program_that_configures_logging_with_its_defaults_hears_of_zq(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(queue="q")
    async def known() -> None: ...

    await app.backend.enqueue([Submission("q", "unknown", {"args": [], "kwargs": {}})])
    loggers = [*map(logging.getLogger, logging.root.manager.loggerDict)]
    before = {each: each.disabled for each in loggers}
    kept = logging.root.handlers[:]
    try:
        logging.config.dictConfig({"version": 1})
        logging.root.handlers[:] = kept
        assert logging.getLogger("zq.worker").disabled
        await finish(app)
        assert "this worker has neither a task 'unknown'" in caplog.text
    finally:
        for logger, was_disabled in before.items():
            logger.disabled = was_disabled
