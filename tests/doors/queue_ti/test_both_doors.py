"""A message is a job: what one door does to it the other one shows."""

from zq.doors.queue_ti.http.documents import UuidIds
from zq.model.ids import IdCodec

from .messages import Messages


async def test_a_message_is_a_job_of_its_queue(api: Messages) -> None:
    id = await api.enqueue("t", "hi", key="k", metadata={"a": "b"})
    (job,) = await api.native.jobs(queue="t")
    assert (job["type"], job["payload"], job["meta"]) == ("queue-ti", "hi", {"a": "b"})
    assert (job["unique_key"], job["unique_in"]) == ("k", "queue")
    assert (await api.native.get("/jobs/by-key", key="k", queue="t")).doc["id"] == job["id"]
    assert (await api.native.get("/jobs/by-key", key="k")).status == 404
    await api.fail("t", 3)
    dead = await api.native.job(job["id"])
    assert (dead["queue"], dead["origin"], dead["reason"]) == ("t.dlq", "t", "exhausted")
    reply = await api.native.send("POST", f"/jobs/{job['id']}/retry?home=true")
    assert reply.status == 200 and reply.doc["queue"] == "t"
    assert (await api.one("t"))["id"] == id
    assert (await api.native.send("POST", f"/jobs/{job['id']}/cancel")).status == 200
    assert await api.list("t") == []


async def test_a_native_job_is_a_message_with_its_payload_as_text(api: Messages) -> None:
    await api.native.enqueue(queue="t", payload={"n": 1}, meta={"a": 1, "b": "c"}, retry_limit=1)
    listed = await api.one("t")
    assert (listed["payload"], listed["metadata"]) == ('{"n":1}', {"a": "1", "b": "c"})
    assert listed["max_retries"] == 2
    await api.fail("t")
    assert (await api.one("t"))["retry_count"] == 1, "its own limit counts, and no back-off"
    (taken,) = await api.dequeue("t")
    assert await api.ack(taken["id"]) == 204
    assert await api.native.jobs(queue="t") == []


async def test_a_native_job_whose_time_is_never_over_is_listed(api: Messages) -> None:
    await api.native.enqueue(queue="t", ttl_ms=2**63 - 1)
    assert (await api.one("t"))["expires_at"] == "9999-12-31T23:59:59Z"


async def test_what_a_native_worker_holds_is_acknowledged_here(api: Messages) -> None:
    id = await api.enqueue("t")
    stream = await api.native.take(queue="t")
    job = await stream.job()
    assert job["payload"] == "x"
    assert (await api.one("t"))["status"] == "processing"
    assert await api.ack(id) == 204
    reply = await api.native.post(f"/jobs/{job['id']}/success", {})
    assert reply.status == 404


async def test_settings_of_a_queue_are_overrides_of_its_topic(api: Messages) -> None:
    await api.native.call("PUT", "/queues/t/settings", {"max_depth": 3, "rate": 2})
    assert (await api.get("/topic-configs")).doc["items"] == [
        {"topic": "t", "replayable": False, "max_depth": 3, "throughput_limit": 2}
    ]
    await api.configure("t", max_retries=4)
    assert (await api.native.get("/queues/settings")).doc == {
        "queues": {"t": {"retry_limit": 3, "dead_letter_after": 4}}
    }


async def test_the_lease_of_a_queue_is_the_time_out_of_its_topic(api: Messages) -> None:
    await api.native.call("PUT", "/queues/t/settings", {"lease_ms": 5_000})
    await api.enqueue("t")
    await api.dequeue("t")
    api.site.clock.advance(5_001)
    assert len(await api.dequeue("t")) == 1


def test_ids_are_uuids_there_and_back_and_of_one_database() -> None:
    ids, others = UuidIds(IdCodec("0123456789AB")), UuidIds(IdCodec("1123456789AB"))
    for key in (1, 2**20, 180526199603200016, 2**62):
        assert ids.key(ids.text(key)) == key
        assert ids.key(ids.text(key).upper()) == key
        assert ids.text(key)[14] == "7"
    assert others.key(ids.text(2**40)) is None
