"""`App.periodic`: the entries that a worker registers at its start, and refused schedules."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S
from documents import code

import zq
from zq.client.app import App
from zq.client.errors import BackendError, InvalidOption
from zq.client.values import Submission
from zq.features.crons.client import Schedule

from .conftest import working


async def registered(app: App) -> None:
    await zq.Worker(app).run_until_idle(PATIENCE_S)


@pytest.fixture(params=["http", "embedded"])
async def url(site: Site, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    yield site.url if request.param == "http" else f"sqlite://{tmp_path}/embedded"


async def test_a_worker_registers_what_the_code_names_and_removes_the_rest(url: str) -> None:
    async with App(url, cron_group="shop") as first:

        @first.periodic("30 2 * * *", tz="Europe/Berlin", queue="reports", key="close")
        async def close_day() -> None: ...

        @first.periodic("0 0 1 1 *")
        @first.task(queue="sums", priority=3)
        def add_up(more: int = 1) -> None: ...

        assert add_up.queue == "sums"
        await registered(first)
        group = await first.backend.schedules.group("shop")
        shown = {entry.name: entry for entry in group.entries}
        assert shown.keys() == {"close_day", "add_up"}
        assert shown["close_day"].timezone == "Europe/Berlin"
        assert shown["close_day"].job["unique_key"] == "close"
        assert shown["add_up"].job["payload"] == {"args": [], "kwargs": {}}
        assert shown["add_up"].job["priority"] == 3
        await first.backend.schedules.pause("shop", "add_up", True)

    async with App(url, cron_group="shop") as second:

        @second.periodic("0 0 1 1 *", queue="sums", priority=3)
        def add_up(more: int = 1) -> None: ...

        await registered(second)
        (left,) = (await second.backend.schedules.group("shop")).entries
        assert (left.name, left.paused) == ("add_up", True)
        assert left.next_enqueue_at == shown["add_up"].next_enqueue_at

    async with App(url, cron_group="shop") as third:
        third.task(close_day.function)
        await registered(third)
        assert (await third.backend.schedules.group("shop")).entries == []

    async with App(url) as other:  # it has no schedules, and so no group
        other.task(close_day.function)
        await registered(other)
        assert await other.backend.schedules.groups() == ["shop"]


async def test_apps_without_a_group_leave_each_others_schedules_alone(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with App(url) as one:

        @one.periodic("0 0 1 1 *")
        def add_up() -> None: ...

        await one.periodic_tasks.register()
        assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
    async with App(url) as other:

        @other.periodic("30 2 * * *")
        def close_day() -> None: ...

        await other.periodic_tasks.register()
        group = await other.backend.schedules.group("app")
        assert {entry.name for entry in group.entries} == {"add_up", "close_day"}
        (warning,) = caplog.messages
        assert "others than those of this app: add_up." in warning
        assert "give each app a cron_group of its own" in warning
        await other.backend.schedules.remove("app")


async def test_what_comes_is_executed_by_the_worker(live_app: App) -> None:
    ran = asyncio.Event()

    @live_app.periodic("* * * * * *")
    async def tick() -> None:
        ran.set()

    async with working(live_app), asyncio.timeout(PATIENCE_S):
        await ran.wait()
    await live_app.backend.schedules.remove("app")


async def test_every_verb_of_schedules(url: str) -> None:
    async with App(url) as app:
        schedules = app.backend.schedules
        entry = Schedule("a/b", "@daily", Submission("q", "t", {"n": 1}), timezone="Asia/Tokyo")
        shown = await schedules.put("g/h", entry)
        assert (shown.name, shown.timezone, shown.paused) == ("a/b", "Asia/Tokyo", False)
        assert (await schedules.group("g/h")).entries == [shown]
        await schedules.pause("g/h", None, True)
        assert (await schedules.group("g/h")).paused
        await schedules.pause("g/h", "a/b", True)
        assert (await schedules.group("g/h")).entries[0].paused
        await schedules.remove("g/h", "a/b")
        assert (await schedules.group("g/h")).entries == []
        await schedules.remove("g/h")
        assert await schedules.groups() == []
        with pytest.raises(BackendError, match="cron group 'g/h' not found"):
            await schedules.group("g/h")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"expression": "61 * * * *"}, "bad minute"),
        ({"expression": "@daily", "tz": "Mars/Base"}, "invalid timezone"),
        ({"expression": "@daily", "delay": 5}, "delay and run_at"),
        ({"expression": 30}, r'^periodic: 30 is not a cron expression: .*"\*/5 \* \* \* \*"'),
        ({"expression": "@daily", "priority": -1}, "priority"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_where_it_is_written(said: Any, message: str) -> None:
    app = App("http://127.0.0.1:1")

    async def tick() -> None: ...

    with pytest.raises(InvalidOption, match=message):
        app.periodic(**said)(tick)


def test_a_decorator_without_its_expression_is_refused() -> None:
    def tick() -> None: ...

    bare: Any = App("http://127.0.0.1:1").periodic
    with pytest.raises(InvalidOption, match=r"^periodic: <function .* is not a cron expression"):
        bare(tick)


def test_a_periodic_task_needs_no_arguments_and_has_one_schedule() -> None:
    app = App("http://127.0.0.1:1")

    def add(a: int) -> None: ...

    with pytest.raises(InvalidOption, match="without arguments"):
        app.periodic("@daily")(add)

    @app.periodic("@daily")
    def tick() -> None: ...

    with pytest.raises(InvalidOption, match="has a schedule already"):
        app.periodic("@hourly")(tick)
    with pytest.raises(InvalidOption, match="options of its own"):
        app.periodic("@hourly", queue="q")(tick)


async def test_the_schedules_of_the_documents(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZQ_URL", site.url)
    names: dict[str, Any] = {}
    exec(code("periodic.py"), names)
    async with names["app"] as app:
        await registered(app)
        group = await app.backend.schedules.group("shop")
    assert [entry.name for entry in group.entries] == ["add_up", "close_day"]
