"""What clients of topics rely on, in the order of their contract, with decisions beside them."""

import asyncio
from typing import Any

import pytest
from conformance.client import Client, Wire
from conformance.site import Site
from store.rig import KIND

from zq.doors.topics.commands import DeleteRecords, DeleteTopic, PutTopic
from zq.doors.topics.model import MOST_NODES, NO_PATCH
from zq.doors.topics.store import MOST_EXAMINED
from zq.engine.inbox import Inbox

from .records import Records, refused, told

DEFAULTS = {
    "type": "log",
    "ttl_ms": 0,
    "cap_records": 0,
    "cap_bytes": 0,
    "discard": "old",
    "durable": False,
    "durability": "disk",
    "priority": None,
    "auto_priority": True,
    "auto_create": True,
    "idempotency_window_ms": 120_000,
    "dedupe_node": True,
    "lease_ms": 30_000,
    "claim_jitter_ms": 0,
    "max_deliveries": 0,
    "dead_letter": None,
    "leases_durable": False,
}


@pytest.fixture
async def log(site: Site, wire: Wire) -> Any:
    async with Client(site, wire) as client:
        yield Records(client)


async def test_a_topic_is_created_once_and_echoes_all_of_its_config(log: Records) -> None:
    first = await log.native.call("PUT", "/v0/topics/t", {"durable": True})
    assert first.status == 201
    made = told(first, (201,))
    assert (made["topic"], made["created"]) == ("t", True)
    assert made["config"] == DEFAULTS | {"durable": True, "durability": "fsync"}
    again = await log.native.call("PUT", "/v0/topics/t", {"durable": True})
    assert again.status == 200
    assert told(again)["created"] is False and told(again)["config"] == made["config"]
    assert (await log.put("other"))["config"] == DEFAULTS


async def test_what_is_left_out_of_a_second_config_stays_as_it_was(log: Records) -> None:
    await log.put("t", ttl_ms=5, priority=5_000, lease_ms=1)
    config = (await log.put("t", cap_records=7, durability="memory"))["config"]
    assert (config["ttl_ms"], config["cap_records"]) == (5, 7)
    assert (config["priority"], config["lease_ms"]) == (1_000, 100), "clamped"
    assert (config["durability"], config["durable"]) == ("memory", False)


async def test_the_type_of_a_topic_never_changes(log: Records) -> None:
    await log.append("t", 1)
    reply = await log.native.call("PUT", "/v0/topics/t", {"type": "queue"})
    assert refused(reply) == (409, "topic_exists_incompatible")
    assert await log.seqs("t") == [1]


async def test_what_is_for_queues_is_refused_of_a_log(log: Records) -> None:
    await log.append("t", 1)
    for verb in ("claim", "ack", "nack", "extend"):
        reply = await log.post(f"t/{verb}", {"node": "w", "seqs": [1], "lease_ms": 1_000})
        assert refused(reply) == (409, "not_a_queue")
        reply = await log.post(f"none/{verb}", {"node": "w", "lease_ms": 1_000})
        assert refused(reply) == (404, "topic_not_found")


async def test_records_get_numbers_that_follow_each_other(log: Records) -> None:
    await log.put("t", durable=True)
    sent = {"records": [{"data": {"a": 1}, "tag": "x"}, {"data": None, "meta": {"k": "v"}}]}
    done = told(await log.post("t", sent))
    # PostgreSQL flushes within its commit.
    assert done["performance"].pop("fsync_ms") > 0 or KIND == "postgres"
    del done["performance"]
    assert done == {
        "topic": "t",
        "first_seq": 1,
        "last_seq": 2,
        "seqs": [1, 2],
        "head_seq": 2,
        "count": 2,
        "created": False,
        "deduped": False,
    }
    third = await log.append("t", "c")
    assert (third["seqs"], third["count"], third["head_seq"]) == ([3], 1, 3)
    reply = told(await log.post("t?return_seqs=false", {"records": [{"data": 1}]}))
    assert "seqs" not in reply and reply["first_seq"] == 4


async def test_writes_of_one_moment_get_numbers_without_a_gap(log: Records) -> None:
    """RACE: many writers of one topic."""
    done = await asyncio.gather(*(log.append("t", n, n) for n in range(20)))
    assert sorted(seq for each in done for seq in each["seqs"]) == list(range(1, 41))
    assert all(each["seqs"][1] == each["seqs"][0] + 1 for each in done)
    assert sum(each["created"] for each in done) == 1
    found = await log.diff("t")
    data = [record["data"] for record in found["records"]]
    assert data[0::2] == data[1::2], "a write stands together"


async def test_a_write_creates_its_topic_unless_it_says_otherwise(log: Records) -> None:
    reply = await log.post("t", {"records": [{"data": 1}], "create": False})
    assert refused(reply) == (404, "topic_not_found")
    assert reply.doc["error"]["detail"] == {"topic": "t"}
    reply = await log.post("t", {"records": [{"data": 1}], "config": {"cap_records": 5}})
    assert reply.status == 201 and reply.doc["created"] is True
    await log.append("t", 2, config={"cap_records": 1})
    assert (await log.get("/t")).doc["config"]["cap_records"] == 5


async def test_a_write_that_comes_again_is_the_one_of_before(log: Records) -> None:
    first = await log.post("t", {"records": [{"data": 1}, {"data": 2}], "idempotency_key": "k"})
    assert (first.status, first.doc["deduped"]) == (201, False)
    again = await log.post("t", {"records": [{"data": 1}, {"data": 2}], "idempotency_key": "k"})
    assert (again.status, again.doc["created"], again.doc["deduped"]) == (200, False, True)
    assert (again.doc["seqs"], again.doc["head_seq"]) == ([1, 2], 2)
    assert (await log.append("other", 1, idempotency_key="k"))["deduped"] is False
    log.site.clock.advance(120_000)
    assert (await log.append("t", 3, idempotency_key="k"))["seqs"] == [3]


async def test_two_writes_of_one_key_at_the_same_moment_are_one(log: Records) -> None:
    """RACE: a client that sends again before the answer comes."""
    done = await asyncio.gather(*(log.append("t", 1, idempotency_key="k") for _ in range(10)))
    assert [each["seqs"] for each in done] == [[1]] * 10
    assert sum(not each["deduped"] for each in done) == 1


async def test_a_reader_goes_on_behind_its_cursor(log: Records) -> None:
    sent = {"records": [{"data": 1, "tag": "x", "meta": {"k": 1}}, {"data": None, "node": "n"}]}
    await log.post("t", sent)
    found = await log.diff("t", limit=50)
    first, second = found.pop("records")
    at = first.pop("$ts")
    assert at == log.site.clock.now_ms()
    assert first == {"$seq": 1, "data": 1, "meta": {"k": 1}}
    assert second == {"$seq": 2, "$ts": at, "data": None, "$node": "n"}
    del found["performance"]
    assert found == {
        "topic": "t",
        "next_from_seq": 2,
        "head_seq": 2,
        "earliest_seq": 1,
        "caught_up": True,
        "tombstone": None,
        "lag": 0,
    }
    part = await log.diff("t", limit=1, include_tags=True, include_meta=False)
    assert part["records"] == [{"$seq": 1, "$ts": at, "data": 1, "$tag": "x"}]
    assert (part["next_from_seq"], part["caught_up"], part["lag"]) == (1, False, 1)
    end = await log.diff("t", 2)
    assert (end["records"], end["next_from_seq"], end["caught_up"]) == ([], 2, True)


async def test_a_page_has_no_more_records_or_bytes_than_are_allowed(log: Records) -> None:
    await log.append("t", *range(1_200))
    assert len(await log.seqs("t")) == 256
    assert len(await log.seqs("t", limit=99_999)) == 1_000
    await log.append("big", *["x" * 400_000] * 4)
    found = await log.diff("big")
    assert len(found["records"]) == 3 and found["next_from_seq"] == 3
    assert len(await log.seqs("big", max_bytes=1)) == 1, "one at least"


async def test_a_reader_passes_over_what_its_node_has_written(log: Records) -> None:
    await log.append("t", "mine", node="a")
    await log.append("t", "other", node="b")
    await log.append("t", "last", node="a")
    found = await log.diff("t", node="a")
    assert [record["$node"] for record in found["records"]] == ["b"]
    assert (found["next_from_seq"], found["caught_up"]) == (3, True)
    assert await log.seqs("t", node=["a", "b"]) == []
    await log.put("t", dedupe_node=False)
    assert await log.seqs("t", node="a") == [1, 2, 3]


async def test_a_patient_reader_is_woken_by_a_record_that_it_may_have(log: Records) -> None:
    """RACE: a record that is passed over comes first."""
    await log.append("t", 1)
    waiting = asyncio.create_task(log.diff("t", 1, wait_ms=999_999, node="a"))
    await log.append("t", 2, node="a")
    await log.append("t", 3)
    found = await waiting
    assert [record["$seq"] for record in found["records"]] == [3]
    assert found["caught_up"] is True


async def test_deletions_are_silent_and_of_their_moment(log: Records) -> None:
    records = [{"data": n, "tag": tag} for n, tag in enumerate(("a", "ab", "b", "a"))]
    await log.post("t", {"records": [*records, {"data": "untagged"}]})
    done = await log.delete("t", match=["tag", "Eq", "a"])
    assert (done["deleted"], done["earliest_seq"], done["count"]) == (2, 2, 3)
    assert (await log.delete("t", match=["tag", "Eq", "a"]))["deleted"] == 0
    found = await log.diff("t")
    assert [record["$seq"] for record in found["records"]] == [2, 3, 5]
    assert found["tombstone"] is None
    await log.post("t", {"records": [{"data": 1, "tag": "a"}]})
    assert await log.seqs("t", 5) == [6]
    assert (await log.delete("t", match=["tag", "Glob", "a*"], before_seq=6))["deleted"] == 1
    done = told(await log.form("t/delete", '{ "before_seq": 480000 }'))
    assert (done["deleted"], done["earliest_seq"], done["head_seq"]) == (3, 7, 6)
    assert (done["count"], done["bytes"]) == (0, 0)
    end = await log.diff("t")
    assert (end["next_from_seq"], end["earliest_seq"], end["tombstone"]) == (6, 7, None)


async def test_a_deletion_of_more_than_one_slice_takes_them_all(log: Records) -> None:
    await log.append("t", *range(2_500))
    assert (await log.delete("t", before_seq=2_400))["deleted"] == 2_399
    assert (await log.get("/t")).doc["count"] == 101


@pytest.mark.parametrize("in_one_tick", [True, False])
async def test_a_deletion_of_records_ends_with_its_topic(
    log: Records, monkeypatch: pytest.MonkeyPatch, *, in_one_tick: bool
) -> None:
    """RACE: the topic is deleted and made anew between two slices."""
    await log.append("t", *range(2_500))
    ask = Inbox.ask

    async def made_anew_behind(inbox: Inbox, command: Any) -> Any:
        reply = await ask(inbox, command)
        if not isinstance(command, DeleteRecords):
            return reply
        if in_one_tick:
            anew = PutTopic("t", NO_PATCH)
            await asyncio.gather(ask(inbox, DeleteTopic("t")), ask(inbox, anew))
            await log.append("t", *["new"] * 2_500)
        else:
            # It may get the id of the one before.
            await ask(inbox, DeleteTopic("t"))
            await log.append("t", "new")
        return reply

    monkeypatch.setattr(Inbox, "ask", made_anew_behind)
    reply = await log.post("t/delete", {"before_seq": 2_400})
    assert refused(reply) == (404, "topic_not_found")
    state = (await log.get("/t")).doc
    assert (state["count"], state["earliest_seq"]) == (2_500 if in_one_tick else 1, 1)


@pytest.mark.parametrize("is_put", [True, False], ids=["put", "written"])
@pytest.mark.parametrize("by", ["/v0/topics/t", "/reset"])
async def test_a_log_is_not_held_against_the_schema_of_a_queue_that_had_its_name(
    log: Records, by: str, *, is_put: bool
) -> None:
    async def put_schema() -> None:
        schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
        put = await log.native.call("PUT", "/queues/t/schema", {"schema": schema})
        assert put.status == 200

    await log.put("t", type="queue")
    await put_schema()
    await log.append("t", {"n": 1})
    assert (await log.post("t", {"records": [{"data": "text"}]})).status == 422
    gone = await log.native.send("POST" if by == "/reset" else "DELETE", by)
    assert gone.status in (200, 204)
    await put_schema()
    if is_put:
        await log.put("t", type="log")
    assert (await log.append("t", "text"))["seqs"] == [1]
    told(await log.native.send("DELETE", "/v0/topics/t"))
    reply = await log.post("t", {"records": [{"data": "text"}], "config": {"type": "queue"}})
    assert reply.status == 422


async def test_records_past_their_age_are_not_delivered(log: Records) -> None:
    await log.put("t", ttl_ms=300)
    await log.append("t", "old")
    log.site.clock.advance(299)
    assert await log.seqs("t") == [1]
    log.site.clock.advance(1)
    found = await log.diff("t")
    assert (found["records"], found["next_from_seq"], found["caught_up"]) == ([], 1, True)
    assert found["tombstone"]["reason"] == "ttl"
    await log.append("t", "young")
    assert await log.seqs("t") == [2]


async def test_a_full_topic_loses_its_oldest_records_and_says_so(log: Records) -> None:
    await log.put("t", cap_records=3)
    await log.append("t", *range(5))
    assert (await log.get("/t")).doc["count"] == 3
    found = await log.diff("t")
    assert [record["$seq"] for record in found["records"]] == [3, 4, 5]
    assert found["tombstone"] == {
        "gap_from": 1,
        "gap_to": 2,
        "reason": "cap",
        "missed_estimate": 2,
        "earliest_seq": 3,
        "head_seq": 5,
    }
    assert (await log.diff("t", 2))["tombstone"] is None


@pytest.mark.parametrize("cap", [{"cap_records": 3}, {"cap_bytes": 20}], ids=["records", "bytes"])
async def test_a_full_topic_that_rejects_takes_nothing_of_a_write(
    log: Records, cap: dict[str, int]
) -> None:
    await log.put("t", discard="reject", **cap)
    await log.append("t", "12345", "12345")
    reply = await log.post("t", {"records": [{"data": "12345"}] * 2})
    assert refused(reply) == (422, "topic_full")
    state = (await log.get("/t")).doc
    assert (state["head_seq"], state["count"]) == (2, 2)


async def test_a_deleted_topic_begins_anew(log: Records) -> None:
    await log.append("t", 1, 2)
    reply = await log.native.send("DELETE", "/v0/topics/t?if_empty=true")
    assert refused(reply) == (409, "topic_not_empty")
    for deleted in (True, False):
        doc = told(await log.native.send("DELETE", "/v0/topics/t"))
        assert (doc["topic"], doc["deleted"], doc["routers_removed"]) == ("t", deleted, [])
    assert refused(await log.post("t/diff", {})) == (404, "topic_not_found")
    assert (await log.append("t", "new"))["seqs"] == [1]
    found = await log.diff("t", 2)
    assert [record["data"] for record in found["records"]] == ["new"]
    assert found["tombstone"]["reason"] == "recreated"


async def test_a_topic_shows_how_it_stands(log: Records) -> None:
    await log.put("t")
    state = told(await log.get("/t", touch="false"))
    assert (state["head_seq"], state["earliest_seq"], state["next_seq"]) == (0, 1, 1)
    assert (state["count"], state["bytes"]) == (0, 0)
    assert (state["last_write_ts"], state["last_read_ts"]) == (None, None)
    now = log.site.clock.now_ms()
    await log.append("t", 1)
    state = (await log.get("/t")).doc
    assert (state["last_write_ts"], state["last_read_ts"]) == (now, now)
    log.site.clock.advance(1_000)
    await log.diff("t")
    assert (await log.get("/t", touch="false")).doc["last_read_ts"] == now + 1_000
    assert refused(await log.get("/none")) == (404, "topic_not_found")


async def test_topics_are_listed_by_name(log: Records) -> None:
    for name in ("b", "a.2", "a.1"):
        await log.append(name, 1)
    page = told(await log.get("", page_size="2"))
    assert [each["topic"] for each in page["topics"]] == ["a.1", "a.2"]
    rest = told(await log.get("", page_size="2", cursor=page["next_cursor"]))
    assert [each["topic"] for each in rest["topics"]] == ["b"] and "next_cursor" not in rest
    found = told(await log.get("", prefix="a."))["topics"]
    assert [each["topic"] for each in found] == ["a.1", "a.2"]
    for cursor in ("?", "\xff", "_w=="):
        assert refused(await log.get("", cursor=cursor)) == (400, "invalid_request")


SENSELESS = [
    ("_bad", {"records": [{"data": 1}]}, "invalid_request"),
    ("t", {"records": []}, "invalid_request"),
    ("t", {"records": [{"tag": "no data"}]}, "invalid_request"),
    ("t", {"records": [{"data": 1, "meta": []}]}, "invalid_request"),
    ("t", {"records": [{"data": 1, "tag": "x" * 257}]}, "invalid_request"),
    ("t", {"records": [{"data": 1}] * 10_001}, "batch_too_large"),
    ("t", {"records": [{"data": "x" * (1 << 20)}]}, "record_too_large"),
    ("t/delete", {}, "invalid_request"),
    ("t/delete", {"match": ["tag", "Glob", "x"]}, "invalid_request"),
    ("t/diff", {"from_seq": -1}, "invalid_request"),
]


async def test_a_request_that_makes_no_sense_is_refused_and_changes_nothing(log: Records) -> None:
    for target, body, code in SENSELESS:
        assert refused(await log.post(target, body)) == (400, code)
        assert told(await log.get(""))["topics"] == []


async def test_other_media_other_methods_and_other_paths_are_refused(log: Records) -> None:
    for kind in ("text/plain", None):
        sent = {"content-type": kind}
        reply = await log.native.send("POST", "/v0/topics/none/diff", b"{}", sent)
        assert refused(reply) == (415, "unsupported_media_type")
    assert refused(await log.get("/none/diff")) == (405, "method_not_allowed")
    assert refused(await log.native.get("/v0/else")) == (404, "not_found")


async def test_the_server_says_how_it_is(log: Records) -> None:
    log.site.clock.advance(5_000)
    await log.append("t", 1, 2)
    health = told(await log.native.get("/v0/health"))
    assert (health["status"], health["uptime_ms"]) == ("ok", 5_000)
    ready = told(await log.native.get("/v0/ready"))
    assert (ready["status"], ready["topics"]) == ("ready", 1)
    text = (await log.native.send("GET", "/v0/metrics", headers={"accept": "*/*"})).body.decode()
    assert 'topics_topic_head_seq{topic="t"} 2.0\n' in text
    figures = told(await log.native.get("/v0/metrics"))
    assert figures["topics_topic_records_live"] == {"t": 2}
    assert figures["topics_uptime_ms"] == 5_000
    await log.put("q", type="queue")
    await log.append("q", 1, 2, 3)
    told(await log.post("q/claim", {"node": "w"}))
    figures = told(await log.native.get("/v0/metrics"))
    assert figures["topics_topic_queue_ready"] == {"q": 2}
    assert figures["topics_topic_queue_in_flight"] == {"q": 1}
    assert figures["topics_queue_leases_in_flight"] == 1


async def test_topics_are_there_after_a_restart(log: Records, wire: Wire) -> None:
    await log.put("t", durable=True)
    await log.append("t", 1, 2, idempotency_key="k")
    await log.delete("t", before_seq=2)
    await log.site.restart()
    async with Client(log.site, wire) as client:
        again = Records(client)
        assert await again.seqs("t") == [2]
        assert (await again.append("t", 1, 2, idempotency_key="k"))["deduped"] is True
        assert (await again.append("t", 3))["seqs"] == [3]


@pytest.mark.parametrize("settings", [{"doors": ("queue-ti",)}], ids=["shut"])
async def test_the_door_can_be_shut(log: Records) -> None:
    assert (await log.get("")).status == 404


@pytest.mark.parametrize("nodes", [["n"] * (MOST_NODES + 1), ["n" * 129]], ids=["many", "long"])
async def test_a_reader_passes_over_so_many_nodes_at_most(log: Records, nodes: list[str]) -> None:
    await log.append("t", 1)
    assert refused(await log.post("t/diff", {"node": nodes})) == (400, "invalid_request")
    session = await log.native.post("/v0/watch", {"topics": {"t": {}}, "node": nodes})
    assert refused(session) == (400, "invalid_request")


@pytest.mark.parametrize("kind", ["log", "queue"])
async def test_a_page_passes_over_so_many_records_at_most(log: Records, kind: str) -> None:
    await log.put("t", type=kind)
    for _ in range(3):
        await log.append("t", *range(MOST_EXAMINED // 2), node="n")
    page = await log.diff("t", node=["n"])
    assert (page["records"], page["next_from_seq"]) == ([], MOST_EXAMINED)
    assert (page["caught_up"], page["lag"]) == (False, MOST_EXAMINED // 2)
    page = await log.diff("t", MOST_EXAMINED, node=["n"])
    assert (page["records"], page["caught_up"]) == ([], True)
    assert len(await log.seqs("t", node=["m"], limit=3)) == 3
