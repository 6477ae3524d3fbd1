"""The program that copies topics, between two servers that speak their API."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from conformance.client import JSON, Client
from conformance.site import Site

from zq.moving import servers, topics

from .records import Records, told


@pytest.fixture
async def log(site: Site) -> AsyncIterator[Records]:
    async with Client(site, JSON) as client:
        yield Records(client)


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Records]:
    site = Site(tmp_path / "other", {})
    await site.start()
    async with Client(site, JSON) as client:
        yield Records(client)
    await site.stop()


async def move(source: Records, target: Records) -> int:
    return await asyncio.to_thread(topics.main, [source.site.url, target.site.url])


async def test_topics_records_and_routers_are_copied_and_not_twice(
    log: Records, other: Records, capsys: pytest.CaptureFixture[str]
) -> None:
    await log.put("t", durable=True, cap_records=5_000)
    await log.append("t", *range(topics.PAGE + 5))
    record = {"data": None, "tag": "red", "node": "maker", "meta": {"k": 1}}
    told(await log.post("t", {"records": [record]}))
    await log.delete("t", before_seq=3)
    await log.put("q", type="queue", lease_ms=9_000)
    await log.append("q", "job")
    router = {"source": "t", "dest": "copies", "filter": ["tag", "Glob", "r*"]}
    told(await log.native.call("PUT", "/v0/routers/r", router), (201,))

    for _ in range(2):
        assert await move(log, other) == 0
        assert capsys.readouterr().out.split("\n")[:-1] == [
            "    1005 records copied",
            "       1 routers copied",
            "       3 topics copied",
        ]
    state = told(await other.get("/t"))
    assert (state["count"], state["config"]["durability"]) == (topics.PAGE + 4, "fsync")
    first = (await other.diff("t", limit=1))["records"][0]
    assert (first["$seq"], first["data"]) == (1, 2)
    page = await other.diff("t", topics.PAGE + 3, include_tags=True)
    (last,) = page["records"]
    assert (last["$tag"], last["$node"], last["meta"]) == ("red", "maker", {"k": 1})
    queue = told(await other.get("/q"))
    assert (queue["config"]["lease_ms"], queue["queue"]["ready"]) == (9_000, 1)
    copied = told(await other.native.get("/v0/routers/r"))
    assert (copied["source"], copied["dest"], copied["filter"]) == tuple(router.values())


async def test_a_page_is_cut_into_writes_of_which_none_comes_twice(
    log: Records, other: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "PART_BYTES", 50)
    await log.put("t")
    await log.append("t", *range(10), "of many bytes" * 10)
    for _ in range(2):
        assert await move(log, other) == 0
    records = (await other.diff("t"))["records"]
    assert [record["data"] for record in records] == [*range(10), "of many bytes" * 10]


async def test_a_server_that_is_not_there_is_told_of(
    log: Records, capsys: pytest.CaptureFixture[str]
) -> None:
    done = await asyncio.to_thread(topics.main, ["http://127.0.0.1:9", log.site.url])
    assert done == 1
    assert "stopped: GET http://127.0.0.1:9/v0/topics" in capsys.readouterr().err
