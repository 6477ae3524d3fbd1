"""What queue-ti's operators rely on: overrides of topics, expiry, pages, purges and statistics."""

import pytest

from .messages import Messages


async def test_overrides_are_for_new_messages_and_an_omitted_one_is_the_default(
    api: Messages,
) -> None:
    await api.enqueue("orders")
    whole = {
        "max_retries": 5,
        "message_ttl_seconds": 3600,
        "max_depth": 1000,
        "throughput_limit": 100,
    }
    stored = {"topic": "orders", "replayable": False, **whole}
    assert await api.configure("orders", **whole) == stored
    assert (await api.get("/topic-configs")).doc == {"items": [stored]}
    await api.enqueue("orders")
    new, old = await api.list("orders")
    assert (new["max_retries"], old["max_retries"]) == (5, 3)
    assert new["expires_at"] == "2025-06-15T16:06:40Z"

    assert await api.configure("orders", max_retries=5, max_depth=None) == {
        "topic": "orders",
        "replayable": False,
        "max_retries": 5,
    }
    assert (await api.send("DELETE", "/topic-configs/orders")).status == 204
    assert (await api.send("DELETE", "/topic-configs/orders")).status == 404
    assert (await api.get("/topic-configs")).doc == {"items": []}


async def test_an_override_counts_before_the_threshold_and_0_turns_dead_letters_off(
    api: Messages,
) -> None:
    assert (await api.configure("once", max_retries=1))["max_retries"] == 1
    await api.enqueue("once")
    await api.fail("once")
    assert (await api.one("once.dlq"))["original_topic"] == "once"
    assert (await api.configure("never", max_retries=0))["max_retries"] == 0
    await api.enqueue("never")
    await api.fail("never")
    assert (await api.one("never"))["status"] == "failed"
    assert await api.list("never.dlq") == []


async def test_overrides_leave_what_else_is_set_for_the_queue(api: Messages) -> None:
    await api.native.call("PUT", "/queues/t/settings", {"paused": True})
    await api.configure("t", max_depth=1)
    assert (await api.native.get("/queues/t/settings")).doc == {"paused": True, "max_depth": 1}
    assert (await api.send("DELETE", "/topic-configs/t")).status == 204
    assert (await api.native.get("/queues/t/settings")).doc == {"paused": True}


async def test_a_full_topic_refuses_all_but_a_refresh(api: Messages) -> None:
    """What is processed counts. In the original a refresh of a key is refused too."""
    await api.configure("depth", max_depth=2)
    await api.enqueue("depth")
    await api.enqueue("depth", key="k")
    (taken,) = await api.dequeue("depth")
    reply = await api.post("/messages", {"topic": "depth", "payload": "x"})
    assert reply.status == 429 and reply.headers["retry-after"]
    await api.enqueue("depth", "again", key="k")
    assert await api.ack(taken["id"]) == 204
    await api.enqueue("depth")


async def test_a_topic_gives_so_many_messages_a_second(api: Messages) -> None:
    await api.configure("slow", throughput_limit=2)
    for _ in range(5):
        await api.enqueue("slow")
    assert len(await api.dequeue("slow", 5)) == 2
    assert await api.dequeue("slow", 5) == []
    api.site.clock.advance(1_000)
    assert len(await api.dequeue("slow", 5)) == 2


async def test_a_message_expires_by_itself_and_the_reapers_tell_and_delete(api: Messages) -> None:
    await api.configure("short", message_ttl_seconds=1)
    await api.enqueue("short")
    api.site.clock.advance(1_500)
    assert await api.dequeue("short") == []
    assert await api.run("expiry") == {"expired": 1}
    assert (await api.one("short"))["status"] == "expired"
    assert await api.run("expiry") == {"expired": 0}
    assert await api.run("delete") == {"deleted": 1}
    assert await api.list("short") == []
    assert await api.run("delete") == {"deleted": 0}


async def test_a_message_that_is_processed_expires_once_it_comes_back(api: Messages) -> None:
    """The original takes it from its worker. Work that is under way may be finished here."""
    await api.configure("short", message_ttl_seconds=1)
    ids = [await api.enqueue("short") for _ in range(2)]
    await api.dequeue("short", 2)
    api.site.clock.advance(1_500)
    assert await api.ack(ids[0]) == 204
    assert await api.nack(ids[1]) == 204
    assert await api.dequeue("short") == []
    assert (await api.one("short"))["status"] == "expired"


async def test_a_topic_may_have_no_time_to_live(api: Messages) -> None:
    assert (await api.configure("keep", message_ttl_seconds=0))["message_ttl_seconds"] == 0
    await api.enqueue("keep")
    assert "expires_at" not in await api.one("keep")
    assert (await api.configure("long", message_ttl_seconds=90 * 86_400))["message_ttl_seconds"]
    await api.enqueue("long")
    assert (await api.one("long"))["expires_at"] == "2025-09-13T15:06:40Z"


async def test_pages_are_newest_first_and_odd_numbers_are_the_usual_ones(api: Messages) -> None:
    ids = [await api.enqueue("t") for _ in range(5)]
    await api.enqueue("other")
    reply = await api.get("/messages", topic="t", limit=2, offset=1)
    assert [m["id"] for m in reply.doc["items"]] == [ids[3], ids[2]]
    assert {k: reply.doc[k] for k in ("total", "limit", "offset")} == {
        "total": 5,
        "limit": 2,
        "offset": 1,
    }
    odd = (await api.get("/messages", limit="abc", offset=-3)).doc
    assert (odd["total"], odd["limit"], odd["offset"]) == (6, 50, 0)
    assert (await api.get("/messages", limit=9_999)).doc["limit"] == 200
    assert (await api.get("/messages", topic="t", offset=9)).doc["items"] == []


async def test_purges_name_states_and_keys_whatever_the_message_does(api: Messages) -> None:
    for _ in range(3):
        await api.enqueue("t")
    await api.dequeue("t")
    purge = "/topics/t/purge"
    assert (await api.post(purge, {"statuses": ["processing"]})).doc == {"deleted": 1}
    assert (await api.post(purge, {"statuses": ["failed"]})).status == 400
    for lost in (
        await api.send("POST", purge),
        await api.post(purge, {"status": ["processing"]}),
        await api.post(f"{purge}?statuses=processing", {}),
        await api.post(f"{purge}?", {}),
    ):
        assert lost.status == 400, lost
    assert (await api.post(purge, {})).doc == {"deleted": 2}
    await api.enqueue("t", key="a/b")
    await api.dequeue("t")
    await api.enqueue("t", key="a/b")
    await api.enqueue("u", key="a/b")
    by_key = "/topics/t/messages/by-key/a%2Fb"
    assert (await api.send("DELETE", by_key)).doc == {"deleted": 2}
    assert (await api.send("DELETE", by_key)).doc == {"deleted": 0}
    assert len(await api.list("u")) == 1


async def test_statistics_count_by_topic_and_status(api: Messages) -> None:
    for topic in ("b", "a", "a"):
        await api.enqueue(topic)
    await api.dequeue("a")
    assert (await api.get("/stats")).doc == {
        "topics": [
            {"topic": "a", "status": "pending", "count": 1},
            {"topic": "a", "status": "processing", "count": 1},
            {"topic": "b", "status": "pending", "count": 1},
        ]
    }


async def test_a_topic_in_a_path_is_decoded_once(api: Messages) -> None:
    """The original does not decode it at all."""
    assert (await api.configure("a%20b%2Fc", max_depth=1))["topic"] == "a b/c"
    await api.enqueue("a b/c")
    assert (await api.post("/messages", {"topic": "a b/c", "payload": "x"})).status == 429


@pytest.mark.parametrize(
    "overrides",
    [{"max_retries": -1}, {"max_depth": 2**40}, {"throughput_limit": -1}, {"replayable": 1}],
)
async def test_wrong_overrides_change_nothing(api: Messages, overrides: dict[str, int]) -> None:
    """The original stores most negative numbers, and answers 500 for large ones."""
    reply = await api.native.call("PUT", "/api/topic-configs/t", overrides)
    assert reply.status == 400 and reply.error
    assert (await api.get("/topic-configs/t")).status == 404
    assert (await api.native.call("PUT", "/api/topic-configs/t.dlq", {})).status == 400
