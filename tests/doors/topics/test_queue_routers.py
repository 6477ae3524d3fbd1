"""What is copied from logs to queue topics, and from these to logs."""

from .queues import Queue, work
from .records import Records, refused, told


async def route(log: Records, source: str, dest: str) -> None:
    body = {"source": source, "dest": dest}
    told(await log.native.call("PUT", f"/v0/routers/{source}->{dest}", body), (201,))


async def test_what_is_appended_to_a_log_is_work_in_the_queue_behind_a_router(queue: Queue) -> None:
    log = queue.records
    await route(log, "l", "q")
    await log.append("l", "a", "b")
    first, second = await queue.claim(2)
    assert [(each["$seq"], each["data"]) for each in (first, second)] == [(1, "a"), (2, "b")]
    assert await log.seqs("l") == [1, 2], "the log keeps its records"
    assert (await queue.settle("ack", 1, 2))["acked"] == 2
    router = told(await log.native.get("/v0/routers/l->q"))
    assert router["forwarded_total"] == 2


async def test_what_is_appended_to_a_queue_is_copied_to_a_log_and_on(queue: Queue) -> None:
    log = queue.records
    await log.put("next", type="queue")
    await route(log, "q", "l")
    await route(log, "l", "next")
    sent = await log.append("q", "a", "b")
    assert sent["seqs"] == [1, 2]
    assert await log.seqs("l") == [1, 2]
    assert [each["data"] for each in await queue.claim(9)] == ["a", "b"]
    assert [each["data"] for each in await Queue(log, "next").claim(9)] == ["a", "b"]


async def test_a_stream_that_waits_gets_the_copy(queue: Queue) -> None:
    await route(queue.records, "l", "q")
    stream = await work(queue, node="w1")
    assert await stream.frame() == {"retry": "2000"}
    await queue.records.append("l", "a")
    await stream.expect("job", topic="q", data="a")


async def test_a_queue_whose_schema_a_record_does_not_match_refuses_the_write_to_the_log(
    queue: Queue,
) -> None:
    log = queue.records
    await route(log, "l", "q")
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    assert (await log.native.call("PUT", "/queues/q/schema", {"schema": schema})).status == 200
    reply = await log.post("l", {"records": [{"data": {"n": 1}}, {"data": {"n": "one"}}]})
    assert refused(reply) == (422, "schema_mismatch")
    assert await log.seqs("l") == []
    await log.append("l", {"n": 1})
    assert [each["data"] for each in await queue.claim(9)] == [{"n": 1}]


async def test_a_queue_without_room_refuses_the_write_to_the_log(queue: Queue) -> None:
    log = queue.records
    await log.put("small", type="queue", cap_records=1, discard="reject")
    for dest in ("q", "small", "other"):
        await route(log, "l", dest)
    await log.append("l", "a")
    reply = await log.post("l", {"records": [{"data": "b"}]})
    assert refused(reply) == (422, "topic_full")
    native = await log.native.call("PUT", "/queues/small/settings", {"max_depth": 1})
    assert native.status == 200
    await log.put("small", cap_records=0)
    assert (await log.post("l", {"records": [{"data": "b"}]})).status == 429
    assert await log.seqs("l") == await log.seqs("other") == [1]
    assert (await queue.counts())["ready"] == 1
