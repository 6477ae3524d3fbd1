"""What workers rely on that keep a stream of a queue topic open."""

import pytest
from conformance.client import Client, Wire
from conformance.streams import StreamEnded

from .queues import Queue, work
from .records import Records, refused


async def test_a_stream_sends_as_many_records_as_may_be_open(queue: Queue) -> None:
    await queue.records.append("q", "a", "b", "c")
    stream = await work(queue, node="w1", max=2)
    assert await stream.frame() == {"retry": "2000"}
    assert "hb" in (await stream.frame() or {})[""]
    for seq, data in ((1, "a"), (2, "b")):
        record, id = await stream.expect("job", topic="q", data=data, deliveries=1)
        assert (record["$seq"], id) == (seq, str(seq))
    assert (await queue.counts())["in_flight"] == 2
    await queue.settle("ack", 1)
    await stream.expect("job", data="c")
    await queue.settle("nack", 2, delay_ms=60_000)
    await queue.records.append("q", "d")
    await stream.expect("job", data="d")


async def test_a_stream_that_ends_gives_back_what_came_over_it_and_nothing_else(
    queue: Queue, wire: Wire
) -> None:
    await queue.records.append("q", 1, 2)
    await queue.claim(node="w1")
    async with Client(queue.records.site, wire) as other:
        stream = await work(Queue(Records(other), "q"), node="w1")
        await stream.expect("job", data=2)
    async with Client(queue.records.site, wire) as third:
        stream = await work(Queue(Records(third), "q"), node="w2")
        record, _ = await stream.expect("job", data=2)
        assert record["deliveries"] == 2
        assert (await queue.counts())["in_flight"] == 2


async def test_a_stream_of_a_log_or_of_nobody_is_refused(queue: Queue) -> None:
    await queue.records.append("t", 1)
    native = queue.records.native
    accept = {"accept": "text/event-stream"}
    cases = {
        "q/work": (400, "invalid_request"),
        "t/work?node=w": (409, "not_a_queue"),
        "none/work?node=w": (404, "topic_not_found"),
    }
    for target, refusal in cases.items():
        reply = await native.send("GET", f"/v0/topics/{target}", headers=accept)
        assert refused(reply) == refusal
    accept = {"accept": "application/json"}
    reply = await native.send("GET", "/v0/topics/q/work?node=w", headers=accept)
    assert refused(reply) == (406, "not_acceptable")
    assert "text/event-stream" in reply.doc["error"]["message"]


async def test_what_a_stream_asks_for_is_brought_within_its_bounds(queue: Queue) -> None:
    """So it is for claims. What the door does not know is passed over."""
    await queue.records.append("q", "a", "b")
    now = queue.records.site.clock.now_ms()
    stream = await work(queue, node="w1", max=0, lease_ms=10**12, shade="blue")
    record, _ = await stream.expect("job", data="a")
    assert record["deadline"] == now + 86_400_000
    assert (await queue.counts())["in_flight"] == 1


async def test_a_stream_goes_by_what_is_set_for_its_topic_now(queue: Queue) -> None:
    stream = await work(queue, node="w1")
    assert await stream.frame() == {"retry": "2000"}
    await queue.records.put("q", max_deliveries=1, dead_letter="lost")
    await queue.records.append("q", "poison", "fine")
    await stream.expect("job", data="poison")
    await queue.settle("nack", 1)
    await stream.expect("job", data="fine")
    assert [each["data"] for each in (await queue.records.diff("lost"))["records"]] == ["poison"]


async def test_a_record_that_its_dead_letter_topic_refuses_holds_no_stream_up(
    queue: Queue,
) -> None:
    records = queue.records
    await records.put("lost", cap_records=1, discard="reject")
    await records.append("lost", "first")
    await records.put("q", max_deliveries=1, dead_letter="lost")
    await records.append("q", "poison", "fine")
    await queue.claim()
    await queue.settle("nack", 1)
    stream = await work(queue, node="w1")
    await stream.expect("job", data="fine")
    await queue.settle("ack", 2)
    (resting,) = await records.native.jobs(queue="q")
    assert resting["status"] == "scheduled"
    await records.delete("lost", before_seq=2)
    records.site.clock.advance(1_000)
    (letter,) = (await records.diff("lost", 1, wait_ms=30_000))["records"]
    assert letter["data"] == "poison"


@pytest.mark.parametrize("by", ["/v0/topics/q", "/reset"])
@pytest.mark.parametrize("held", [True, False], ids=["held", "waiting"])
async def test_a_stream_hears_at_once_that_its_topic_is_deleted(
    queue: Queue, by: str, held: bool
) -> None:
    """No job comes and no heartbeat is due: the clock stands still."""
    stream = await work(queue, node="w1")
    assert await stream.frame() == {"retry": "2000"}
    if held:
        await queue.records.append("q", "a")
        await stream.expect("job", data="a")
    native = queue.records.native
    reply = await native.send("POST" if by == "/reset" else "DELETE", by)
    assert reply.status in (200, 204)
    await stream.expect("error", code=404)
    with pytest.raises(StreamEnded):
        await stream.event()


@pytest.mark.parametrize("kind", ["log", None])
async def test_a_stream_ends_with_an_error_if_its_topic_is_no_queue_any_more(
    queue: Queue, kind: str | None
) -> None:
    """It looks at once: as a rule, before there is another topic of that name."""
    native = queue.records.native
    stream = await work(queue, node="w1")
    assert await stream.frame() == {"retry": "2000"}
    await native.send("DELETE", "/v0/topics/q")
    if kind is not None:
        await queue.records.put("q", type=kind)
    job = (await native.post("/jobs", {"queue": "q", "type": "t", "payload": 1})).doc
    error, _ = await stream.expect("error")
    assert error["code"] in ({404} if kind is None else {404, 409})
    with pytest.raises(StreamEnded):
        await stream.event()
    assert (await native.get(f"/jobs/{job['id']}")).doc["status"] == "ready"
    if kind is not None:
        assert (await queue.records.get("/q")).doc["head_seq"] == 0
