"""Producers over HTTP: what is repeated is a duplicate, whenever and however often."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from zq.features.producers.model import MAX_SEQ
from zq.model.keys import digest_of, make_key

from .client import Client, Doc, Reply, Wire, ids, new_job
from .site import Site


async def send(client: Client, first: int, *payloads: int, **fields: Any) -> Reply:
    """A bulk whose first job has this number; `fields` are those of its producer."""
    producer = {"name": "device-17", "epoch": "7f3a", "seq": first} | fields
    jobs = [new_job(payload=payload) for payload in payloads]
    return await client.post("/jobs/bulk", {"producer": producer, "jobs": jobs})


async def payloads(client: Client) -> list[Any]:
    return [job["payload"] for job in await client.jobs()]


async def test_a_bulk_that_is_repeated_is_stored_once(client: Client) -> None:
    first = await send(client, 1, 1, 2, 3)
    again = await send(client, 1, 1, 2, 3, 4)
    once_more = await send(client, 1, 1, 2, 3, 4)

    assert [first.status, again.status, once_more.status] == [201, 201, 200]
    assert ids(again.doc["jobs"])[:3] == ids(first.doc["jobs"])
    assert [job["duplicate"] for job in again.doc["jobs"]] == [True, True, True, False]
    # Only the ids of the latest request are still known.
    assert ids(once_more.doc["jobs"]) == ["", "", "", ids(again.doc["jobs"])[3]]
    assert await payloads(client) == [1, 2, 3, 4]


async def test_what_is_repeated_is_no_news(client: Client) -> None:
    stream = await client.listen(types="enqueued")
    await send(client, 1, 1, 2)
    await send(client, 3, 3)
    again = await send(client, 1, 1, 2, 3, 4)

    assert ids(again.doc["jobs"])[:2] == ["", ""]
    told = [event["id"] for event in await stream.events(4)]
    assert told == [job["id"] for job in await client.jobs()]


async def test_what_is_repeated_has_the_ids_of_the_first_answer(client: Client) -> None:
    """Those of the owners among them, as far as ids are evenly spaced."""
    producer = {"name": "device-17", "epoch": "7f3a", "seq": 1}
    unique: Doc = {"unique_key": "k", "unique_while": "exists"}
    await client.enqueue(**unique)

    async def answered(*jobs: Doc) -> list[str]:
        reply = await client.post("/jobs/bulk", {"producer": producer, "jobs": [*jobs]})
        return ids(reply.doc["jobs"])

    alone = await answered(new_job(**unique))
    assert await answered(new_job(**unique)) == alone
    producer["seq"] = 2
    jobs = [new_job(), new_job(), new_job(**unique), new_job(), new_job(), new_job()]
    first = await answered(*jobs)
    assert first[2:3] == alone
    assert await answered(*jobs) == ["", "", "", *first[3:]]


async def test_the_header_says_the_same_as_the_field(client: Client) -> None:
    headers = {
        "zq-producer": "device-17; epoch=7f3a; seq=1",
        "content-type": client.wire.media_type,
    }
    body = client.wire.encode(new_job())
    first = await client.send("POST", "/jobs", body, headers)
    again = await client.send("POST", "/jobs", body, headers)
    gap = await send(client, 3, 3)

    assert [first.status, again.status, gap.status] == [201, 200, 409]
    assert again.doc == {"id": first.doc["id"], "duplicate": True, "folded": False}
    assert gap.headers["zq-error"] == "sequence_gap" and gap.doc["expected"] == 2
    assert "send the jobs from 2 on" in gap.doc["error"]


async def test_what_is_repeated_after_a_restart_and_a_crash_is_a_duplicate(
    client: Client, site: Site
) -> None:
    await send(client, 1, 1, 2)
    await site.restart()
    assert (await send(client, 1, 1, 2)).status == 200
    await send(client, 3, 3)
    await site.crash()
    assert (await send(client, 2, 2, 3)).status == 200
    assert await payloads(client) == [1, 2, 3]


async def test_requests_of_one_producer_at_once_are_stored_in_order_or_refused(
    client: Client,
) -> None:
    replies = await asyncio.gather(*(send(client, seq, seq) for seq in (3, 1, 2, 1, 4, 2)))
    assert {reply.status for reply in replies} <= {200, 201, 409}

    stored = await payloads(client)
    assert stored == list(range(1, len(stored) + 1)) and stored[0] == 1


async def test_a_new_epoch_takes_over_and_the_old_one_is_refused(client: Client) -> None:
    await send(client, 1, 1, 2)

    bare = await send(client, 1, 10, epoch="b")
    taken = await send(client, 1, 10, epoch="b", after="7f3a:2")
    old = await send(client, 3, 3)

    assert bare.status == 409 and bare.headers["zq-error"] == "producer_fenced"
    assert bare.doc["epoch"] == "7f3a" and bare.doc["last"] == 2
    assert "after=7f3a:2" in bare.doc["error"]
    assert taken.status == 201 and old.headers["zq-error"] == "producer_fenced"
    assert await payloads(client) == [1, 2, 10]


async def test_producers_are_shown_and_forgotten(client: Client) -> None:
    for name in ("a", "b", "c"):
        await send(client, 1, 1, name=name)

    one = (await client.get("/producers/b")).doc
    assert {**one, "stored_at": 0} == {"name": "b", "epoch": "7f3a", "last": 1, "stored_at": 0}
    page = (await client.get("/producers", limit=2)).doc
    assert [each["name"] for each in page["producers"]] == ["a", "b"] and page["next"] == "b"
    rest = (await client.get("/producers", **{"from": "b"})).doc
    assert [each["name"] for each in rest["producers"]] == ["c"] and "next" not in rest

    assert (await client.delete("/producers/b")).status == 204
    assert (await client.get("/producers/b")).headers["zq-error"] == "producer_not_found"
    assert (await client.delete("/producers/b")).status == 404


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x"])
async def test_a_page_that_is_empty_or_too_long_is_refused(client: Client, limit: str) -> None:
    refused = await client.get("/producers", limit=limit)
    assert refused.status == 400
    assert "limit" in refused.error


async def test_a_field_that_is_not_valid_is_refused_by_name(client: Client) -> None:
    cases: list[tuple[Doc, str]] = [
        ({"name": ""}, "cannot name a producer"),
        ({"name": "a b"}, "cannot name a producer"),
        ({"epoch": "ä"}, "cannot be an epoch"),
        ({"seq": 0}, "seq must be"),
        ({"seq": MAX_SEQ + 1}, "seq must be"),
        ({"after": "7f3a"}, "EPOCH:NUMBER"),
        ({"after": "7f3a:-1"}, "no whole number"),
    ]
    for fields, named in cases:
        reply = await send(client, 1, 1, **fields)
        assert reply.status == 400 and named in reply.error, (fields, named)
        assert await client.count() == 0, (fields, named)


async def test_a_header_that_is_not_valid_is_refused(client: Client) -> None:
    for header in [
        "",
        "a",
        "a; epoch=x",
        "a; epoch=x; seq=x",
        "a; epoch=x; seq=1; x=1",
        "a; epoch=x; seq=1; seq",
    ]:
        headers = {"zq-producer": header, "content-type": client.wire.media_type}
        reply = await client.send("POST", "/jobs", client.wire.encode(new_job()), headers)
        assert reply.status == 400 and "Zq-Producer" in reply.error, header
        assert await client.count() == 0, header


async def test_a_numbered_request_is_neither_waited_for_nor_folded(client: Client) -> None:
    headers = {
        "zq-producer": "device-17; epoch=7f3a; seq=1",
        "content-type": client.wire.media_type,
    }
    folding = new_job(batch={"key": "k", "fold": "."})
    for target, job in (("/jobs?wait_ms=10", new_job()), ("/jobs", folding)):
        reply = await client.send("POST", target, client.wire.encode(job), headers)
        assert reply.status == 400, reply.body
    assert await client.count() == 0


async def test_a_key_writes_as_its_own_producers_only(tmp_path: Path, wire: Wire) -> None:
    keys = [
        make_key(name, digest_of(name.encode()), scopes, prefixes)
        for name, scopes, prefixes in (
            ("bound", "enqueue,producers=device-17|shop-*", []),
            ("shop", "enqueue", ["shop-"]),
            ("any", "enqueue", []),
        )
    ]
    file = tmp_path / "keys"
    file.write_text("".join(f"{key.line}\n" for key in keys))
    site = Site(tmp_path / "data", {"keys": file})
    await site.start()
    try:
        for secret, allowed in (
            ("bound", {"device-17", "shop-1"}),
            ("shop", {"shop-1"}),
            ("any", {"device-17", "device-18", "shop-1"}),
        ):
            async with Client(site, wire, secret) as client:
                for name in ("device-17", "device-18", "shop-1"):
                    producer = {"name": name, "epoch": secret, "seq": 5}
                    jobs = [new_job(queue="shop-q")]
                    reply = await client.post("/jobs/bulk", {"producer": producer, "jobs": jobs})
                    code = reply.headers["zq-error"]
                    expected = "sequence_gap" if name in allowed else "producer_out_of_reach"
                    assert code == expected, (secret, name)
    finally:
        await site.stop()
