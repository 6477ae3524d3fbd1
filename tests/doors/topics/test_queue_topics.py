"""What workers of queue topics rely on, in the order of their contract."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from conformance.client import Client, Wire
from conformance.streams import PATIENCE_S, pause

from zq.doors.topics.model_jobs import Labels
from zq.doors.topics.service_queues import QueueTopics
from zq.doors.topics.store import TopicReads
from zq.engine.inbox import Inbox
from zq.model.commands import DeleteSlice

from .queues import Queue
from .records import Doc, Records, refused, told


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


async def are_ready(queue: Queue, count: int) -> None:
    """Return once a tick has made so many records ready."""
    async with asyncio.timeout(PATIENCE_S):
        while (await queue.counts())["ready"] < count:
            await pause()


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


async def test_a_record_is_dead_where_it_is_if_the_dead_letter_topic_does_not_take_it(
    queue: Queue,
) -> None:
    await queue.records.put("lost", type="queue")
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    native = queue.records.native
    assert (await native.call("PUT", "/queues/lost/schema", {"schema": schema})).status == 200
    await queue.records.put("q", max_deliveries=1, dead_letter="lost")
    await queue.records.append("q", {"n": 1}, "poison", {"n": 2}, "fine")
    await queue.claim(3)
    await queue.settle("nack", 1, 2, 3)
    (other,) = await queue.claim()
    assert other["data"] == "fine"
    assert await queue.counts() == {"ready": 0, "in_flight": 1, "dead_lettered": 2}
    assert await native.count(queue="lost", status="ready") == 2
    (dead,) = await native.jobs(queue="q", status="dead")
    assert (dead["payload"], dead["reason"]) == ("poison", "exhausted")


@pytest.mark.parametrize(
    "refuses",
    [{"cap_records": 1, "discard": "reject"}, {"cap_bytes": 8}],
    ids=["full", "small"],
)
async def test_a_record_stays_where_the_dead_letter_topic_refuses_it(
    queue: Queue, refuses: Doc, caplog: pytest.LogCaptureFixture
) -> None:
    await queue.records.put("lost", **refuses)
    await queue.records.append("lost", "first")
    await queue.records.put("q", max_deliveries=1, dead_letter="lost")
    await queue.records.append("q", "poison", "fine")
    await queue.claim()
    await queue.settle("nack", 1)
    (other,) = await queue.claim()
    assert other["data"] == "fine", "it holds nobody up"
    await queue.settle("ack", 2)
    clock = queue.records.site.clock
    for rest_s in (1, 2, 4, 8, 16, 32, 60, 60):
        clock.advance(rest_s * 1_000 - 1)
        assert await queue.claim() == []
        assert (await queue.counts())["ready"] == 0
        clock.advance(1)
        await are_ready(queue, 1)
        assert await queue.claim() == []
    lines = [each for each in caplog.records if each.message == "dead letters refused"]
    assert len(lines) == 4, "at most one a minute"
    fields: Doc = vars(lines[0])["fields"]
    assert (fields["topic"], fields["dead_letter"]) == ("q", "lost")
    assert "'lost' cannot take this write" in fields["error"]
    await queue.records.put("lost", cap_records=0, cap_bytes=0)
    clock.advance(60_000)
    assert await queue.claim() == []
    letters = (await queue.records.diff("lost"))["records"]
    assert [each["data"] for each in letters] == ["first", "poison"]
    assert (await queue.counts())["dead_lettered"] == 1


async def claim_while(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[object]]
) -> list[Doc]:
    """Claim three records. Something happens once the claim has them, and looks at them."""
    labels = TopicReads.labels

    async def meanwhile(*args: Any) -> dict[int, Labels]:
        found = await labels(*args)
        with monkeypatch.context() as patch:
            patch.setattr(TopicReads, "labels", labels)
            await happens()
        return found

    monkeypatch.setattr(TopicReads, "labels", meanwhile)
    return await queue.claim(3)


@pytest.fixture
async def worn(queue: Queue) -> Queue:
    """A queue with three records that were delivered as often as they may be."""
    await queue.records.put("q", max_deliveries=1, dead_letter="lost")
    await queue.records.append("q", "a", "b", "c")
    await queue.claim(3)
    await queue.settle("nack", 1, 2, 3)
    return queue


async def test_worn_records_go_although_one_of_them_is_deleted_meanwhile(
    worn: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = partial(worn.records.delete, "q", before_seq=2)
    assert await claim_while(worn, monkeypatch, delete) == []
    letters = (await worn.records.diff("lost"))["records"]
    assert [each["data"] for each in letters] == ["b", "c"]
    assert await worn.counts() == {"ready": 0, "in_flight": 0, "dead_lettered": 2}


async def test_a_worn_record_that_somebody_else_holds_by_now_stays_with_them(
    worn: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    native = worn.records.native

    async def take_it() -> None:
        await worn.settle("nack", 2)
        await native.post("/queues/q/claim", {"holder": "w2", "lease_ms": 600_000})

    assert await claim_while(worn, monkeypatch, take_it) == []
    letters = (await worn.records.diff("lost"))["records"]
    assert [each["data"] for each in letters] == ["a", "c"]
    assert (await worn.settle("ack", 2, node="w2"))["acked"] == 1


async def test_a_claim_whose_leases_end_too_soon_ends(
    worn: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would get the same records again and again."""
    labels = TopicReads.labels

    async def slow(*args: Any) -> dict[int, Labels]:
        found = await labels(*args)
        worn.records.site.clock.advance(30_001)
        await are_ready(worn, 3)
        return found

    monkeypatch.setattr(TopicReads, "labels", slow)
    assert await worn.claim(3) == []
    assert await worn.counts() == {"ready": 3, "in_flight": 0, "dead_lettered": 0}


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


async def test_a_deletion_of_jobs_ends_with_their_topic(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RACE: the topic is deleted and made anew between two slices."""
    await queue.records.append("q", *range(1_500))
    ask = Inbox.ask

    async def made_anew_behind(inbox: Inbox, command: Any) -> Any:
        reply = await ask(inbox, command)
        if isinstance(command, DeleteSlice):
            with monkeypatch.context() as patch:
                patch.setattr(Inbox, "ask", ask)
                told(await queue.records.native.send("DELETE", "/v0/topics/q"))
                await queue.records.append("q", "new", config={"type": "queue"})
        return reply

    monkeypatch.setattr(Inbox, "ask", made_anew_behind)
    assert (await queue.records.delete("q", before_seq=1_400))["deleted"] == 1_000
    (claimed,) = await queue.claim()
    assert (claimed["$seq"], claimed["data"]) == (1, "new")


async def test_a_write_that_comes_again_brings_no_second_job(queue: Queue) -> None:
    first = await queue.records.append("q", 1, 2, idempotency_key="k")
    again = await queue.records.append("q", 1, 2, idempotency_key="k")
    assert (again["seqs"], again["deduped"]) == (first["seqs"], True)
    assert len(await queue.claim(9)) == 2


async def test_a_full_queue_refuses_the_whole_write(queue: Queue) -> None:
    await queue.records.put("q", cap_records=2, discard="reject")
    await queue.records.append("q", 1)
    reply = await queue.records.post("q", {"records": [{"data": 2}, {"data": 3}]})
    assert refused(reply) == (422, "topic_full")
    assert (await queue.records.append("q", 2))["seqs"] == [2]


async def test_a_full_queue_lets_its_oldest_waiting_records_go_if_it_discards_old_ones(
    queue: Queue,
) -> None:
    log = queue.records
    await log.put("q", cap_records=3)
    await log.append("q", *range(1, 4))
    await queue.claim()
    assert (await log.append("q", 4, 5))["seqs"] == [4, 5]
    page = await log.diff("q", 1)
    assert [each["$seq"] for each in page["records"]] == [4, 5]
    lost = page["tombstone"]
    assert (lost["gap_from"], lost["gap_to"], lost["reason"]) == (2, 3, "cap")
    assert (await log.diff("q", 3))["tombstone"] is None
    assert (await queue.settle("ack", 1))["acked"] == 1, "what a worker holds stays"
    assert (await log.append("q", *range(6, 12)))["head_seq"] == 11
    state = (await log.get("/q")).doc
    assert (state["count"], state["earliest_seq"]) == (3, 9), "a large write keeps its last records"
    text = (await log.native.get("/metrics")).body.decode()
    assert "zq_expired_total 7" in text


async def test_readers_are_told_of_records_that_nobody_took_in_time(queue: Queue) -> None:
    log = queue.records
    await log.put("q", ttl_ms=1_000)
    await log.append("q", "held")
    await queue.claim()
    await log.append("q", 2, 3)
    assert (await log.diff("q", 1))["tombstone"] is None
    log.site.clock.advance(1_001)
    await log.append("q", 4)
    page = await log.diff("q", 1)
    assert [each["$seq"] for each in page["records"]] == [4]
    lost = page["tombstone"]
    assert (lost["gap_from"], lost["gap_to"], lost["reason"]) == (2, 3, "ttl")
    assert (await log.diff("q", 3))["tombstone"] is None
    assert [each["$seq"] for each in (await log.diff("q"))["records"]] == [1, 4]
    await log.delete("q", before_seq=5)
    assert (await log.diff("q", 3))["tombstone"] is None, "a deletion is silent"


async def test_a_full_queue_whose_records_are_held_refuses_a_write(queue: Queue) -> None:
    await queue.records.put("q", cap_records=2)
    await queue.records.append("q", 1, 2)
    await queue.claim(2)
    reply = await queue.records.post("q", {"records": [{"data": 3}]})
    assert refused(reply) == (422, "topic_full")
    await queue.settle("ack", 1)
    assert (await queue.records.append("q", 3))["seqs"] == [3]


async def test_a_lowered_cap_lets_old_records_go_at_the_next_write(queue: Queue) -> None:
    await queue.records.append("q", *range(9))
    await queue.records.put("q", cap_records=2)
    assert (await queue.counts())["ready"] == 9
    await queue.records.append("q", "last")
    assert await queue.records.seqs("q") == [9, 10]


async def test_a_cursor_and_numbers_beyond_the_head_are_those_of_another_topic(
    queue: Queue,
) -> None:
    await queue.records.append("q", 1, 2)
    await queue.claim()
    page = await queue.records.diff("q", 1 << 41 | 2)
    assert [each["$seq"] for each in page["records"]] == [1, 2]
    assert (page["tombstone"]["reason"], page["lag"]) == ("recreated", 0)
    wild = [1 << 41 | 1, 1 << 62, -1, 0]
    assert (await queue.settle("ack", *wild))["skipped"] == wild


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


@pytest.mark.parametrize("settings", [{"max_payload": 10}])
async def test_a_record_is_no_larger_than_payloads_may_be(queue: Queue) -> None:
    log, large = queue.records, {"records": [{"data": 1}, {"data": "x" * 9}]}
    await log.append("l", "x" * 9)
    router = {"source": "l", "dest": "q"}
    told(await log.native.call("PUT", "/v0/routers/r", router), (201,))
    first = {**large, "config": {"type": "queue"}}
    for topic, body in (("q", large), ("l", large), ("new", first)):
        reply = await log.post(topic, body)
        assert refused(reply) == (413, "payload_too_large"), topic
        assert "11 bytes" in reply.doc["error"]["message"]
    assert refused(await log.get("/new")) == (404, "topic_not_found")
    assert (await queue.counts())["ready"] == 0
    assert await log.seqs("l") == [1]
    await log.append("q", "x" * 8)
    assert len(await queue.claim(9)) == 1


async def test_a_queue_can_be_made_by_its_first_write_and_deleted_with_its_jobs(
    queue: Queue,
) -> None:
    log = queue.records
    body = {"records": [{"data": 1}], "config": {"type": "queue"}}
    assert (await log.post("new", body)).status == 201
    assert len(await Queue(log, "new").claim()) == 1
    target = "/v0/topics/new"
    reply = await log.native.send("DELETE", f"{target}?if_empty=true")
    assert refused(reply) == (409, "topic_not_empty")
    assert told(await log.native.send("DELETE", target))["deleted"] is True
    assert (await log.native.get("/jobs", queue="new")).doc["jobs"] == []
    assert refused(await log.post("new/claim", {"node": "w"})) == (404, "topic_not_found")


async def test_a_topic_goes_whatever_it_becomes_meanwhile(queue: Queue, wire: Wire) -> None:
    """RACE: others delete it too, and make it a log, a queue, and so on."""
    async with Client(queue.records.site, wire) as client:

        async def delete() -> None:
            told(await queue.records.native.send("DELETE", "/v0/topics/q"))

        async def make(kind: str) -> None:
            reply = await client.call("PUT", "/v0/topics/q", {"type": kind})
            assert reply.status in (200, 201, 409)

        for turn in range(20):
            later = [make("log") for _ in range(turn % 10)]
            await asyncio.gather(make("queue"), delete(), delete(), *later)
            await asyncio.gather(delete(), make("queue"))


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


async def test_a_record_that_was_held_at_a_crash_can_be_claimed_at_once(
    queue: Queue, wire: Wire
) -> None:
    """Its number and its deliveries stay, and so does what was acknowledged."""
    native = queue.records.native
    await queue.records.append("q", 1, 2, 3)
    old, _ = await queue.claim(2, lease_ms=600_000)
    await queue.settle("ack", 2)
    await queue.records.put("log")
    await native.post("/jobs", {"queue": "log", "type": "t", "payload": 1})
    await native.post("/queues/log/claim", {"holder": "w1", "lease_ms": 600_000})
    await queue.records.site.crash()
    async with Client(queue.records.site, wire) as client:
        again = Queue(Records(client), "q")
        assert await again.counts() == {"ready": 2, "in_flight": 0, "dead_lettered": 0}
        first, second = await again.claim(9)
        assert (first["$seq"], first["deliveries"], second["$seq"]) == (1, 2, 3)
        told = await again.settle("ack", 1, lease_ids=[old["lease_id"]])
        assert told["skipped"] == [1]
        (other,) = (await client.get("/jobs", queue="log")).doc["jobs"]
        assert other["status"] == "in_flight", "a log of the same name says nothing of a queue"


async def test_durable_leases_and_numbers_are_there_after_a_restart(
    queue: Queue, wire: Wire
) -> None:
    await queue.records.put("q", leases_durable=True)
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
            while queue.records.site.server.services[QueueTopics].in_cohort("q") < 4:
                await pause()
        clock.advance(51)
        shares = await asyncio.gather(*claims)
    assert [len(share) for share in shares] == [5, 5, 5, 5]
    assert sorted(record["$seq"] for share in shares for record in share) == list(range(1, 21))
