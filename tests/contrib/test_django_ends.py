"""`task_finished`: once for each task that has finished, with the status that the task has."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from conformance.streams import PATIENCE_S, pause
from django.db import connection

from zq import Backoff, InvalidOption, Unavailable
from zq.client.worker import worker_run
from zq.client.worker.worker import Worker
from zq.contrib.django.execution import worker_app
from zq.testing import TestServer

from .conftest import Work, apart, settings_of
from .framework import TaskResultStatus, task_backends, task_finished, task_started
from .sample import tasks

Heard = list[tuple[str, str]]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """The signals so far: the kind, and the status of the task."""
    heard: Heard = []

    def started(task_result: Any, **_: Any) -> None:
        heard.append(("started", str(task_result.status)))

    def finished(task_result: Any, **_: Any) -> None:
        heard.append(("finished", str(task_result.status)))

    task_started.connect(started)
    task_finished.connect(finished)
    yield heard
    task_started.disconnect(started)
    task_finished.disconnect(finished)


STARTED, FAILED = ("started", "RUNNING"), ("finished", "FAILED")
SUCCEEDED = ("finished", "SUCCESSFUL")


@pytest.mark.parametrize(
    ("job", "told"),
    [
        ({"max_attempts": 5, "on_exception": {tasks.Broken: None}}, [STARTED, FAILED]),
        ({"max_attempts": 5}, [STARTED]),
        ({"max_attempts": 1}, [STARTED, FAILED]),
    ],
    ids=["no other try for this error", "another try", "the last try"],
)
async def test_a_failure_is_the_end_when_no_other_try_follows(
    job: dict[str, Any], told: Heard, heard: Heard, zq_server: TestServer, work: Work
) -> None:
    tasks.done.clear()
    with settings_of(zq_server, OPTIONS={"job": {"backoff": Backoff(60, 0), **job}}):
        await tasks.fails.aenqueue(9)
        await work()
    assert heard == told


async def test_a_function_beyond_its_time_has_failed_once(
    heard: Heard, zq_server: TestServer, work: Work
) -> None:
    with settings_of(zq_server, OPTIONS={"job": {"max_attempts": 1, "timeout": 0.1}}):
        # It goes on until its time is over, and then returns as if nothing had been.
        await tasks.waits_until_told.aenqueue()
        await work()
    assert heard == [STARTED, FAILED]


async def test_a_task_that_is_given_back_has_not_finished(
    heard: Heard, backend: Any, zq_server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_run, "LEAST_S", PATIENCE_S)
    result = await tasks.takes_long.aenqueue()
    async with worker_app(backend, "w1") as app:
        worker = Worker(app, queues=["default"], shutdown_timeout=0.5)
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(PATIENCE_S):
            while not heard:
                await pause()
        await worker.stop()
        await running
    assert heard == [STARTED]
    assert (await apart(backend.get_result, result.id)).status == TaskResultStatus.READY


async def test_a_receiver_that_raises_changes_nothing(
    heard: Heard, backend: Any, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(**_: Any) -> None:
        raise RuntimeError("a receiver")

    for signal in (task_started, task_finished):
        signal.connect(breaks)
    try:
        tasks.done.clear()
        result = await tasks.add.aenqueue(1, 2)
        await work()
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(breaks)
    found = await apart(backend.get_result, result.id)
    assert (found.status, found.attempts, tasks.done) == (TaskResultStatus.SUCCESSFUL, 1, [3])
    assert heard == [STARTED, SUCCEEDED]
    assert caplog.text.count("a receiver") >= 2


async def test_the_end_of_a_delivery_that_was_lost_is_not_the_end_of_the_task(
    heard: Heard, backend: Any, zq_server: TestServer, work: Work
) -> None:
    """The race: the job is cancelled while its function runs, and the success comes too late."""
    result = await tasks.waits.aenqueue()
    tasks.may_end.clear()
    async with zq_server.app() as app, worker_app(backend, "w1") as working:
        worker = Worker(working, queues=["default"])
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(PATIENCE_S):
            while not heard:
                await pause()
        stored = await app.backend.by_key(result.id)
        await app.backend.cancel(stored.id, force=True)
        tasks.may_end.set()
        await worker.stop()
        await running
    assert heard == [STARTED]


def execute(statement: str, *values: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


async def test_a_result_in_the_outbox_is_found_while_no_server_answers(
    zq_server: TestServer, database: None
) -> None:
    address = {"OPTIONS": {"url": "http://127.0.0.1:1"}, "ENQUEUE_ON_COMMIT": True}
    with settings_of(zq_server, **address):
        await apart(execute, "INSERT INTO zq_outbox (document) VALUES ('no JSON')")
        result = await apart(tasks.add.enqueue, 1, 2)
        found = await apart(task_backends["default"].get_result, result.id)
        with pytest.raises(Unavailable):
            await apart(task_backends["default"].get_result, "unknown")
        await apart(execute, "DELETE FROM zq_outbox")
    assert (found.id, found.status) == (result.id, TaskResultStatus.READY)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["close", "with spaces"])
async def test_a_row_of_another_program_is_found_whatever_its_key_has(
    separators: tuple[str, str], zq_server: TestServer, database: None
) -> None:
    key = 'the "first" \\ key\n'
    job = {"queue": "default", "type": tasks.add.module_path, "payload": [1, 2], "unique_key": key}
    row = json.dumps(job, separators=separators)
    address = {"OPTIONS": {"url": "http://127.0.0.1:1"}, "ENQUEUE_ON_COMMIT": True}
    with settings_of(zq_server, **address):
        await apart(execute, "INSERT INTO zq_outbox (document) VALUES (%s)", row)
        found = await apart(task_backends["default"].get_result, key)
        await apart(execute, "DELETE FROM zq_outbox")
    assert (found.id, found.args) == (key, [1, 2])


def test_a_schedule_of_what_is_no_task_is_named(zq_server: TestServer) -> None:
    with (
        settings_of(zq_server, OPTIONS={"periodic": {"contrib.sample.tasks.done": "0 0 * * *"}}),
        pytest.raises(InvalidOption, match="which is no task"),
    ):
        worker_app(task_backends["default"], "w1")
