"""Replayable topics: what was acknowledged is listed, trimmed, and comes once more."""

import base64
from typing import Any

import pytest

from .messages import Doc, Messages

LOG = "/topics/t/message-log"


async def done(api: Messages, payload: str, **fields: Any) -> str:
    """A message of the topic `t` that was acknowledged; its id."""
    id = await api.enqueue("t", payload, **fields)
    (taken,) = await api.dequeue("t")
    assert taken["id"] == id
    assert await api.ack(id) == 204
    return id


async def archived(api: Messages, **params: Any) -> list[Doc]:
    reply = await api.get(LOG, **params)
    assert reply.status == 200, reply.body
    items: list[Doc] = reply.doc["items"]
    return items


async def replay(api: Messages, **body: Any) -> Doc:
    reply = await api.post("/topics/t/replay", body)
    assert reply.status == 200, reply.body
    doc: Doc = reply.doc
    return doc


async def test_an_acknowledged_message_is_archived_where_its_topic_is_replayable(
    api: Messages,
) -> None:
    await done(api, "before")
    stored = await api.configure("t", replayable=True, replay_window_seconds=60)
    assert stored == {"topic": "t", "replayable": True, "replay_window_seconds": 60}
    first = await done(api, "ä", key="k", metadata={"a": "b"})
    api.site.clock.advance(2_000)
    second = await done(api, "two")
    assert await api.list("t") == [], "they are gone from the topic"
    reply = await api.get(LOG, limit=1)
    assert {k: reply.doc[k] for k in ("total", "limit", "offset")} == {
        "total": 2,
        "limit": 1,
        "offset": 0,
    }
    assert [m["id"] for m in reply.doc["items"]] == [second]
    (older,) = await archived(api, offset=1)
    assert older == {
        "id": first,
        "topic": "t",
        "payload": base64.b64encode("ä".encode()).decode(),
        "metadata": {"a": "b"},
        "retry_count": 0,
        "key": "k",
        "created_at": "2025-06-15T15:06:40Z",
        "acked_at": "2025-06-15T15:06:40Z",
    }
    api.site.clock.advance(58_500)
    assert [m["id"] for m in await archived(api)] == [second], "the window of the first is over"


async def test_a_replay_stores_copies_with_new_ids_and_limits_in_their_order(
    api: Messages,
) -> None:
    stored = await api.configure("t", replayable=True)
    assert stored == {"topic": "t", "replayable": True}, "a window without an end"
    old = [await done(api, "one", metadata={"a": "b"}), await done(api, "two")]
    await api.configure("t", replayable=True, max_retries=7)
    api.site.clock.advance(3_000)
    assert await replay(api) == {"topic": "t", "enqueued": 2, "from_time": ""}
    again = await api.dequeue("t", 9)
    assert [m["payload"] for m in again] == ["one", "two"]
    assert again[0]["metadata"] == {"a": "b"}
    assert {m["retry_count"] for m in again} == {0} and {m["max_retries"] for m in again} == {7}
    assert not {m["id"] for m in again} & set(old)
    assert again[0]["expires_at"] == "2025-06-16T15:06:43Z", "its time begins anew"
    assert len(await archived(api)) == 2, "what is archived stays"


async def test_a_replay_leaves_out_keys_that_are_pending(api: Messages) -> None:
    await api.configure("t", replayable=True)
    await done(api, "old", key="k")
    await done(api, "older", key="j")
    await api.enqueue("t", "new", key="k")
    assert (await replay(api))["enqueued"] == 1
    assert [m["payload"] for m in await api.dequeue("t", 9)] == ["new", "older"]


async def test_a_replay_begins_at_the_time_of_the_acknowledgement(api: Messages) -> None:
    await api.configure("t", replayable=True)
    late = await api.enqueue("t", "late")
    (taken,) = await api.dequeue("t", visibility_timeout_seconds=60)
    await done(api, "early")
    api.site.clock.advance(10_000)
    assert taken["id"] == late and await api.ack(late) == 204
    from_time = "2025-06-15T15:06:45Z"
    assert await replay(api, from_time=from_time) == {
        "topic": "t",
        "enqueued": 1,
        "from_time": from_time,
    }
    assert [m["payload"] for m in await api.dequeue("t", 9)] == ["late"]


async def test_what_cannot_be_replayed_is_refused(api: Messages) -> None:
    reply = await api.post("/topics/t/replay", {})
    assert reply.status == 422 and "not replayable" in reply.error
    await api.configure("t", replayable=True, replay_window_seconds=60)
    reply = await api.post("/topics/t/replay", {"from_time": "2025-06-15T15:00:00Z"})
    assert reply.status == 422 and "60 s" in reply.error
    for time in ("yesterday", "2025-06-15T15:00:00", "9999-12-31T23:59:59-14:00"):
        reply = await api.post("/topics/t/replay", {"from_time": time})
        assert reply.status in (422, 200)
    reply = await api.post("/topics/t/replay", {"from_time": "yesterday"})
    assert reply.status == 422 and "invalid from_time" in reply.error


async def test_a_full_topic_ends_a_replay(api: Messages) -> None:
    await api.configure("t", replayable=True)
    await done(api, "one")
    await api.configure("t", replayable=True, max_depth=1)
    await api.enqueue("t")
    assert (await api.post("/topics/t/replay", {})).status == 429
    assert len(await api.list("t")) == 1


async def test_the_archive_is_trimmed_by_time_and_by_the_window_of_today(api: Messages) -> None:
    await api.configure("t", replayable=True)
    for payload in ("one", "two", "three"):
        await done(api, payload)
        api.site.clock.advance(10_000)
    assert (await api.send("DELETE", f"{LOG}?before=2025-06-15T15:06:50Z")).doc == {"deleted": 1}
    assert (await api.send("DELETE", f"{LOG}?before=2025-06-15T15:06:50Z")).doc == {"deleted": 0}
    for query in ("", "?before=", "?before=now"):
        assert (await api.send("DELETE", LOG + query)).status == 400
    assert await api.run("archive") == {"deleted": 0}
    await api.configure("t", replayable=True, replay_window_seconds=15)
    assert await api.run("archive") == {"deleted": 1}
    assert len(await archived(api)) == 1


async def test_an_archived_message_is_a_completed_job(api: Messages) -> None:
    await api.native.call("PUT", "/queues/t/settings", {"retention": {"completed_ms": 5_000}})
    config = (await api.get("/topic-configs/t")).doc
    assert config == {"topic": "t", "replayable": True, "replay_window_seconds": 5}
    await done(api, "one")
    (job,) = await api.native.jobs(queue="t", status="completed")
    assert job["payload"] == "one"
    assert (await replay(api))["enqueued"] == 1
    reply = await api.native.get("/metrics")
    assert b'queueti_replayed_total{topic="t"} 1.0' in reply.body
    assert (await api.send("DELETE", "/topic-configs/t")).status == 204
    assert (await api.native.get("/queues/t/settings")).doc == {}


@pytest.mark.parametrize("count", [300])
async def test_a_replay_of_several_slices_has_each_message_once(api: Messages, count: int) -> None:
    await api.configure("t", replayable=True)
    for number in range(count):
        await api.native.enqueue(queue="t", payload=str(number))
    for job in await api.dequeue("t", count):
        assert await api.ack(job["id"]) == 204
    assert (await replay(api))["enqueued"] == count
    assert [m["payload"] for m in await api.dequeue("t", 1_000)] == [str(n) for n in range(count)]
