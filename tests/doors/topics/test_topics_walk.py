"""Two walks through the API of topics, with the answers that programs read, one after the other."""

import re
from typing import Any, NamedTuple

import pytest
from conformance.client import Client, Wire
from conformance.site import Site

from .records import Doc, Records, refused, told

CLIPS = [{"src": "s3://up/9001.mov", "n": 1}, {"src": "s3://up/9002.mov", "n": 2}]
TAG = "tenant42:clip-9001"
TAGGED = {"records": [{"data": CLIPS[0], "tag": TAG}, {"data": CLIPS[1], "tag": "other"}]}
POISON = {"records": [{"data": {"poison": True}, "tag": "bad", "meta": {"k": "v"}}]}
STAMPS = {
    "$dead_letter_from": "clips",
    "$dead_letter_deliveries": "5",
    "$dead_letter_src_seq": "6",
}
LOG = {
    "type": "log",
    "ttl_ms": 0,
    "cap_records": 0,
    "cap_bytes": 0,
    "discard": "old",
    "durable": True,
    "durability": "fsync",
    "auto_create": True,
    "idempotency_window_ms": 120_000,
    "dedupe_node": True,
}
QUEUE = {
    "type": "queue",
    "durable": True,
    "discard": "reject",
    "lease_ms": 30_000,
    "claim_jitter_ms": 0,
    "max_deliveries": 5,
    "dead_letter": "clips.dlq",
}
ECHO = {**QUEUE, "durability": "fsync", "leases_durable": False, "ttl_ms": 0}


class Token(NamedTuple):
    """Any token of a delivery."""


class Absent(NamedTuple):
    """A field that must not be there."""


class Step(NamedTuple):
    """A request of `verb` below `clips`, or of a whole path, and what its answer has.

    A body that is a text goes as `curl -d` sends it.
    """

    verb: str
    body: Doc | str | None
    found: Doc
    method: str = "POST"
    after_ms: int = 0
    status: int = 200


class Refused(NamedTuple):
    verb: str
    body: Doc
    status: int
    code: str
    method: str = "POST"


def left(upto: int, first: int, *records: Doc) -> Doc:
    """The page of a reader who has then seen all."""
    return {
        "records": list(records),
        "next_from_seq": upto,
        "head_seq": upto,
        "earliest_seq": first,
        "caught_up": True,
        "tombstone": None,
        "lag": 0,
    }


def held(seq: int, deliveries: int = 1, more: Doc | None = None) -> Doc:
    return {"$seq": seq, "lease_id": Token(), "deliveries": deliveries, **(more or {})}


def new(*seqs: int, **more: Any) -> Doc:
    ends = {"first_seq": seqs[0], "last_seq": seqs[-1], "head_seq": seqs[-1], "count": len(seqs)}
    return {"topic": "clips", "seqs": list(seqs), **ends, "deduped": False, **more}


NEVER_SHOWN: Doc = {"$tag": Absent(), "$node": Absent(), "meta": Absent()}
FIRST, SECOND = ({"$seq": n + 1, "data": CLIPS[n], **NEVER_SHOWN} for n in (0, 1))
GONE = {"records": [], "next_from_seq": 3, "earliest_seq": 4, "tombstone": None}
NOTHING = {"claimed": [], "count": 0}
DONE = {"acked": 1, "skipped": []}
LOG_VERBS = {"claim": {}, "ack": {}, "nack": {}, "extend": {"lease_ms": 1_000}}

WALK_OF_A_LOG: list[Step | Refused] = [
    Step("", {"durable": True}, {"created": True, "config": LOG}, "PUT", status=201),
    Step("", {"durable": True}, {"created": False, "config": LOG}, "PUT"),
    Step("", TAGGED, new(1, 2, created=False)),
    Step("/diff", {"from_seq": 0, "limit": 50, "node": "n"}, left(2, 1, FIRST, SECOND)),
    Step("/diff", {"from_seq": 2}, left(2, 1)),
    Step("/diff", {"limit": 1}, {"next_from_seq": 1, "caught_up": False, "lag": 1}),
    *(Refused(f"/{verb}", {"node": "w", "seqs": [1], **more}, 409, "not_a_queue")
      for verb, more in LOG_VERBS.items()),
    Refused("", {"type": "queue"}, 409, "topic_exists_incompatible", "PUT"),
    Step("/delete", {"match": ["tag", "Eq", TAG]}, {"deleted": 1, "earliest_seq": 2, "count": 1}),
    Step("/delete", {"match": ["tag", "Eq", TAG]}, {"deleted": 0, "head_seq": 2, "count": 1}),
    Step("/diff", {"from_seq": 0}, left(2, 2, SECOND)),
    Step("", {"records": [{"data": "again", "tag": TAG}]}, new(3)),
    Step("/diff", {"from_seq": 2}, {"records": [{"$seq": 3}]}),
    Step("/delete", '{ "before_seq": 480000 }', {"deleted": 2, "earliest_seq": 4, "count": 0}),
    Step("/diff", {"from_seq": 0}, {**GONE, "head_seq": 3, "caught_up": True, "lag": 0}),
    Step("", {"records": [{"data": "mine"}], "node": "n"}, new(4)),
    Step("/diff", {"from_seq": 3, "node": "n"}, left(4, 4)),
    Step("/diff", {"from_seq": 3}, left(4, 4, {"$seq": 4, "$node": "n"})),
]  # fmt: skip

WALK_OF_A_QUEUE: list[Step | Refused] = [
    Step("", QUEUE, {"created": True, "config": ECHO}, "PUT", status=201),
    Refused("", {"type": "log"}, 409, "topic_exists_incompatible", "PUT"),
    Step("", {"records": [{"data": CLIPS[0], "tag": TAG}]}, new(1)),
    Step("/claim", {"node": "w1", "max": 8, "lease_ms": 30_000}, {
        "claimed": [held(1, more={"data": CLIPS[0], "$tag": TAG, "meta": Absent()})],
        "count": 1, "ready": 0,
    }),
    Step("/claim", {"node": "w2", "max": 8}, {**NOTHING, "ready": 0}),
    Step("/ack", {"node": "w1", "seqs": [1]}, {**DONE, "ready": 0, "in_flight": 0}),
    Step("/ack", {"node": "w1", "seqs": [1]}, {"acked": 0, "skipped": [1]}),
    Step("/diff", {"from_seq": 0}, left(1, 2)),
    Step("", {"records": [{"data": 2}, {"data": 3}]}, new(2, 3)),
    Step("/claim", {"node": "w1", "max": 8}, {"claimed": [held(2), held(3)], "count": 2}),
    Step("/nack", '{ "node": "w1", "seqs": [2], "delay_ms": 5000 }',
         {"nacked": 1, "skipped": [], "ready": 0, "in_flight": 1}),
    Step("/extend", '{ "node": "w1", "seqs": [3], "lease_ms": 30000 }',
         {"extended": 1, "skipped": []}),
    Step("/claim", {"node": "w2", "max": 8}, NOTHING),
    Step("/claim", {"node": "w2", "max": 8}, {"claimed": [held(2, 2)], "count": 1}, after_ms=5_001),
    Step("/extend", {"node": "w2", "seqs": [3], "lease_ms": 1_000},
         {"extended": 0, "skipped": [3], "deadlines": {}}),
    Step("/ack", {"node": "w2", "seqs": [2], "lease_ids": ["lease_ffffff"]}, {"skipped": [2]}),
    Step("/ack", {"node": "w2", "seqs": [2], "lease_ids": [None]}, DONE),
    Step("/ack", {"node": "w1", "seqs": [3], "lease_ids": []}, {**DONE, "in_flight": 0}),
    Step("", {"records": [{"data": 4}]}, new(4)),
    Step("/claim", {"node": "slow", "lease_ms": 400}, {"claimed": [held(4)]}),
    Step("/claim", {"node": "fast"}, NOTHING),
    Step("", {"records": [{"data": 5}]}, new(5), after_ms=600),
    Step("/claim", {"node": "fast"}, {"claimed": [held(4, 2)], "ready": 1}),
    Step("/ack", {"node": "slow", "seqs": [4]}, {"acked": 0, "skipped": [4]}),
    Step("/extend", {"node": "slow", "seqs": [4], "lease_ms": 1_000}, {"skipped": [4]}),
    Step("/ack", {"node": "fast", "seqs": [4]}, DONE),
    Step("/claim", {"node": "fast", "max": 8}, {"claimed": [held(5)]}),
    Step("/ack", {"node": "fast", "seqs": [5]}, DONE),
    Step("", POISON, new(6)),
    *(step for n in range(1, 6) for step in (
        Step("/claim", {"node": "p"}, {"claimed": [held(6, n, {"meta": {"k": "v"}})]}),
        Step("/nack", {"node": "p", "seqs": [6], "delay_ms": 0}, {"nacked": 1}),
    )),
    Step("/claim", {"node": "p"}, {**NOTHING, "ready": 0}),
    Step(".dlq/diff", '{ "from_seq": 0, "include_meta": true }', left(1, 1, {
        "$seq": 1, "data": {"poison": True}, "meta": {"k": "v", **STAMPS}, "$tag": Absent(),
    })),
    Step(".dlq/diff", {"include_tags": True}, {"records": [{"$tag": "bad"}]}),
    Step("", POISON, new(7)),
    Step("/claim", {"node": "p"}, {"claimed": [held(7)]}),
]  # fmt: skip


@pytest.mark.parametrize("walk", [WALK_OF_A_LOG, WALK_OF_A_QUEUE], ids=["log", "queue"])
async def test_each_step_has_the_answer_that_programs_read(
    site: Site, wire: Wire, walk: list[Step | Refused]
) -> None:
    async with Client(site, wire) as client:
        records = Records(client)
        for number, step in enumerate(walk):
            path = f"clips{step.verb}"
            if isinstance(step, Refused):
                reply = await client.call(step.method, f"/v0/topics/{path}", step.body)
                assert refused(reply) == (step.status, step.code), number
                continue
            if step.after_ms:
                site.clock.advance(step.after_ms)
            if isinstance(step.body, str):
                reply = await records.form(path, step.body)
            else:
                reply = await client.call(step.method, f"/v0/topics/{path}", step.body)
            compare(step.found, told(reply, (step.status,)), f"step {number}, {path}")


def compare(wanted: object, found: object, place: str) -> None:
    """Fail unless all that is wanted was found. An object may have more fields."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict), place
        for name, value in wanted.items():
            if isinstance(value, Absent):
                assert name not in found, f"{place}: {name}"
            else:
                assert name in found, f"{place}: {name}"
                compare(value, found[name], f"{place}: {name}")
    elif isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted), (place, found)
        for one, other in zip(wanted, found, strict=True):
            compare(one, other, place)
    elif isinstance(wanted, Token):
        assert re.fullmatch("lease_[0-9a-f]+", str(found)), place
    else:
        assert found == wanted and type(found) is type(wanted), (place, found)
