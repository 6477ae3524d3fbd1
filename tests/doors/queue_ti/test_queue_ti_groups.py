"""Consumer groups of queue-ti: each gets every message, and settles it for itself."""

import asyncio
from collections import Counter

import pytest

from .messages import Messages

GROUPS = "/topics/t/consumer-groups"


async def register(api: Messages, *groups: str, topic: str = "t") -> None:
    for group in groups:
        path = f"/topics/{topic}/consumer-groups"
        assert (await api.post(path, {"consumer_group": group})).status == 201


async def payloads(api: Messages, group: str, count: int = 10) -> list[str]:
    return [m["payload"] for m in await api.dequeue("t", count, consumer_group=group)]


async def settle(api: Messages, id: str, way: str, group: str) -> int:
    return (await api.post(f"/messages/{id}/{way}", {"consumer_group": group})).status


async def test_a_group_on_a_dead_letter_topic_gets_its_messages(api: Messages) -> None:
    await api.post("/topics/t.dlq/consumer-groups", {"consumer_group": "ops"})
    await api.configure("t", max_retries=1)
    await api.enqueue("t", "one")
    await api.fail("t")
    sent = {"topic": "t.dlq", "consumer_group": "ops"}
    (taken,) = (await api.post("/messages/dequeue", sent)).doc["messages"]
    assert (taken["payload"], taken["original_topic"]) == ("one", "t")


async def test_groups_are_listed_in_the_order_of_their_registration(api: Messages) -> None:
    assert (await api.get(GROUPS)).doc == {"items": []}
    await register(api, "mail", "billing")
    assert (await api.get(GROUPS)).doc == {"items": ["mail", "billing"]}
    again = await api.post(GROUPS, {"consumer_group": "mail"})
    assert (again.status, again.doc["error"]) == (409, "consumer group already registered")
    assert (await api.send("DELETE", f"{GROUPS}/mail")).status == 204
    assert (await api.send("DELETE", f"{GROUPS}/mail")).status == 404
    assert (await api.get(GROUPS)).doc == {"items": ["billing"]}


@pytest.mark.parametrize("sent", [{}, {"consumer_group": ""}, {"consumer_group": "a@b"}], ids=str)
async def test_a_group_needs_a_name(api: Messages, sent: dict[str, str]) -> None:
    reply = await api.post(GROUPS, sent)
    assert reply.status == 400 and "consumer_group" in reply.doc["error"]


async def test_every_group_gets_every_message_under_the_name_of_its_topic(api: Messages) -> None:
    await register(api, "a", "b")
    await api.enqueue("t", "one", key="k", metadata={"x": "y"})
    for group in ("a", "b"):
        (taken,) = await api.dequeue("t", consumer_group=group)
        assert (taken["topic"], taken["payload"], taken["key"]) == ("t", "one", "k")
        assert taken["metadata"] == {"x": "y"} and taken["max_retries"] == 3
    assert await api.dequeue("t") == [], "the groups have it"
    assert await payloads(api, "unknown") == []


async def test_each_group_settles_for_itself(api: Messages) -> None:
    await register(api, "a", "b")
    id = await api.enqueue("t", "one")
    (for_a,) = await api.dequeue("t", consumer_group="a")
    (for_b,) = await api.dequeue("t", consumer_group="b")
    assert for_a["id"] == id, "the id of an enqueue is that of the first group's message"
    assert await settle(api, for_a["id"], "ack", "b") == 404, "it is the other group's"
    assert await settle(api, for_a["id"], "ack", "a") == 204
    assert await settle(api, for_b["id"], "nack", "b") == 204
    (again,) = await api.dequeue("t", consumer_group="b")
    assert (again["id"], again["retry_count"]) == (for_b["id"], 1)
    assert await payloads(api, "a") == []


async def test_a_group_that_gives_up_has_the_message_in_the_dead_letter_topic(
    api: Messages,
) -> None:
    """The original only marks it as failed, where nobody sees it and nothing brings it back."""
    await register(api, "a", "b")
    await api.enqueue("t", "one")
    for _ in range(3):
        (taken,) = await api.dequeue("t", consumer_group="a")
        await settle(api, taken["id"], "nack", "a")
    dead = await api.one("t.dlq")
    assert (dead["id"], dead["original_topic"]) == (taken["id"], "t@a")
    assert await payloads(api, "b") == ["one"]
    assert (await api.post(f"/messages/{dead['id']}/requeue", {})).status == 204
    assert await payloads(api, "a") == ["one"]


async def test_a_message_that_came_back_to_its_group_gives_up_as_before(api: Messages) -> None:
    await register(api, "a")
    await api.configure("t", max_retries=2)
    await api.enqueue("t", "one")
    for _ in range(2):
        for _ in range(2):
            (taken,) = await api.dequeue("t", consumer_group="a")
            assert await settle(api, taken["id"], "nack", "a") == 204
        assert (await api.one("t.dlq"))["id"] == taken["id"]
        assert (await api.post(f"/messages/{taken['id']}/requeue", {})).status == 204
        assert (await api.list("t"))[0]["max_retries"] == 2


async def test_overrides_of_a_topic_are_those_of_its_groups(api: Messages) -> None:
    """Those of a group hold until the next change of its topic's."""
    await register(api, "a", "b")
    await api.configure("t", max_depth=1)
    await api.enqueue("t")
    refused = await api.post("/messages", {"topic": "t", "payload": "x"})
    assert refused.status == 429
    await api.configure("t@a", max_depth=2)
    await api.configure("t@b", max_depth=2, throughput_limit=1)
    await api.enqueue("t")
    assert [len(await payloads(api, group)) for group in ("a", "b")] == [2, 1]
    await api.configure("t", max_retries=1)
    await api.enqueue("t")
    assert len(await payloads(api, "b")) == 2, "its limit is gone"
    assert (await api.send("DELETE", "/topic-configs/t")).status == 204
    assert (await api.get("/topic-configs")).doc == {"items": []}


async def test_groups_have_archives_and_come_back_with_their_topic(api: Messages) -> None:
    """The original archives a message once, when the last group has acknowledged it."""
    await register(api, "a", "b")
    await api.configure("t", replayable=True)
    await api.enqueue("t", "one")
    for group in ("a", "b"):
        (taken,) = await api.dequeue("t", consumer_group=group)
        assert await settle(api, taken["id"], "ack", group) == 204
    log = (await api.get("/topics/t/message-log")).doc
    assert [each["topic"] for each in log["items"]] == ["t@b", "t@a"]
    assert (await api.post("/topics/t/replay", {})).doc["enqueued"] == 2
    assert await payloads(api, "a") == await payloads(api, "b") == ["one"]
    assert (await api.post("/topics/t@a/replay", {})).doc["enqueued"] == 1
    for _ in range(3):
        (taken,) = await api.dequeue("t", consumer_group="a")
        await settle(api, taken["id"], "nack", "a")
    assert (await api.one("t.dlq"))["original_topic"] == "t@a"
    trimmed = await api.send("DELETE", "/topics/t/message-log?before=2030-01-01T00:00:00Z")
    assert trimmed.doc == {"deleted": 2}


async def test_a_message_to_the_queue_of_a_group_is_for_that_group_alone(api: Messages) -> None:
    await register(api, "a", "b")
    await api.enqueue("t@a", "one")
    assert await payloads(api, "b") == []
    for _ in range(3):
        (taken,) = await api.dequeue("t", consumer_group="a")
        assert await settle(api, taken["id"], "nack", "a") == 204
    assert (await api.one("t.dlq"))["original_topic"] == "t@a"


async def test_a_topic_with_an_at_sign_is_no_group(api: Messages) -> None:
    await api.enqueue("t@a")
    id = await api.fail("t@a", 3)
    assert (await api.post(f"/messages/{id}/requeue", {})).status == 204
    assert await api.fail("t@a", 3) == id
    assert (await api.one("t@a.dlq"))["id"] == id


async def test_a_registration_brings_what_is_pending(api: Messages) -> None:
    await api.enqueue("t", "one")
    await api.enqueue("t", "two")
    await register(api, "a")
    (first, _) = await api.dequeue("t", 2, consumer_group="a")
    await settle(api, first["id"], "ack", "a")
    await register(api, "b")
    assert await payloads(api, "b") == ["two"], "what all groups have settled is gone"


async def test_registrations_beside_enqueues_miss_nothing(api: Messages) -> None:
    async def enqueue(number: int) -> None:
        await api.enqueue("t", str(number))

    async with asyncio.TaskGroup() as tasks:
        for number in range(30):
            tasks.create_task(enqueue(number))
            if number in (5, 15, 25):
                tasks.create_task(register(api, f"g{number}"))
    for group in ("g5", "g15", "g25"):
        assert Counter(await payloads(api, group, 100)) == Counter(map(str, range(30)))


async def test_what_is_said_of_a_topic_includes_its_groups(api: Messages) -> None:
    await register(api, "a", "b")
    await api.enqueue("t", "one", key="k")
    await api.dequeue("t", consumer_group="b")
    assert [(m["topic"], m["status"]) for m in await api.list("t")] == [
        ("t@b", "processing"), ("t@a", "pending")
    ]  # fmt: skip
    stats = (await api.get("/stats")).doc["topics"]
    assert [(each["topic"], each["status"]) for each in stats] == [
        ("t@a", "pending"), ("t@b", "processing")
    ]  # fmt: skip
    deleted = await api.send("DELETE", "/topics/t/messages/by-key/k")
    assert deleted.doc == {"deleted": 2}
    await api.enqueue("t", "two")
    assert (await api.post("/topics/t/purge", {})).doc == {"deleted": 2}


async def test_groups_and_what_they_hold_survive_a_restart(api: Messages) -> None:
    await register(api, "a", "b")
    await api.enqueue("t", "one")
    await api.site.restart()
    assert (await api.get(GROUPS)).doc == {"items": ["a", "b"]}
    assert await payloads(api, "a") == await payloads(api, "b") == ["one"]


async def test_natively_a_group_is_a_target_with_jobs_like_all_others(api: Messages) -> None:
    await register(api, "a")
    await api.enqueue("t", "one")
    settings = await api.native.get("/queues/t/settings")
    assert settings.doc == {"fan_out": ["t@a"]}
    added = await api.native.send("PUT", "/queues/t/targets/audit")
    assert (added.status, added.doc) == (201, {"added": 1})
    stored = await api.native.post("/jobs", {"type": "x", "queue": "t", "payload": 1})
    assert (stored.status, stored.doc["queue"]) == (201, "t@a")
    queues = await api.native.get("/queues")
    assert queues.doc["queues"] == ["audit", "t@a"]
    assert (await api.get(GROUPS)).doc == {"items": ["a"]}, "a target is not a group by itself"
    removed = await api.native.send("DELETE", "/queues/t/targets/audit")
    assert (removed.status, removed.doc) == (200, {"deleted": 2})
