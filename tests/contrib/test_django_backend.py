"""Django's tasks on a real server: what the framework's contract says, clause by clause."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.test import Client, override_settings
from django.utils import timezone
from psycopg.conninfo import conninfo_to_dict

from zq import InvalidOption, InvalidPayload, outbox
from zq.client.worker.worker import Worker
from zq.contrib.django.execution import worker_app
from zq.contrib.django.outbox import address_of
from zq.model.patching import Patch
from zq.testing import TestServer

from .conftest import Work, apart, settings_of
from .framework import (
    APPS,
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from .sample import tasks
from .sample.tasks import add, add_later, done, fails, send, told


async def test_a_task_is_enqueued_executed_and_its_result_found(backend: Any, work: Work) -> None:
    result = await add.aenqueue(1, b=2)
    assert result.status == TaskResultStatus.READY
    assert (result.args, result.kwargs, result.backend) == ([1], {"b": 2}, "default")
    with pytest.raises(ValueError, match="not finished"):
        _ = result.return_value
    assert (await add.aget_result(result.id)).status == TaskResultStatus.READY

    await work()
    await result.arefresh()

    assert result.status == TaskResultStatus.SUCCESSFUL
    assert (result.is_finished, result.return_value, result.attempts) == (True, 3, 1)
    assert result.enqueued_at <= result.started_at <= result.finished_at <= timezone.now()
    assert result.last_attempted_at == result.started_at
    assert (await apart(add.get_result, result.id)).return_value == 3
    assert done == [3]


async def test_a_result_that_is_looked_for_equals_that_of_the_enqueue(backend: Any) -> None:
    result = await add.using(priority=7).aenqueue(1, b=2)
    assert await add.aget_result(result.id) == result


async def test_a_coroutine_function_is_a_task_and_tuples_come_back_as_lists(
    backend: Any, work: Work
) -> None:
    result = await add_later.aenqueue(1, 2)
    await work()
    assert (await add_later.aget_result(result.id)).return_value == [1, 2]


async def test_the_context_tells_the_attempt_and_the_worker(backend: Any, work: Work) -> None:
    result = await told.aenqueue(name="ann")
    await work()
    await result.arefresh()
    expected = {"attempt": 1, "id": result.id, "name": "ann", "by": ["w1"]}
    assert result.return_value == expected


async def test_higher_priorities_run_first(backend: Any, work: Work) -> None:
    for priority in (-100, 0, 100, 1):
        await send.using(priority=priority).aenqueue(str(priority))
    await work()
    assert done == ["100", "1", "0", "-100"]


async def test_the_result_of_a_task_knows_its_priority_and_queue(backend: Any) -> None:
    result = await send.aenqueue("ann")
    found = await send.aget_result(result.id)
    assert (found.task.priority, found.task.queue_name) == (-5, "mail")
    assert found.task == send


@pytest.mark.parametrize(
    ("patch", "priority", "queue"),
    [
        (Patch(priority=0), 100, "default"),
        (Patch(priority=65_535), -100, "default"),
        (Patch(queue="slow"), 0, "slow"),
    ],
    ids=["most urgent", "least urgent", "another queue"],
)
async def test_a_task_is_found_and_runs_where_no_caller_may_put_it(
    patch: Patch, priority: int, queue: str, backend: Any, zq_server: TestServer
) -> None:
    heard: list[str] = []

    def hear(task_result: Any, **_: Any) -> None:
        heard.append(task_result.task.queue_name)

    later = timezone.now()
    result = await told.using(run_after=later).aenqueue(name="ann")
    async with zq_server.app() as app:
        stored = await app.backend.by_key(result.id)
        await app.backend.operations.change(stored.id, patch)

    found = await told.aget_result(result.id)
    shown = (found.task.priority, found.task.queue_name, found.task.run_after)
    assert shown == (priority, queue, later)
    task_started.connect(hear)
    try:
        async with worker_app(backend, "w1") as app:
            await Worker(app, queues=["default", "slow"], worker_id="w1").run_until_idle()
    finally:
        task_started.disconnect(hear)
    await result.arefresh()
    assert result.return_value["id"] == result.id
    assert heard == [queue]


async def test_a_task_waits_for_run_after(backend: Any, work: Work, zq_server: TestServer) -> None:
    later = timezone.now() + timedelta(hours=1)
    result = await add.using(run_after=later).aenqueue(1, 2)
    assert (await add.aget_result(result.id)).task.run_after == later
    await work()
    assert done == []
    await zq_server.advance(3601)
    await work()
    assert done == [3]


async def test_a_failure_has_its_class_and_traceback(zq_server: TestServer, work: Work) -> None:
    heard: list[Any] = []

    def hear(task_result: Any, **_: Any) -> None:
        heard.append(task_result)

    task_finished.connect(hear)
    try:
        with settings_of(zq_server, OPTIONS={"job": {"max_attempts": 1}}):
            result = await fails.aenqueue(9)
            await work()
            await result.arefresh()
    finally:
        task_finished.disconnect(hear)
    assert result.status == TaskResultStatus.FAILED
    (error,) = result.errors
    assert heard[0].errors == [error]
    assert error.exception_class is tasks.Broken
    assert error.traceback.endswith("Broken: it is broken\n")
    assert "zq/" not in error.traceback.replace(tasks.__file__, "")
    assert (result.attempts, result.finished_at is None) == (1, False)
    with pytest.raises(ValueError, match="failed"):
        _ = result.return_value


@pytest.mark.parametrize("task", [add, add_later], ids=["function", "coroutine function"])
async def test_arguments_that_do_not_fit_fail_at_once_and_say_so(
    task: Any, backend: Any, work: Work
) -> None:
    heard: list[Any] = []

    def hear(task_result: Any, **_: Any) -> None:
        heard.append(task_result)

    task_finished.connect(hear)
    try:
        result = await task.aenqueue(1)
        await work()
    finally:
        task_finished.disconnect(hear)
    await result.arefresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    (error,) = result.errors
    assert error.exception_class is InvalidPayload
    assert error.traceback.endswith(
        f"do not fit {task.module_path}: missing a required argument: 'b'\n"
    )
    assert heard[0].errors == [error]


async def test_a_task_that_takes_too_long_says_so(zq_server: TestServer, work: Work) -> None:
    with settings_of(zq_server, OPTIONS={"job": {"max_attempts": 1, "timeout": 0.1}}):
        result = await tasks.takes_long.aenqueue()
        await work()
        await result.arefresh()
    (error,) = result.errors
    assert (
        error.traceback == f"{error.exception_class_path}: the execution took longer than 0.1 s\n"
    )


async def test_an_argument_may_be_the_fair_key_of_a_task(
    zq_server: TestServer, work: Work, database: None
) -> None:
    with settings_of(zq_server, OPTIONS={"job": {"fair_key": "name"}}):
        result = await told.aenqueue(name="ann")
        with pytest.raises(InvalidOption, match=r"add: fair_key: 'name' is no argument"):
            await add.aenqueue(1, 2)
        await work()
        await result.arefresh()
    assert result.return_value["name"] == "ann"
    async with zq_server.app() as app:
        assert (await app.backend.by_key(result.id)).fair_key == "ann"


async def test_a_failed_task_is_tried_again(
    backend: Any, work: Work, zq_server: TestServer
) -> None:
    result = await fails.aenqueue(1)
    await work()
    await result.arefresh()
    assert (result.status, len(result.errors), result.attempts) == (TaskResultStatus.READY, 1, 1)
    await zq_server.advance(60)
    await work()
    await result.arefresh()
    assert (result.return_value, len(result.errors), result.attempts) == (2, 1, 2)
    assert result.worker_ids == ["w1", ""]


async def test_a_result_that_cannot_be_stored_is_a_failure(backend: Any, work: Work) -> None:
    result = await tasks.returns_what_cannot_be_stored.aenqueue()
    await work()
    assert (await apart(backend.get_result, result.id)).errors[0].exception_class is TypeError


async def test_signals_tell_of_each_step(zq_server: TestServer, work: Work, backend: Any) -> None:
    heard: list[tuple[str, Any, str]] = []
    listeners = []
    for name, signal in (
        ("enqueued", task_enqueued),
        ("started", task_started),
        ("finished", task_finished),
    ):

        def hear(sender: Any, task_result: Any, name: str = name, **_: Any) -> None:
            heard.append((name, task_result.status, task_result.id))

        signal.connect(hear)
        listeners.append((signal, hear))
    try:
        result = await add.aenqueue(1, 2)
        await work()
        later = await add_later.aenqueue(1, 2)
        await work()
    finally:
        for signal, hear in listeners:
            signal.disconnect(hear)
    steps = [("enqueued", "READY"), ("started", "RUNNING"), ("finished", "SUCCESSFUL")]
    assert heard == [(*step, each.id) for each in (result, later) for step in steps]


async def test_what_the_framework_refuses_is_refused(backend: Any) -> None:
    with pytest.raises(InvalidTask, match="Queue"):
        send.using(queue_name="unknown")
    with pytest.raises(InvalidTask, match="priority"):
        send.using(priority=101)
    with pytest.raises(InvalidTask, match="aware"):
        send.using(run_after=timezone.now().replace(tzinfo=None))
    with pytest.raises(TypeError):
        await send.aenqueue(object())


async def test_a_task_of_a_schedule_has_its_priority_and_a_result(
    zq_server: TestServer, work: Work, database: None
) -> None:
    done.clear()
    path = tasks.daily.module_path
    with settings_of(zq_server, OPTIONS={"periodic": {path: "0 3 * * *"}}):
        await work()
        await zq_server.advance(86_400)
        async with zq_server.app() as app:
            (entry,) = (await app.backend.schedules.group("django-default")).entries
            assert entry.job["priority"] == 32_768 - 100 * 10
        await work()
        (result,) = done
        await result.arefresh()
        assert result.return_value == "done"
        assert (await tasks.daily.aget_result(result.id)).task == tasks.daily


async def test_the_id_of_a_job_with_a_key_is_none_of_a_result(
    backend: Any, zq_server: TestServer
) -> None:
    result = await add.aenqueue(1, 2)
    async with zq_server.app() as app:
        stored = await app.backend.by_key(result.id)
    with pytest.raises(TaskResultDoesNotExist):
        await add.aget_result(stored.id)


@pytest.mark.parametrize("id", ["unknown", "", "0" * 26], ids=["text", "empty", "id of a job"])
async def test_an_unknown_id_has_no_result(id: str, backend: Any) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        await apart(backend.get_result, id)


async def test_a_result_of_another_task_is_refused(backend: Any) -> None:
    result = await add.aenqueue(1, 2)
    with pytest.raises(TaskResultMismatch):
        await send.aget_result(result.id)


@pytest.mark.parametrize("name", ["asks_database", "asks_database_later"])
async def test_a_task_leaves_no_database_connection_open(
    name: str, backend: Any, work: Work
) -> None:
    await getattr(tasks, name).aenqueue()
    (outcome,) = await work()
    assert outcome.ok
    (connection,) = done
    with pytest.raises(Exception, match="closed database"):
        connection.execute("SELECT 1")


async def test_a_task_is_enqueued_when_its_transaction_commits(
    zq_server: TestServer, work: Work, database: None
) -> None:
    done.clear()

    def enqueue(n: int, fails: bool) -> Any:
        with transaction.atomic():
            result = add.enqueue(n, n)
            assert add.get_result(result.id).status == TaskResultStatus.READY
            if fails:
                transaction.set_rollback(True)
        return result

    with settings_of(zq_server, ENQUEUE_ON_COMMIT=True):
        gone = await apart(enqueue, 1, True)
        kept = await apart(enqueue, 2, False)
        with pytest.raises(TaskResultDoesNotExist):
            await apart(add.get_result, gone.id)
        assert (await apart(add.get_result, kept.id)).args == [2, 2]

        app = task_backends["default"].app
        relay = outbox.Relay(app, address_of(connections["default"]))
        assert await relay.run_until_empty() == 1
        await app.close()
        await work()
        await apart(kept.refresh)
    assert (kept.return_value, done) == (4, [4])


def test_the_migrations_are_complete(database: None) -> None:
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)


def test_the_address_of_a_database_of_django_is_one_for_the_relay() -> None:
    said: dict[str, Any] = {"NAME": "shop", "USER": "ann", "PASSWORD": "p@ss/word"}
    said |= {"HOST": "/run/postgresql", "PORT": "5433"}
    connection = SimpleNamespace(vendor="postgresql", settings_dict=said)
    expected = "postgresql://ann:p%40ss%2Fword@/shop?host=%2Frun%2Fpostgresql&port=5433"
    assert address_of(connection) == expected

    # Options of PostgreSQL's own library go along. The others are Django's.
    said["OPTIONS"] = {"sslmode": "require", "options": "-c search_path=a,b", "pool": True}
    assert conninfo_to_dict(address_of(connection)) == {
        "user": "ann",
        "password": "p@ss/word",
        "dbname": "shop",
        "host": "/run/postgresql",
        "port": "5433",
        "sslmode": "require",
        "options": "-c search_path=a,b",
    }
    named = dict.fromkeys(("NAME", "USER", "PASSWORD", "HOST", "PORT"), "")
    connection.settings_dict = {**named, "OPTIONS": {"service": "shop"}}
    assert conninfo_to_dict(address_of(connection)) == {"service": "shop"}


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ({"OPTIONS": {"adress": 1}}, "zq.E001"),
        ({"OPTIONS": {"url": "ftp://x"}}, "zq.E002"),
        ({"OPTIONS": {"token": 5}}, "zq.E002"),
        ({"OPTIONS": {"job": {"max_attempts": 0}}}, "zq.E003"),
        ({"OPTIONS": {"job": {"key": "x"}}}, "zq.E003"),
        ({"OPTIONS": {"database": "no"}, "ENQUEUE_ON_COMMIT": True}, "zq.E004"),
        ({"ENQUEUE_ON_COMIT": True}, "zq.W007"),
        ({}, None),
        ({"ENQUEUE_ON_COMMIT": True}, None),
    ],
    ids=["option", "url", "token", "job", "key", "database", "setting", "plain", "outbox"],
)
def test_system_checks_name_what_is_wrong(setting: dict[str, Any], code: str | None) -> None:
    backend = {"BACKEND": "zq.contrib.django.ZqBackend", **setting}
    with override_settings(TASKS={"default": backend}):
        found = [message.id for message in run_checks()]
    assert found == ([] if code is None else [code])


def test_the_worker_of_a_backend_that_there_is_not_names_those_that_there_are() -> None:
    with pytest.raises(CommandError, match=r"^TASKS has no backend 'nope': it has default$"):
        call_command("zq_worker", backend="nope")


async def test_the_outbox_needs_its_table(database: None) -> None:
    backend = {"BACKEND": "zq.contrib.django.ZqBackend", "ENQUEUE_ON_COMMIT": True}
    with override_settings(TASKS={"default": backend}, INSTALLED_APPS=APPS):
        assert [message.id for message in task_backends["default"].check()] == ["zq.E006"]


async def test_the_admin_lists_jobs_for_those_who_may_view_them(
    backend: Any, zq_server: TestServer
) -> None:
    result = await add.aenqueue(1, 2)
    job = await apart(lambda: backend._stored(result.id))

    def pages() -> tuple[str, str, int]:
        from django.contrib.auth.models import User

        User.objects.filter(username__in=["root", "clerk"]).delete()
        root = User.objects.create_superuser("root", password="x")
        clerk = User.objects.create_user("clerk", password="x", is_staff=True)
        one, other = Client(), Client()
        one.force_login(root)
        other.force_login(clerk)
        index = one.get("/admin/").content.decode()
        page = one.get("/admin/zq/shownjob/").content.decode()
        with override_settings():
            del settings.TASKS  # as with the backport, where a project need not have it
            assert one.get("/admin/zq/shownjob/").status_code == 200
        return index, page, other.get("/admin/zq/shownjob/").status_code

    index, page, refused = await apart(pages)
    assert '"/admin/zq/shownjob/"' in index
    assert job.id in page
    assert "contrib.sample.tasks.add" in page
    assert refused == 403
