"""Metrics by the names of queue-ti: each number is what happened to messages of a topic."""

import pytest
from conformance.metrics import Metrics
from documents import region

from zq.doors.queue_ti.metrics import METRICS
from zq.engine.subscribers.tallies import MOST_COUNTED, QueueTallies
from zq.http.metrics import markdown

from .messages import Messages


def test_the_documents_hold_the_table() -> None:
    assert region("queue-ti-metrics") == markdown(METRICS), (
        "run `python -m zq.doors.queue_ti.metrics` and paste the table"
    )


async def test_what_happens_to_messages_is_counted_by_topic(api: Messages) -> None:
    await api.configure("once", max_retries=1)
    await api.configure("never", max_retries=0)
    await api.configure("short", message_ttl_seconds=1)
    await api.enqueue("t", key="k")
    await api.enqueue("t", key="k")
    await api.fail("t")
    (taken,) = await api.dequeue("t")
    assert await api.ack(taken["id"]) == 204
    id = await api.enqueue("once")
    await api.fail("once")
    assert (await api.send("POST", f"/messages/{id}/requeue")).status == 204
    await api.enqueue("never")
    await api.fail("never")
    await api.enqueue("short")
    api.site.clock.advance(1_500)
    assert await api.run("expiry") == {"expired": 1}
    for _ in range(2):
        await api.enqueue("purged")
    assert (await api.post("/topics/purged/purge", {})).doc == {"deleted": 2}

    found = await scrape(api)
    assert {key: n for key, n in found.values.items() if key[0].startswith("queueti_")} == {
        ("queueti_enqueued_total", "never"): 1,
        ("queueti_enqueued_total", "once"): 1,
        ("queueti_enqueued_total", "purged"): 2,
        ("queueti_enqueued_total", "short"): 1,
        ("queueti_enqueued_total", "t"): 2,
        ("queueti_dequeued_total", "never"): 1,
        ("queueti_dequeued_total", "once"): 1,
        ("queueti_dequeued_total", "t"): 2,
        ("queueti_acked_total", "t"): 1,
        ("queueti_nacked_total", "retry", "t"): 1,
        ("queueti_nacked_total", "failed", "never"): 1,
        ("queueti_nacked_total", "dlq", "once"): 1,
        ("queueti_requeued_total", "once"): 1,
        ("queueti_expired_total", "short"): 1,
        ("queueti_messages_deleted_total", "purged"): 2,
        ("queueti_queue_depth", "failed", "never"): 1,
        ("queueti_queue_depth", "pending", "once"): 1,
        ("queueti_queue_depth", "expired", "short"): 1,
    }


async def test_nothing_is_counted_before_the_door_is_used(api: Messages) -> None:
    await api.native.enqueue(queue="t")
    assert not api.site.server.engine.tallies.enqueued
    await api.enqueue("t")
    await api.native.enqueue(queue="t")
    found = await scrape(api)
    assert found.values["queueti_enqueued_total", "t"] == 2


@pytest.mark.parametrize("settings", [{"doors": ()}], ids=["closed"])
async def test_nothing_is_counted_while_the_door_is_closed(api: Messages) -> None:
    await api.native.enqueue(queue="t")
    found = await scrape(api)
    assert not [name for name in found.families if name.startswith("queueti_")]
    assert not api.site.server.engine.tallies.listens
    assert not api.site.server.engine.tallies.enqueued


def test_topics_beyond_the_bound_are_counted_together() -> None:
    tallies = QueueTallies()
    tallies.listens = True
    for number in range(MOST_COUNTED + 5):
        tallies.count_replayed(f"t{number}", 1)
    tallies.count_replayed("t0", 1)
    assert len(tallies.replayed) == MOST_COUNTED + 1
    assert (tallies.replayed["*"], tallies.replayed["t0"]) == (5, 2)


async def scrape(api: Messages) -> Metrics:
    reply = await api.native.get("/metrics")
    assert reply.status == 200
    return Metrics(reply.body.decode())
