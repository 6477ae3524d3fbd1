"""What queue-ti's clients rely on of messages, in the order of their contract, with decisions."""

import asyncio
import uuid

import pytest

from .messages import Messages


async def test_a_message_goes_in_and_out_and_is_gone_once_it_is_acknowledged(
    api: Messages,
) -> None:
    id = await api.enqueue("orders", "eyJhIjoxfQ==", key="order-42", metadata={"a": "b"})
    assert str(uuid.UUID(id)) == id
    listed = await api.one("orders")
    assert listed["max_retries"] == 3 and listed["retry_count"] == 0
    assert listed["status"] == "pending" and listed["key"] == "order-42"
    assert listed["expires_at"] == "2025-06-16T15:06:40Z", "a day from now"
    assert "original_topic" not in listed and "last_error" not in listed

    (taken,) = await api.dequeue("orders", visibility_timeout_seconds=60)
    assert taken["id"] == id and taken["payload"] == "eyJhIjoxfQ=="
    assert taken["metadata"] == {"a": "b"} and taken["created_at"] == "2025-06-15T15:06:40Z"
    # The original answers with an empty status.
    assert taken["status"] == "processing"
    assert await api.dequeue("orders") == []
    assert (await api.one("orders"))["status"] == "processing"

    assert await api.ack(id) == 204
    assert await api.list("orders") == []
    assert await api.ack(id) == 404


async def test_a_key_refreshes_the_pending_message_in_its_place(api: Messages) -> None:
    first = await api.enqueue("orders", "old", key="k", metadata={"v": "1"})
    await api.enqueue("orders", "other")
    assert await api.enqueue("orders", "new", key="k") == first
    taken = await api.dequeue("orders", 2)
    assert [(m["payload"], m["metadata"]) for m in taken] == [("new", None), ("other", None)]


async def test_a_key_is_one_of_its_topic_and_an_empty_one_is_a_key(api: Messages) -> None:
    ids = [await api.enqueue(topic, key=key) for topic in ("a", "b") for key in ("", "k")]
    assert len(set(ids)) == 4
    assert await api.enqueue("a", key="") == ids[0]


async def test_a_message_that_is_processed_is_not_changed_by_its_key(api: Messages) -> None:
    first = await api.enqueue("orders", "one", key="k")
    await api.dequeue("orders")
    second = await api.enqueue("orders", "two", key="k")
    assert second != first
    assert [m["payload"] for m in await api.list("orders")] == ["two", "one"]


@pytest.mark.parametrize("way_back", ["nack", "timeout"])
async def test_one_that_comes_back_to_a_newer_one_of_its_key_stays_behind_without_the_key(
    api: Messages, way_back: str
) -> None:
    """The original answers 500. Nothing is lost here: both are delivered, the newer has the key."""
    first = await api.enqueue("t", "one", key="k")
    await api.dequeue("t", visibility_timeout_seconds=1)
    second = await api.enqueue("t", "two", key="k")
    if way_back == "nack":
        assert await api.nack(first) == 204
    else:
        api.site.clock.advance(1_001)
    assert await api.enqueue("t", "three", key="k") == second
    assert [m["payload"] for m in await api.dequeue("t", 3)] == ["one", "three"]


async def test_messages_of_one_key_meet_in_the_dead_letter_topic_and_on_their_way_home(
    api: Messages,
) -> None:
    await api.configure("t", max_retries=1)
    await api.enqueue("t", "one", key="k")
    first = await api.fail("t")
    await api.enqueue("t", "two", key="k")
    second = await api.fail("t")
    assert {m["id"] for m in await api.list("t.dlq")} == {first, second}
    third = await api.enqueue("t", "three", key="k")
    assert (await api.post(f"/messages/{first}/requeue", {})).status == 204
    assert await api.enqueue("t", "four", key="k") == third
    assert [m["payload"] for m in await api.dequeue("t", 9)] == ["one", "four"]


async def test_a_message_whose_time_is_over_is_not_refreshed(api: Messages) -> None:
    """The original lets the new payload expire with the old message."""
    await api.configure("t", message_ttl_seconds=1)
    first = await api.enqueue("t", "old", key="k")
    api.site.clock.advance(1_000)
    assert await api.enqueue("t", "new", key="k") != first
    assert [m["payload"] for m in await api.dequeue("t", 9)] == ["new"]


async def test_messages_without_keys_are_taken_oldest_first(api: Messages) -> None:
    ids = [await api.enqueue("plain", str(n)) for n in range(3)]
    taken = await api.dequeue("plain", 10)
    assert [(m["id"], m["payload"]) for m in taken] == list(zip(ids, "012", strict=True))
    assert "key" not in taken[0]


async def test_a_count_that_is_0_or_missing_is_1(api: Messages) -> None:
    """The original's code has it so, against its documents."""
    for _ in range(2):
        await api.enqueue("t")
    assert len(await api.dequeue("t", 0)) == 1
    reply = await api.post("/messages/dequeue", {"topic": "t"})
    assert len(reply.doc["messages"]) == 1


async def test_a_message_is_seen_again_after_its_time_out_with_no_retry_counted(
    api: Messages,
) -> None:
    id = await api.enqueue("vt")
    await api.dequeue("vt", visibility_timeout_seconds=1)
    api.site.clock.advance(1_000)
    assert await api.dequeue("vt") == [], "not before its time"
    api.site.clock.advance(1)
    assert (await api.one("vt"))["status"] == "pending"
    (again,) = await api.dequeue("vt", visibility_timeout_seconds=0)
    assert again["id"] == id and again["retry_count"] == 0
    api.site.clock.advance(30_000)
    assert await api.dequeue("vt") == []
    api.site.clock.advance(1)
    assert len(await api.dequeue("vt")) == 1, "30 s where nothing is said"


@pytest.mark.parametrize("way", ["ack", "nack"])
async def test_a_report_after_the_time_out_counts_until_somebody_takes_the_message(
    api: Messages, way: str
) -> None:
    report = api.ack if way == "ack" else api.nack
    ids = [await api.enqueue("late", key=key) for key in ("a", "b", "c")]
    await api.dequeue("late", 3, visibility_timeout_seconds=1)
    api.site.clock.advance(1_001)
    assert {m["status"] for m in await api.list("late")} == {"pending"}
    assert await report(ids[0]) == 204
    assert await report(ids[0]) == 404, "it was the only report of this delivery"
    left = [m["retry_count"] for m in await api.list("late")]
    assert left == ([0, 0] if way == "ack" else [0, 0, 1])
    if way == "nack":
        assert await api.ack((await api.dequeue("late"))[0]["id"]) == 204
    (again,) = await api.dequeue("late")
    assert again["id"] == ids[1]
    assert await report(ids[1]) == 204, "it has no token: this is about the delivery of now"
    assert await report(ids[1]) == 404
    assert await report(await api.enqueue("late")) == 404, "nobody has taken it"


@pytest.mark.parametrize("settings", [{"global_in_flight_limit": 1}], ids=["one at a time"])
async def test_a_late_ack_makes_no_room_for_more_messages_in_flight(api: Messages) -> None:
    for _ in range(3):
        await api.enqueue("t")
    (lost,) = await api.dequeue("t", 3, visibility_timeout_seconds=1)
    api.site.clock.advance(1_001)
    await api.enqueue("u")
    await api.dequeue("u")
    assert await api.ack(lost["id"]) == 204
    assert await api.dequeue("t", 3) == []


async def test_a_nack_makes_a_message_pending_at_once_and_the_third_moves_it(
    api: Messages,
) -> None:
    id = await api.enqueue("nk", "p", key="k", metadata={"m": "1"})
    await api.fail("nk")
    listed = await api.one("nk")
    assert (listed["status"], listed["retry_count"]) == ("pending", 1)
    assert listed["last_error"] == "boom"
    api.site.clock.advance(5_000)
    await api.fail("nk", 2)
    assert await api.list("nk") == []
    dead = await api.one("nk.dlq")
    assert dead["id"] == id and dead["status"] == "pending"
    assert (dead["retry_count"], dead["max_retries"]) == (0, 0)
    assert dead["original_topic"] == "nk" and dead["dlq_moved_at"] == "2025-06-15T15:06:45Z"
    assert dead["last_error"] == "boom" and dead["payload"] == "p" and dead["key"] == "k"
    # Time does not pass for the dead: the original lets them expire.
    assert "expires_at" not in dead


async def test_the_dead_letter_topic_is_not_for_producers_nor_for_dequeues(api: Messages) -> None:
    reply = await api.post("/messages", {"topic": "nk.dlq", "payload": "x"})
    assert reply.status == 400 and "may not end in .dlq" in reply.doc["error"]
    assert await api.list("nk.dlq") == []
    await api.enqueue("t")
    await api.fail("t", 3)
    assert await api.dequeue("t.dlq") == []


async def test_a_requeued_message_begins_anew_where_it_was(api: Messages) -> None:
    id = await api.enqueue("nk", key="k")
    await api.fail("nk", 3)
    assert (await api.send("POST", f"/messages/{id}/requeue")).status == 204
    listed = await api.one("nk")
    assert listed["id"] == id and listed["status"] == "pending"
    assert (listed["retry_count"], listed["max_retries"]) == (0, 3)
    assert "original_topic" not in listed and "dlq_moved_at" not in listed
    assert listed["expires_at"], "its time begins anew too"
    again = await api.send("POST", f"/messages/{id}/requeue")
    assert again.status == 404 and "not a dead letter" in again.error
    assert (await api.dequeue("nk"))[0]["id"] == id


async def test_a_requeued_message_has_the_limits_of_today(api: Messages) -> None:
    id = await api.enqueue("t")
    await api.fail("t", 3)
    await api.configure("t", max_retries=1)
    assert (await api.send("POST", f"/messages/{id}/requeue")).status == 204
    assert (await api.one("t"))["max_retries"] == 1
    await api.fail("t")
    assert (await api.one("t.dlq"))["id"] == id


async def test_a_first_nack_in_the_dead_letter_topic_is_the_last(api: Messages) -> None:
    id = await api.enqueue("t")
    await api.fail("t", 3)
    reply = await api.native.post("/queues/t.dlq/claim", {"max": 1, "holder": "w"})
    assert len(reply.doc["jobs"]) == 1
    assert (await api.send("POST", f"/messages/{id}/requeue")).status == 404, "it is processed"
    assert await api.nack(id) == 204
    assert (await api.one("t.dlq"))["status"] == "failed"
    assert await api.list("t.dlq.dlq") == []
    # An operator can still bring it back.
    assert (await api.send("POST", f"/messages/{id}/requeue")).status == 204


async def test_no_two_consumers_get_one_message(api: Messages) -> None:
    for _ in range(50):
        await api.enqueue("many")
    taken = await asyncio.gather(*(api.dequeue("many", 10) for _ in range(5)))
    assert len({m["id"] for part in taken for m in part}) == 50


@pytest.mark.parametrize(
    "settings", [{"queue_ti_dlq_threshold": 0, "queue_ti_max_retries": 1}], ids=["no dead letters"]
)
async def test_a_message_without_retries_and_dead_letters_fails(api: Messages) -> None:
    await api.enqueue("t")
    await api.fail("t")
    assert (await api.one("t"))["status"] == "failed"
    assert await api.dequeue("t") == []
    assert await api.run("delete") == {"deleted": 0}, "what failed is no reaper's"


@pytest.mark.parametrize(
    "settings", [{"queue_ti_dlq_threshold": 5, "queue_ti_max_retries": 2}], ids=["late"]
)
async def test_a_message_fails_before_it_reaches_a_threshold_above_its_retries(
    api: Messages,
) -> None:
    await api.enqueue("t")
    await api.fail("t", 2)
    assert (await api.one("t"))["status"] == "failed"
    assert await api.list("t.dlq") == []
