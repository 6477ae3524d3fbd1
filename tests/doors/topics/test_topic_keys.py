"""Keys hold for topics, routers and watch sessions as they hold for queues."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from conformance.client import Wire
from conformance.keyed import client_of, secret, write_keys
from conformance.site import Site
from conformance.streams import pause

from zq.doors.topics.engine import TopicReaders

from .frames import Frames
from .records import Records, refused, told
from .test_routers import put, route, routers


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {"keys": write_keys(tmp_path / "keys")}


async def test_a_key_needs_the_scope_of_what_it_does(site: Site, wire: Wire) -> None:
    async with client_of(site, wire, "root") as root:
        await Records(root).append("t", 1)
    needs: dict[str, list[tuple[str, str, Any]]] = {
        "enqueue": [("POST", "/topics/t", {"records": [{"data": 1}]})],
        "read": [
            ("POST", "/topics/t/diff", {}),
            ("POST", "/watch", {"topics": {"t": {}}}),
        ],
        "manage": [
            ("PUT", "/topics/t", {}),
            ("PUT", "/routers/r", {"source": "t", "dest": "u"}),
            ("POST", "/topics/t/delete", {"before_seq": 1}),
        ],
    }
    for scope, requests in needs.items():
        async with (
            client_of(site, wire, f"only-{scope}") as some,
            client_of(site, wire, f"not-{scope}") as others,
            client_of(site, wire, "nobody") as nobody,
        ):
            for method, target, body in requests:
                assert (await some.call(method, f"/v0{target}", body)).status in (200, 201)
                reply = await others.call(method, f"/v0{target}", body)
                assert refused(reply) == (403, "forbidden")
                reply = await nobody.call(method, f"/v0{target}", body)
                assert refused(reply) == (401, "unauthorized")
                assert reply.headers["www-authenticate"]


async def test_a_key_with_prefixes_sees_and_changes_routers_between_its_topics_only(
    site: Site, wire: Wire
) -> None:
    async with client_of(site, wire, "root") as root, client_of(site, wire, "shop") as shop:
        every, some = Records(root), Records(shop)
        await route(every, "shop-a", "other")
        await route(some, "shop-a", "shop-b")
        assert await routers(some) == ["shop-a->shop-b"]
        listed = told(await some.get(""))["topics"]
        assert [each["topic"] for each in listed] == ["shop-a", "shop-b"]
        target = "/v0/routers/shop-a->other"
        assert refused(await shop.get(target)) == (403, "forbidden")
        assert refused(await shop.send("DELETE", target)) == (403, "forbidden")
        for ends in (("shop-a", "other"), ("other", "shop-b"), ("shop-a", "shop-c")):
            reply = await put(some, "shop-a->other", *ends)
            assert refused(reply) == (403, "forbidden")
        assert await routers(every) == ["shop-a->other", "shop-a->shop-b"]


async def test_a_topic_out_of_reach_is_refused_whatever_else_is_wrong(
    site: Site, wire: Wire
) -> None:
    verbs = ("", "/diff", "/delete", "/claim", "/ack", "/nack", "/extend")
    async with client_of(site, wire, "shop") as shop:
        records = Records(shop)
        for verb in verbs:
            assert refused(await records.form(f"other{verb}", "{")) == (403, "forbidden")
            reply = await shop.send("POST", f"/v0/topics/other{verb}", b"{}", {})
            assert refused(reply) == (403, "forbidden")
        assert refused(await records.get("/other/work")) == (403, "forbidden")
        assert refused(await records.form("shop-t/diff", "{")) == (400, "invalid_request")


async def test_one_topic_out_of_reach_refuses_a_whole_session(site: Site, wire: Wire) -> None:
    async with client_of(site, wire, "root") as root, client_of(site, wire, "shop") as shop:
        for name in ("shop-a", "other"):
            await Records(root).append(name, 1)
        for lenient in ("", "?lenient=true"):
            reply = await shop.post(f"/v0/watch{lenient}", {"topics": {"shop-a": {}, "other": {}}})
            assert refused(reply) == (403, "forbidden")


async def test_a_session_is_for_the_key_that_has_made_it(site: Site, wire: Wire) -> None:
    async with client_of(site, wire, "root") as root, client_of(site, wire, "only-read") as other:
        await Records(root).append("t", 1)
        session = told(await root.post("/v0/watch", {"topics": {"t": {}}}))
        headers: dict[str, str | None] = {"accept": "text/event-stream"}
        reply = await other.send("GET", session["stream_url"], headers=headers)
        assert refused(reply) == (401, "unauthorized")
        # A browser's EventSource sends no headers, so the key may be in the query here.
        without = headers | {"authorization": None}
        for token, status in (("?token=wrong", 401), ("", 401)):
            reply = await root.send("GET", session["stream_url"] + token, headers=without)
            assert reply.status == status
        reply = await root.send("GET", f"/v0/topics?token={secret('root')}", headers=without)
        assert reply.status == 401, "nowhere else"
        async with client_of(site, wire, "root") as browser:
            browser.always.clear()
            target = f"{session['stream_url']}?token={secret('root')}"
            stream = await Frames.open(browser, target)
            await stream.expect("record", topic="t")


async def test_a_stream_ends_with_its_key(site: Site, wire: Wire, tmp_path: Path) -> None:
    async with client_of(site, wire, "root") as root:
        await Records(root).append("t", 1)
        session = told(await root.post("/v0/watch", {"topics": {"t": {}}}))
        stream = await Frames.open(root, session["stream_url"])
        await stream.expect("record")
        await stream.expect("caught-up")
        write_keys(tmp_path / "keys", "root")
        site.server.reload()
        await stream.ended()


async def test_a_key_has_a_bounded_number_of_requests_under_way(
    site: Site, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams have a bound of their own."""
    monkeypatch.setattr("zq.doors.topics.http.door.MOST_UNDER_WAY", 2)
    async with client_of(site, wire, "root") as root, client_of(site, wire, "shop") as shop:
        log = Records(root)
        await log.put("q", type="queue")
        for _ in range(2):
            stream = await Frames.open(log.native, "/v0/topics/q/work?node=w")
            assert await stream.frame() == {"retry": "2000"}
        await log.append("shop-t", 1)
        waiting = [asyncio.create_task(log.diff("shop-t", 1, wait_ms=30_000)) for _ in range(2)]
        async with asyncio.timeout(60):
            while len(site.server.engine[TopicReaders]) < 2:
                await pause()
        reply = await log.get("")
        assert refused(reply) == (429, "throttled")
        assert reply.doc["error"]["detail"] == {"limit": "max_in_flight_per_key", "max": 2}
        assert reply.headers["retry-after"] == "1"
        assert (await log.native.get("/v0/health")).status == 200
        assert len(told(await Records(shop).get(""))["topics"]) == 1, "other keys go on"
        await Records(shop).append("shop-t", 2)
        for each in waiting:
            assert len((await each)["records"]) == 1
