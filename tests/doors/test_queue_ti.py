"""What queue-ti's clients rely on, in the order of their contract, with decisions beside them."""

import asyncio
import uuid

import pytest

from .messages import Messages

HOUR_MS = 3_600_000


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


async def test_no_two_consumers_get_one_message(api: Messages) -> None:
    for _ in range(50):
        await api.enqueue("many")
    taken = await asyncio.gather(*(api.dequeue("many", 10) for _ in range(5)))
    assert len({m["id"] for part in taken for m in part}) == 50


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
    assert (await api.send("POST", purge)).doc == {"deleted": 2}
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


BAD = [
    ("/messages", b"{", "application/json"),
    ("/messages", b"{}", "application/json"),
    ("/messages", b'{"topic":"t","payload":""}', "application/json"),
    ("/messages", b'{"topic":"t","payload":1}', "application/json"),
    ("/messages", b'{"topic":"t","payload":"x","metadata":{"a":1}}', "application/json"),
    ("/messages", b'{"topic":"t","payload":"x","metadata":{"a":"\\u0000"}}', "application/json"),
    ("/messages", b'{"topic":"t\\u0000","payload":"x"}', "application/json"),
    ("/messages", b'{"topic":"t","payload":"x"}', "text/plain"),
    ("/messages/dequeue", b'{"topic":"t","count":1001}', "application/json"),
    ("/messages/dequeue", b'{"topic":"t","count":-1}', "application/json"),
    ("/messages/dequeue", b"{}", "application/json"),
    ("/messages/dequeue", b'{"topic":"t","consumer_group":"a@b"}', "application/json"),
    ("/messages/x/ack", b'{"consumer_group":1}', "application/json"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
async def test_what_is_wrong_gets_400_and_a_text(api: Messages, case: int) -> None:
    target, body, kind = BAD[case]
    reply = await api.send("POST", target, body=body, headers={"content-type": kind})
    assert reply.status == 400
    assert reply.error


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


async def test_forms_and_other_kinds_of_json_are_bodies(api: Messages) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    reply = await api.send("POST", "/messages", body=b"topic=t&payload=a+b&key=k", headers=form)
    assert reply.status == 201
    json = {"content-type": "application/vnd.x+json; charset=utf-8"}
    body = b'{"topic":"t","payload":"a b"}'
    assert (await api.send("POST", "/messages", body=body, headers=json)).status == 201
    assert [m["payload"] for m in await api.list("t")] == ["a b", "a b"]


@pytest.mark.parametrize("verb", ["ack", "nack", "requeue"])
@pytest.mark.parametrize("id", ["abc", "00000000-0000-0000-0000-000000000000"])
async def test_an_id_of_nothing_is_not_found(api: Messages, verb: str, id: str) -> None:
    """The original answers 500 where it is no UUID."""
    reply = await api.send("POST", f"/messages/{id}/{verb}")
    assert reply.status == 404 and "message not found" in reply.error


async def test_paths_may_end_in_a_slash_and_others_are_refused_in_json(api: Messages) -> None:
    await api.enqueue("t")
    assert (await api.send("GET", "/messages/?topic=t")).doc["total"] == 1
    assert (await api.get("/nothing")).error == "Cannot GET /api/nothing"
    reply = await api.send("DELETE", "/messages")
    assert reply.status == 405 and reply.headers["allow"] == "GET, HEAD, POST"
    assert (await api.get("/version")).doc["version"]


async def test_probes_find_the_server_where_the_original_has_them(api: Messages) -> None:
    """The original answers `OK` as text. The probe of both dialects is one, in JSON here."""
    reply = await api.native.get("/healthz")
    assert reply.status == 200 and reply.doc["status"] == "ok"
    assert reply.doc == (await api.native.get("/health")).doc


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


@pytest.mark.parametrize("settings", [{"doors": ()}], ids=["closed"])
async def test_the_door_can_be_closed(api: Messages) -> None:
    assert (await api.get("/stats")).status == 404
    assert (await api.native.get("/queues")).status == 200
