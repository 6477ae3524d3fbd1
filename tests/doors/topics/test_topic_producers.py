"""Records that a producer numbers: what it repeats is appended once, however late that is."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from conformance.client import Client, Reply, Wire
from conformance.site import Site
from conformance.test_producers import send

from zq.model.keys import digest_of, make_key

from .records import Doc, Records, refused, told


@pytest.fixture
async def log(site: Site, wire: Wire) -> Any:
    async with Client(site, wire) as client:
        yield Records(client)


async def write_as(client: Client, mark: str, topic: str, *data: Any, **fields: Any) -> Reply:
    """A write with this header."""
    headers = {"zq-producer": mark, "content-type": client.wire.media_type}
    body = client.wire.encode({"records": [{"data": each} for each in data], **fields})
    return await client.send("POST", f"/v0/topics/{topic}", body, headers)


async def reply_to(log: Records, topic: str, seq: int, *data: Any, **fields: Any) -> Reply:
    """A write whose first record has this number."""
    mark = f"device-17; epoch=7f3a; seq={seq}"
    return await write_as(log.native, mark, topic, *data, **fields)


async def append(log: Records, topic: str, seq: int, *data: Any) -> Doc:
    return told(await reply_to(log, topic, seq, *data), (200, 201))


async def data_of(log: Records, topic: str) -> list[Any]:
    return [record["data"] for record in (await log.diff(topic))["records"]]


def counts(doc: Doc) -> tuple[bool, int, list[int]]:
    return doc["deduped"], doc["duplicates"], doc["seqs"]


@pytest.mark.parametrize("kind", ["log", "queue"])
async def test_a_write_that_is_repeated_is_appended_once(log: Records, kind: str) -> None:
    await log.put("t", type=kind)
    first = await append(log, "t", 1, "a", "b")
    again = await append(log, "t", 1, "a", "b")
    more = await append(log, "t", 2, "b", "c", "d")
    late = await append(log, "t", 1, "a", "b")

    assert counts(first) == (False, 0, [1, 2])
    assert counts(again) == (True, 2, [1, 2])
    # The numbers are those of the records that are new.
    assert counts(more) == (False, 1, [3, 4]) and more["count"] == 2
    # Only those of the latest write are still known.
    assert counts(late) == (True, 2, []) and late["count"] == 0
    assert (late["first_seq"], late["last_seq"], late["head_seq"]) == (5, 4, 4)
    assert await data_of(log, "t") == ["a", "b", "c", "d"]


async def test_no_window_ends_it_and_no_restart_or_crash(log: Records, wire: Wire) -> None:
    await append(log, "t", 1, "a")
    log.site.clock.jump(90 * 86_400_000)
    for down in (log.site.restart, log.site.crash):
        await down()
        async with Client(log.site, wire) as client:
            assert (await append(Records(client), "t", 1, "a"))["deduped"]
    async with Client(log.site, wire) as client:
        assert await data_of(Records(client), "t") == ["a"]


async def test_a_gap_and_another_epoch_are_refused_in_the_words_of_the_door(log: Records) -> None:
    await append(log, "t", 1, "a")
    gap = await reply_to(log, "t", 3, "c")
    assert refused(gap) == (409, "sequence_gap")
    assert gap.doc["error"]["detail"] == {"expected": 2}
    assert "send the records from 2 on" in gap.doc["error"]["message"]

    fenced = await write_as(log.native, "device-17; epoch=new; seq=1", "t", "b")
    assert refused(fenced) == (409, "producer_fenced")
    assert fenced.doc["error"]["detail"] == {"epoch": "7f3a", "last": 1}
    taken = await write_as(log.native, "device-17; epoch=new; seq=1; after=7f3a:1", "t", "b")
    assert told(taken)["seqs"] == [2]
    assert await data_of(log, "t") == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["device-17", "device-17; epoch=7f3a; seq=0", "a b; epoch=1; seq=1"]
)
async def test_a_header_that_says_nothing_is_refused(log: Records, text: str) -> None:
    reply = await write_as(log.native, text, "t", 1)
    assert refused(reply) == (400, "invalid_request")


async def test_a_write_has_numbers_or_an_idempotency_key(log: Records) -> None:
    both = await reply_to(log, "t", 1, "a", idempotency_key="k")
    assert refused(both) == (400, "invalid_request")
    assert "one of the two" in both.doc["error"]["message"]
    # Each works beside the other, and neither moves the other.
    assert (await log.append("t", "a", idempotency_key="k"))["deduped"] is False
    assert counts(await append(log, "t", 1, "b")) == (False, 0, [2])
    assert (await log.append("t", "a", idempotency_key="k"))["deduped"] is True


async def test_a_write_that_is_refused_does_not_move_the_number(log: Records) -> None:
    await log.put("t", discard="reject", cap_records=1)
    await append(log, "t", 1, "a")
    assert refused(await reply_to(log, "t", 2, "b")) == (422, "topic_full")
    assert refused(await reply_to(log, "new", 2, "b", create=False)) == (404, "topic_not_found")
    await log.put("t", cap_records=2)
    assert counts(await append(log, "t", 2, "b")) == (False, 0, [2])


async def test_a_refused_write_makes_no_topic_and_a_repeated_one_does_not_bring_it_back(
    log: Records,
) -> None:
    assert refused(await reply_to(log, "gap", 2, "b")) == (409, "sequence_gap")
    assert (await log.get("/gap")).status == 404
    await append(log, "t", 1, "a")
    assert (await log.native.call("DELETE", "/v0/topics/t", None)).status == 200
    assert counts(await append(log, "t", 1, "a")) == (True, 1, [])
    assert (await log.get("/t")).status == 404


async def test_writes_of_one_producer_at_once_are_appended_in_order_or_refused(
    log: Records,
) -> None:
    """RACE: several requests of one producer, in one tick and in several."""
    await log.put("t")
    replies = await asyncio.gather(*(reply_to(log, "t", seq, seq) for seq in (3, 1, 2, 1, 4, 2)))
    assert {reply.status for reply in replies} <= {200, 409}
    stored = await data_of(log, "t")
    assert stored == list(range(1, len(stored) + 1)) and stored[0] == 1


async def test_the_copies_of_routers_are_made_once(log: Records) -> None:
    await log.put("t")
    router = {"source": "t", "dest": "copy"}
    assert (await log.native.call("PUT", "/v0/routers/r", router)).status == 201
    await append(log, "t", 1, "a", "b")
    await append(log, "t", 2, "b", "c")
    assert await data_of(log, "copy") == ["a", "b", "c"]


async def test_both_apis_count_on_at_the_same_number(log: Records) -> None:
    await log.put("q", type="queue")
    await append(log, "q", 1, "a")
    native = await send(log.native, 1, 1, 2)
    # A record is no job whose id could be told.
    first, second = native.doc["jobs"]
    assert (first["duplicate"], first["id"], second["duplicate"]) == (True, "", False)
    assert counts(await append(log, "q", 2, "b")) == (True, 1, [])
    assert counts(await append(log, "q", 3, "c")) == (False, 0, [2])


async def test_a_key_that_may_not_write_as_the_producer_cannot_move_its_number(
    tmp_path: Path, wire: Wire
) -> None:
    key = make_key("k", digest_of(b"bound"), "enqueue,producers=device-17", [])
    file = tmp_path / "keys"
    file.write_text(f"{key.line}\n")
    site = Site(tmp_path / "data", {"keys": file})
    await site.start()
    try:
        async with Client(site, wire, "bound") as client:
            other = await write_as(client, "device-18; epoch=1; seq=1", "t", 1)
            assert refused(other) == (403, "forbidden")
            assert "'device-18'; its producers: device-17" in other.doc["error"]["message"]
            assert (await write_as(client, "device-17; epoch=1; seq=1", "t", 1)).status == 201
    finally:
        await site.stop()
