"""What is appended to one topic is copied to another one, in the same moment."""

import asyncio
from typing import Any

import pytest
from conformance.client import Client, Reply, Wire
from conformance.site import Site

from .records import Doc, Records, refused, told


@pytest.fixture
async def log(site: Site, wire: Wire) -> Any:
    async with Client(site, wire) as client:
        yield Records(client)


async def put(log: Records, name: str, source: str, dest: str, **fields: Any) -> Reply:
    body = {"source": source, "dest": dest, **fields}
    return await log.native.call("PUT", f"/v0/routers/{name}", body)


async def route(log: Records, source: str, dest: str, **fields: Any) -> Doc:
    return told(await put(log, f"{source}->{dest}", source, dest, **fields), (200, 201))


async def routers(log: Records, **query: str) -> list[str]:
    found = told(await log.native.get("/v0/routers", **query))["routers"]
    return [each["router"] for each in found]


async def data(log: Records, topic: str) -> list[Any]:
    return [record["data"] for record in (await log.diff(topic, limit=1_000))["records"]]


async def test_a_router_is_created_with_its_topics_and_then_changed(log: Records) -> None:
    made = await put(log, "a->b", "a", "b")
    assert made.status == 201
    document = told(made, (201,))
    del document["performance"]
    settings = {
        "router": "a->b",
        "source": "a",
        "dest": "b",
        "preserve_node": True,
        "preserve_tag": True,
        "create_dest": True,
        "filter": None,
        "allow_cycle": False,
    }
    assert document == {**settings, "created": True}
    assert [each["topic"] for each in told(await log.get(""))["topics"]] == ["a", "b"]
    again = await put(log, "a->b", "a", "b", preserve_tag=False)
    assert (again.status, again.doc["created"], again.doc["preserve_tag"]) == (200, False, False)
    found = told(await log.native.get("/v0/routers/a->b"))
    del found["performance"]
    assert found == {**settings, "preserve_tag": False, "forwarded_total": 0}


async def test_a_reader_of_the_copies_sees_them_as_soon_as_the_write_is_answered(
    log: Records,
) -> None:
    await route(log, "a", "b")
    await log.append("b", "its own")
    record = {"data": {"n": 1}, "tag": "t", "node": "n", "meta": {"k": "v"}}
    done = told(await log.post("a", {"records": [record, {"data": 2}]}))
    assert (done["seqs"], done["head_seq"]) == ([1, 2], 2)
    found = (await log.diff("b", include_tags=True))["records"]
    assert [each["$seq"] for each in found] == [1, 2, 3]
    assert found[1] == {
        "$seq": 2,
        "$ts": log.site.clock.now_ms(),
        "data": {"n": 1},
        "$tag": "t",
        "$node": "n",
        "meta": {"k": "v"},
    }
    assert told(await log.native.get("/v0/routers/a->b"))["forwarded_total"] == 2


async def test_copies_of_one_source_are_in_its_order(log: Records) -> None:
    """RACE: many writers of one source, whose writes share ticks."""
    await route(log, "a", "b")
    await asyncio.gather(*(log.append("a", n, n) for n in range(20)))
    assert await data(log, "a") == await data(log, "b")


async def test_a_write_that_comes_again_is_not_copied_again(log: Records) -> None:
    await route(log, "a", "b")
    for _ in range(2):
        await log.append("a", 1, idempotency_key="k")
    assert await data(log, "b") == [1]


async def test_a_patient_reader_of_the_copies_is_woken(log: Records) -> None:
    await route(log, "a", "b")
    waiting = asyncio.create_task(log.diff("b", wait_ms=30_000))
    await log.append("a", 1)
    assert [record["data"] for record in (await waiting)["records"]] == [1]


async def test_copies_are_copied_on_and_filtered_by_their_tags(log: Records) -> None:
    await route(log, "a", "b", filter=["tag", "Glob", "x*"], preserve_tag=False)
    await route(log, "a", "c", filter="y", preserve_node=False)
    await route(log, "b", "d")
    await route(log, "b", "none", filter=["tag", "Eq", "x1"])
    tags = [("x1", 1), ("y", 2), ("yy", 3), (None, 4), ("x2", 5)]
    records = [{"data": n, "node": "n"} | ({"tag": tag} if tag else {}) for tag, n in tags]
    await log.post("a", {"records": records})
    assert [await data(log, topic) for topic in "bcd"] == [[1, 5], [2], [1, 5]]
    assert await data(log, "none") == [], "the tag is gone by then"
    (record,) = (await log.diff("c", include_tags=True))["records"]
    assert record["$tag"] == "y" and "$node" not in record
    found = (await log.diff("d", include_tags=True))["records"]
    assert all(each["$node"] == "n" and "$tag" not in each for each in found)


async def test_a_router_that_would_close_a_circle_is_refused_unless_it_may(log: Records) -> None:
    await route(log, "a", "b")
    await route(log, "b", "c")
    reply = await put(log, "c->a", "c", "a")
    assert refused(reply) == (409, "router_cycle")
    assert reply.doc["error"]["detail"] == {"cycle": ["c", "a", "b", "c"]}
    assert refused(await log.native.get("/v0/routers/c->a")) == (404, "router_not_found")
    await route(log, "c", "a", allow_cycle=True)
    await log.append("b", "x")
    assert [await data(log, topic) for topic in "abc"] == [["x"], ["x"], ["x"]], "once each"


async def test_a_topic_gets_copies_from_one_other_topic_only(log: Records) -> None:
    await route(log, "a", "c")
    reply = await put(log, "b->c", "b", "c")
    assert refused(reply) == (409, "topic_exists_incompatible")
    assert reply.doc["error"]["detail"] == {"reason": "router_dest_fan_in"}
    assert (await log.get("/b")).status == 404, "nothing is created"
    assert (await put(log, "second", "a", "c", filter="x")).status == 201, "the same source may"


async def test_a_record_has_a_bounded_number_of_copies(log: Records) -> None:
    for n in range(32):
        await route(log, "a" if n < 16 else "b0", f"{'b' if n < 16 else 'c'}{n}")
    for source in ("a", "b3", "c20"):
        reply = await put(log, "more", source, "more")
        assert refused(reply) == (429, "throttled")
        assert reply.doc["error"]["detail"] == {"limit": "max_copies", "max": 32}
        assert reply.headers["retry-after"]
    await log.append("a", 1)
    assert await data(log, "c31") == [1]


async def test_there_is_a_bounded_number_of_routers(
    log: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zq.doors.topics.tick_records.MAX_ROUTERS", 1)
    await route(log, "a", "b")
    reply = await put(log, "second", "a", "c")
    assert refused(reply) == (429, "throttled")
    assert reply.doc["error"]["detail"] == {"limit": "max_routers", "max": 1}
    assert (await put(log, "a->b", "a", "b", filter="x")).status == 200, "one that is there changes"


async def test_a_full_destination_that_rejects_refuses_the_whole_write(log: Records) -> None:
    await log.put("b", cap_records=3, discard="reject")
    await route(log, "a", "b")
    await route(log, "a", "c")
    await log.append("a", 1, 2)
    reply = await log.post("a", {"records": [{"data": 3}, {"data": 4}]})
    assert refused(reply) == (422, "topic_full") and "'b'" in reply.doc["error"]["message"]
    assert [await data(log, topic) for topic in "abc"] == [[1, 2]] * 3
    assert (await log.append("a", 3))["seqs"] == [3]


async def test_a_router_that_is_deleted_leaves_what_it_has_copied(log: Records) -> None:
    await route(log, "a", "b")
    await log.append("a", 1)
    for deleted in (True, False):
        reply = told(await log.native.send("DELETE", "/v0/routers/a->b"))
        assert (reply["router"], reply["deleted"]) == ("a->b", deleted)
    await log.append("a", 2)
    assert await data(log, "b") == [1]


async def test_routers_go_with_a_topic_at_either_end(log: Records) -> None:
    for source, dest in (("a", "b"), ("b", "c"), ("c", "d")):
        await route(log, source, dest)
    assert told(await log.native.send("DELETE", "/v0/topics/b"))["routers_removed"] == [
        "a->b",
        "b->c",
    ]
    assert await routers(log) == ["c->d"]
    await log.append("a", 1)
    assert (await log.get("/b")).status == 404


async def test_a_reset_leaves_no_router(log: Records) -> None:
    await route(log, "a", "b")
    assert (await log.native.send("POST", "/reset")).status == 204
    assert await routers(log) == []
    await log.append("a", 1)
    assert (await log.get("/b")).status == 404


async def test_routers_are_listed_by_name_and_by_their_ends(log: Records) -> None:
    for source, dest in (("a", "b"), ("a", "c"), ("x", "d")):
        await route(log, source, dest)
    assert await routers(log) == ["a->b", "a->c", "x->d"]
    assert await routers(log, source="a") == ["a->b", "a->c"]
    assert await routers(log, dest="d") == ["x->d"]
    assert await routers(log, prefix="a->", dest="c") == ["a->c"]
    page = told(await log.native.get("/v0/routers", page_size="2"))
    assert page["routers"][1] == {
        "router": "a->c",
        "source": "a",
        "dest": "c",
        "forwarded_total": 0,
    }
    assert await routers(log, page_size="2", cursor=page["next_cursor"]) == ["x->d"]


async def test_routers_and_their_copies_are_there_after_a_restart(log: Records, wire: Wire) -> None:
    await log.put("a", durable=True)
    await route(log, "a", "b")
    await log.append("a", 1)
    await log.site.restart()
    async with Client(log.site, wire) as client:
        again = Records(client)
        await again.append("a", 2)
        assert await data(again, "b") == [1, 2]
        found = told(await again.native.get("/v0/routers/a->b"))
        assert found["forwarded_total"] == 2


@pytest.mark.parametrize(
    ("name", "body", "status", "code"),
    [
        ("r", {"source": "a"}, 400, "invalid_request"),
        ("r", {"source": "a", "dest": "a"}, 400, "invalid_request"),
        ("r", {"source": "a", "dest": "_b"}, 400, "invalid_request"),
        ("_r", {"source": "a", "dest": "b"}, 400, "invalid_request"),
        ("r", {"source": "a", "dest": "b", "filter": ["tag", "Glob", "x"]}, 400, "invalid_request"),
        ("r", {"source": "a", "dest": "b", "create_dest": False}, 404, "topic_not_found"),
    ],
    ids=["one end", "equal ends", "name of an end", "name", "filter", "no dest"],
)
async def test_a_router_that_makes_no_sense_is_refused_and_nothing_is_created(
    log: Records, name: str, body: Doc, status: int, code: str
) -> None:
    assert refused(await log.native.call("PUT", f"/v0/routers/{name}", body)) == (status, code)
    assert await routers(log) == [] and told(await log.get(""))["topics"] == []
