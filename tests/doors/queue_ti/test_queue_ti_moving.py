"""The program that copies a queue-ti's data, between two servers that speak its API."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conformance.client import JSON, Client
from conformance.site import Site

from zq.moving import queue_ti
from zq.moving.servers import MovingServer

from .messages import Messages


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Messages]:
    site = Site(tmp_path / "other", {})
    await site.start()
    async with Client(site, JSON) as client:
        yield Messages(client)
    await site.stop()


@pytest.fixture
def settings() -> dict[str, Any]:
    """By the clock of the program, messages of the source's clock would be old."""
    return {"queue_ti_message_ttl": 0}


@pytest.fixture
def wire() -> object:
    """The program speaks HTTP/1.1 alone."""
    return JSON


async def move(source: Messages, target: Messages, *flags: str) -> int:
    arguments = [source.site.url, target.site.url, *flags]
    return await asyncio.to_thread(queue_ti.main, arguments)


async def test_what_waits_is_copied_in_its_order(
    api: Messages, other: Messages, capsys: pytest.CaptureFixture[str]
) -> None:
    await api.configure("a%20b", max_retries=7, message_ttl_seconds=0)
    body = {"schema_json": '"string"'}
    assert (await api.native.call("PUT", "/api/topic-schemas/a%20b", body)).status == 200
    schedule = {"schedule": "@daily"}
    route = "/api/admin/delete-reaper/schedule"
    assert (await api.native.call("PUT", route, schedule)).status == 200
    for number in range(queue_ti.PAGE + 5):
        await api.enqueue("a b", str(number))
    await api.enqueue("k", "keyed", key="", metadata={"a": "b"})
    await api.enqueue("held")
    await api.dequeue("held")

    assert await move(api, other) == 0
    assert capsys.readouterr().out.split("\n")[:-1] == [
        "     206 messages copied",
        "       1 overrides copied",
        "       1 processing messages left",
        "       1 schedules copied",
        "       1 schemas copied",
    ]
    taken = await other.dequeue("a b", 1_000)
    assert [m["payload"] for m in taken] == [str(n) for n in range(queue_ti.PAGE + 5)]
    assert {m["max_retries"] for m in taken} == {7}
    keyed = await other.one("k")
    assert (keyed["key"], keyed["payload"], keyed["metadata"]) == ("", "keyed", {"a": "b"})
    assert (await other.get("/topic-schemas/a%20b")).doc["schema_json"] == '"string"'
    assert (await other.get("/admin/delete-reaper/schedule")).doc["schedule"] == "@daily"
    assert len(await api.list("k")) == 1, "the source keeps what it has"


async def test_dead_letters_are_copied_on_request(
    api: Messages, other: Messages, capsys: pytest.CaptureFixture[str]
) -> None:
    await api.enqueue("t", "x")
    await api.fail("t", 3)
    assert await move(api, other) == 0
    assert "1 dead letters left" in capsys.readouterr().out
    assert await other.list("t") == []
    assert await move(api, other, "--dead") == 0
    assert "1 dead letters copied" in capsys.readouterr().out
    assert (await other.one("t"))["payload"] == "x"


async def test_what_was_limited_later_is_copied_with_what_was_there_before(
    api: Messages, other: Messages, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        await api.enqueue("t", "no JSON")
    await api.configure("t", max_depth=2)
    body = {"schema_json": '{"type":"record","name":"R","fields":[]}'}
    assert (await api.native.call("PUT", "/api/topic-schemas/t", body)).status == 200
    assert await move(api, other) == 0
    assert "3 messages copied" in capsys.readouterr().out
    assert (await other.get("/topic-configs/t")).doc["max_depth"] == 2
    assert (await other.post("/messages", {"topic": "t", "payload": "{}"})).status == 429
    assert (await other.post("/messages", {"topic": "t", "payload": "x"})).status == 422


def test_a_message_whose_time_is_over_is_left_although_its_source_has_not_looked() -> None:
    """The original marks it within a minute."""
    message = {"topic": "t", "status": "pending", "expires_at": "2025-06-15T15:06:40+02:00"}
    nowhere = MovingServer("http://127.0.0.1:1", "/api", None)
    assert queue_ti._copy(message, nowhere, dead=False) == "expired messages left"


async def test_a_refusal_stops_the_copy_and_is_shown(
    api: Messages, other: Messages, capsys: pytest.CaptureFixture[str]
) -> None:
    await other.configure("t", max_depth=1)
    await other.enqueue("t")
    await api.enqueue("t")
    assert await move(api, other) == 1
    said = capsys.readouterr().err
    assert said.startswith("stopped: POST ") and ": 429 " in said
    await api.site.stop()
    assert await asyncio.to_thread(queue_ti.main, ["http://127.0.0.1:1", other.site.url]) == 1
    await api.site.start()
