"""What workers of queue topics rely on, in the order of their contract."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from conformance.client import Client, Wire
from conformance.site import Site
from conformance.streams import PATIENCE_S, StreamEnded

from .frames import Frames
from .records import Doc, Records, refused, told


class Queue:
    """Requests about one queue topic."""

    def __init__(self, records: Records, name: str) -> None:
        self.records, self.name = records, name

    async def post(self, verb: str, **fields: Any) -> Doc:
        return told(await self.records.post(f"{self.name}/{verb}", fields))

    async def claim(self, most: int = 1, node: str = "w1", **fields: Any) -> list[Doc]:
        told = await self.post("claim", node=node, max=most, **fields)
        assert told["count"] == len(told["claimed"])
        claimed: list[Doc] = told["claimed"]
        return claimed

    async def settle(self, verb: str, *seqs: int, node: str = "w1", **fields: Any) -> Doc:
        return await self.post(verb, node=node, seqs=list(seqs), **fields)

    async def counts(self) -> Doc:
        counts: Doc = told(await self.records.get(f"/{self.name}"))["queue"]
        return counts


@pytest.fixture
async def log(site: Site, wire: Wire) -> AsyncIterator[Records]:
    async with Client(site, wire) as client:
        yield Records(client)


@pytest.fixture
async def queue(log: Records) -> Queue:
    made = await log.put("q", type="queue", durable=True)
    assert made["config"]["type"] == "queue"
    return Queue(log, "q")


async def test_records_are_claimed_in_order_and_gone_once_acknowledged(queue: Queue) -> None:
    sent = await queue.records.append("q", "a", "b", "c")
    assert sent["seqs"] == [1, 2, 3]
    first, second = await queue.claim(2, lease_ms=5_000)
    assert (first["$seq"], first["data"], first["deliveries"]) == (1, "a", 1)
    assert second["$seq"] == 2 and second["lease_id"].startswith("lease_")
    assert await queue.counts() == {"ready": 1, "in_flight": 2, "dead_lettered": 0}
    done = await queue.settle("ack", 1, 2, 2, 9)
    assert (done["acked"], done["skipped"]) == (2, [2, 9])
    assert (done["ready"], done["in_flight"]) == (1, 0)
    assert done["performance"]["fsync_ms"] > 0
    assert (await queue.settle("ack", 1))["skipped"] == [1], "a repeat changes nothing"
    assert await queue.records.seqs("q") == [3]


async def test_labels_and_meta_come_with_the_record(queue: Queue) -> None:
    record = {"data": None, "tag": "red", "node": "maker", "meta": {"big": 2**63}}
    told(await queue.records.post("q", {"records": [record]}))
    (claimed,) = await queue.claim()
    assert (claimed["$tag"], claimed["$node"], claimed["data"]) == ("red", "maker", None)
    assert claimed["meta"] == {"big": 2**63}
    assert claimed["deadline"] == pytest.approx(claimed["$ts"] + 30_000, abs=20_000)


async def test_a_nack_brings_a_record_back_before_those_never_delivered(queue: Queue) -> None:
    await queue.records.append("q", 1, 2)
    await queue.claim()
    told = await queue.settle("nack", 1)
    assert (told["nacked"], told["ready"], told["in_flight"]) == (1, 2, 0)
    (again,) = await queue.claim()
    assert (again["$seq"], again["deliveries"]) == (1, 2)
    await queue.settle("nack", 1, delay_ms=60_000)
    assert await queue.counts() == {"ready": 1, "in_flight": 0, "dead_lettered": 0}
    queue.records.site.clock.advance(60_001)
    assert [each["$seq"] for each in await queue.claim(9)] == [1, 2]


async def ticks(queue: Queue) -> float:
    text = (await queue.records.native.get("/metrics")).body.decode()
    return float(
        next(line for line in text.splitlines() if line.startswith("zq_ticks_total ")).split()[1]
    )


async def test_an_ack_ends_a_job_and_drops_its_number_in_one_tick(queue: Queue) -> None:
    await queue.records.append("q", 1, 2)
    await queue.claim(2)
    before = await ticks(queue)
    assert (await queue.settle("ack", 1))["acked"] == 1
    assert await ticks(queue) == before + 1
    assert await queue.records.seqs("q") == [2]


async def test_a_token_of_a_former_delivery_settles_nothing(queue: Queue) -> None:
    await queue.records.append("q", 1, 2)
    (old,) = await queue.claim()
    await queue.settle("nack", 1)
    new, other = await queue.claim(2)
    verbs: tuple[tuple[str, Doc], ...] = (
        ("ack", {}),
        ("nack", {}),
        ("extend", {"lease_ms": 1_000}),
    )
    for verb, more in verbs:
        told = await queue.settle(verb, 1, lease_ids=[old["lease_id"]], **more)
        assert told["skipped"] == [1], verb
    told = await queue.settle("ack", 1, 2, lease_ids=[new["lease_id"], None])
    assert told["acked"] == 2
    assert other["lease_id"] != new["lease_id"]


async def test_only_the_node_that_holds_a_record_settles_it(queue: Queue) -> None:
    await queue.records.append("q", 1)
    await queue.claim(node="w1")
    assert (await queue.settle("ack", 1, node="w2"))["skipped"] == [1]
    assert (await queue.settle("ack", 1, node="w1"))["acked"] == 1


async def test_a_record_comes_back_strictly_after_its_deadline(queue: Queue) -> None:
    await queue.records.append("q", 1)
    await queue.claim(lease_ms=1_000)
    told = await queue.settle("extend", 1, lease_ms=5_000)
    assert told["extended"] == 1 and told["deadlines"].keys() == {"1"}
    queue.records.site.clock.advance(4_900)
    assert await queue.claim(node="w2") == []
    queue.records.site.clock.advance(200)
    (again,) = await queue.claim(node="w2")
    assert again["deliveries"] == 2
    assert (await queue.settle("ack", 1, node="w1"))["skipped"] == [1]


async def test_a_record_delivered_too_often_goes_to_the_dead_letter_topic(queue: Queue) -> None:
    await queue.records.put("q", max_deliveries=2, dead_letter="lost")
    record = {"data": "poison", "tag": "red", "node": "maker", "meta": {"try": 1}}
    told(await queue.records.post("q", {"records": [record, {"data": "fine"}]}))
    for _ in range(2):
        await queue.claim()
        await queue.settle("nack", 1)
    (other,) = await queue.claim()
    assert other["data"] == "fine", "the claim goes on with the next record"
    assert await queue.counts() == {"ready": 0, "in_flight": 1, "dead_lettered": 1}
    (letter,) = (await queue.records.diff("lost", include_tags=True))["records"]
    assert (letter["data"], letter["$tag"], letter["$node"]) == ("poison", "red", "maker")
    stamps = {
        "$dead_letter_from": "q",
        "$dead_letter_deliveries": "2",
        "$dead_letter_src_seq": "1",
    }
    assert letter["meta"] == {"try": 1, **stamps}
    assert await queue.records.seqs("q") == [2]


async def test_a_record_stays_where_the_dead_letter_topic_is_full(queue: Queue) -> None:
    await queue.records.put("lost", cap_records=1, discard="reject")
    await queue.records.append("lost", "first")
    await queue.records.put("q", max_deliveries=1, dead_letter="lost")
    await queue.records.append("q", "poison")
    await queue.claim()
    await queue.settle("nack", 1)
    assert await queue.claim() == []
    assert (await queue.counts())["ready"] == 1
    await queue.records.delete("lost", before_seq=99)
    assert await queue.claim() == []
    assert [each["data"] for each in (await queue.records.diff("lost"))["records"]] == ["poison"]


async def test_a_queue_is_read_and_deleted_from_like_a_log(queue: Queue) -> None:
    records = [{"data": n, "tag": "even" if n % 2 == 0 else "odd"} for n in range(1, 7)]
    told(await queue.records.post("q", {"records": records}))
    await queue.claim()
    page = await queue.records.diff("q", limit=4)
    assert [each["$seq"] for each in page["records"]] == [1, 2, 3, 4]
    assert (page["next_from_seq"], page["lag"], page["caught_up"]) == (4, 2, False)
    gone = await queue.records.delete("q", match=["tag", "Eq", "even"])
    assert (gone["deleted"], gone["count"], gone["earliest_seq"]) == (3, 3, 1)
    gone = await queue.records.delete("q", before_seq=4)
    assert (gone["deleted"], gone["count"], gone["earliest_seq"]) == (2, 1, 5)
    assert (await queue.settle("ack", 1))["skipped"] == [1]


async def test_a_write_that_comes_again_brings_no_second_job(queue: Queue) -> None:
    first = await queue.records.append("q", 1, 2, idempotency_key="k")
    again = await queue.records.append("q", 1, 2, idempotency_key="k")
    assert (again["seqs"], again["deduped"]) == (first["seqs"], True)
    assert len(await queue.claim(9)) == 2


async def test_a_full_queue_refuses_the_whole_write(queue: Queue) -> None:
    await queue.records.put("q", cap_records=2)
    await queue.records.append("q", 1)
    reply = await queue.records.post("q", {"records": [{"data": 2}, {"data": 3}]})
    assert refused(reply) == (422, "topic_full")
    assert (await queue.records.append("q", 2))["seqs"] == [2]


async def test_a_record_is_a_job_and_a_job_is_a_record(queue: Queue) -> None:
    await queue.records.append("q", {"n": 1})
    native = queue.records.native
    (job,) = (await native.get("/jobs", queue="q")).doc["jobs"]
    assert job["payload"] == {"n": 1} and job["status"] == "ready"
    await native.post("/jobs", {"queue": "q", "type": "native", "payload": {"n": 2}})
    first, second = await queue.claim(9)
    assert (first["$seq"], second["$seq"], second["data"]) == (1, 2, {"n": 2})
    assert (await native.post(f"/jobs/{job['id']}/success", None)).status == 204
    assert (await queue.settle("ack", 1, 2))["acked"] == 1, "the first is done already"
    assert (await native.get("/jobs", queue="q")).doc["jobs"] == []


async def test_a_schema_of_the_queue_holds_for_what_is_appended(queue: Queue) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    put = await queue.records.native.call("PUT", "/queues/q/schema", {"schema": schema})
    assert put.status == 200
    records = [{"data": {"n": 1}}, {"data": {"n": "one"}}]
    assert refused(await queue.records.post("q", {"records": records}))[0] == 422
    assert (await queue.counts())["ready"] == 0
    await queue.records.append("q", {"n": 1})
    assert (await queue.counts())["ready"] == 1


async def test_a_queue_can_be_made_by_its_first_write_and_deleted_with_its_jobs(
    log: Records,
) -> None:
    body = {"records": [{"data": 1}], "config": {"type": "queue"}}
    assert (await log.post("new", body)).status == 201
    queue = Queue(log, "new")
    assert len(await queue.claim()) == 1
    target = "/v0/topics/new"
    reply = await log.native.send("DELETE", f"{target}?if_empty=true")
    assert refused(reply) == (409, "topic_not_empty")
    assert told(await log.native.send("DELETE", target))["deleted"] is True
    assert (await log.native.get("/jobs", queue="new")).doc["jobs"] == []
    assert refused(await log.post("new/claim", {"node": "w"})) == (404, "topic_not_found")


@pytest.mark.parametrize(
    ("verb", "body", "code"),
    [
        ("claim", {"node": ""}, "invalid_request"),
        ("ack", {"seqs": [1]}, "invalid_request"),
        ("ack", {"node": "w", "seqs": [1], "lease_ids": ["a", "b"]}, "invalid_request"),
        ("ack", {"node": "w", "seqs": [1] * 1_001}, "batch_too_large"),
        ("extend", {"node": "w", "seqs": [1]}, "invalid_request"),
    ],
    ids=["claim", "node", "alignment", "many", "lease"],
)
async def test_a_request_of_a_worker_that_makes_no_sense_is_refused(
    queue: Queue, verb: str, body: Doc, code: str
) -> None:
    assert refused(await queue.records.post(f"q/{verb}", body)) == (400, code)


async def test_nothing_to_settle_changes_nothing(queue: Queue) -> None:
    told = await queue.settle("ack")
    assert (told["acked"], told["skipped"]) == (0, [])
    assert await queue.claim(0) == []


async def test_leases_and_numbers_are_there_after_a_restart(queue: Queue, wire: Wire) -> None:
    await queue.records.append("q", 1, 2)
    (held,) = await queue.claim(lease_ms=600_000)
    await queue.records.site.restart()
    async with Client(queue.records.site, wire) as client:
        again = Queue(Records(client), "q")
        assert [each["$seq"] for each in await again.claim(9)] == [2]
        told = await again.settle("ack", 1, lease_ids=[held["lease_id"]])
        assert told["acked"] == 1
        assert (await again.records.append("q", 3))["seqs"] == [3]


async def test_claims_that_come_together_get_equal_shares(queue: Queue, wire: Wire) -> None:
    await queue.records.put("q", claim_jitter_ms=50)
    await queue.records.append("q", *range(20))
    clock = queue.records.site.clock
    async with AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(Client(queue.records.site, wire)) for _ in range(4)
        ]
        claims = [
            asyncio.create_task(Queue(Records(each), "q").claim(10, node=f"w{n}"))
            for n, each in enumerate(workers)
        ]
        async with asyncio.timeout(PATIENCE_S):
            while queue.records.site.server.services.queue_topics.in_cohort("q") < 4:
                await queue.counts()
        clock.advance(51)
        shares = await asyncio.gather(*claims)
    assert [len(share) for share in shares] == [5, 5, 5, 5]
    assert sorted(record["$seq"] for share in shares for record in share) == list(range(1, 21))


async def work(queue: Queue, **query: object) -> Frames:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return await Frames.open(queue.records.native, f"/v0/topics/{queue.name}/work?{text}")


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


async def test_a_stream_goes_by_what_is_set_for_its_topic_now(queue: Queue) -> None:
    stream = await work(queue, node="w1")
    assert await stream.frame() == {"retry": "2000"}
    await queue.records.put("q", max_deliveries=1, dead_letter="lost")
    await queue.records.append("q", "poison", "fine")
    await stream.expect("job", data="poison")
    await queue.settle("nack", 1)
    await stream.expect("job", data="fine")
    assert [each["data"] for each in (await queue.records.diff("lost"))["records"]] == ["poison"]


@pytest.mark.parametrize(("kind", "status"), [("log", 409), (None, 404)], ids=["log", "gone"])
async def test_a_stream_ends_with_an_error_if_its_topic_is_no_queue_any_more(
    queue: Queue, kind: str | None, status: int
) -> None:
    native = queue.records.native
    stream = await work(queue, node="w1")
    assert await stream.frame() == {"retry": "2000"}
    await native.send("DELETE", "/v0/topics/q")
    if kind is not None:
        await queue.records.put("q", type=kind)
    job = (await native.post("/jobs", {"queue": "q", "type": "t", "payload": 1})).doc
    await stream.expect("error", code=status)
    with pytest.raises(StreamEnded):
        await stream.event()
    assert (await native.get(f"/jobs/{job['id']}")).doc["status"] == "ready"
    if kind is not None:
        assert (await queue.records.get("/q")).doc["head_seq"] == 0


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
