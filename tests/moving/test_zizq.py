"""The program that copies a Zizq, between two servers that speak its API."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conformance.client import JSON, Client
from conformance.site import Site

from zq.moving import zizq

MAX_BODY = 2 * 2**20
"""The largest request that the new server takes."""


@pytest.fixture
async def old(site: Site) -> AsyncIterator[Client]:
    async with Client(site, JSON) as client:
        yield client


@pytest.fixture
async def new(tmp_path: Path) -> AsyncIterator[Client]:
    site = Site(tmp_path / "new", {"max_body": MAX_BODY})
    await site.start()
    async with Client(site, JSON) as client:
        yield client
    await site.stop()


async def told(client: Client, method: str, path: str, body: object = None) -> Any:
    answer = await (client.get(path) if method == "GET" else client.call(method, path, body))
    assert answer.status < 300, answer.error
    return answer.doc


async def move(old: Client, new: Client) -> int:
    return await asyncio.to_thread(zizq.main, [old.site.url, new.site.url])


def kept(job: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in job.items() if name not in ("id", "created_at")}


async def test_what_waits_comes_in_order_and_only_once(
    old: Client, new: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = {"allocation": 2, "strategy": {"type": "while_in_flight"}}
    await told(old, "PUT", "/budgets/crm", limit)
    job = {"queue": "q", "type": "t", "payload": 1}
    entry = {"name": "night", "expression": "0 3 * * *", "timezone": "Europe/Berlin", "job": job}
    await told(old, "PUT", "/crons/shop", {"entries": [entry], "paused": True})
    later = old.site.clock.now_ms() + 3_600_000
    jobs: list[dict[str, Any]] = [{"payload": n} for n in range(zizq.PAGE)]
    jobs.append({"payload": {"a": None}, "priority": 3, "unique_key": "k", "retry_limit": 0})
    jobs.append({"payload": "später", "ready_at": later, "retention": {"dead_ms": 5_000}})
    jobs.append({"payload": 0, "budgets": [{"key": "crm", "cost": 2}]})
    waiting = [{"queue": "q", "type": "t", **job} for job in jobs]
    await told(old, "POST", "/jobs/bulk", {"jobs": waiting})
    held = {"queue": "held", "type": "t", "payload": None}
    await told(old, "POST", "/jobs", held)
    assert len((await told(old, "POST", "/queues/held/claim", {"holder": "me"}))["jobs"]) == 1

    for _ in range(2):
        assert await move(old, new) == 0
        assert capsys.readouterr().out.split("\n")[:-1] == [
            "       1 budgets copied",
            "       1 groups of schedules copied",
            "       1 in_flight jobs left",
            "    1003 jobs copied",
        ]
    was, now = [
        await told(client, "GET", "/jobs?limit=2000&status=ready,scheduled")
        for client in (old, new)
    ]
    assert [job["payload"] for job in now["jobs"]] == [job["payload"] for job in was["jobs"]]
    assert [kept(job) for job in now["jobs"][-3:]] == [kept(job) for job in was["jobs"][-3:]]
    (entry,) = (await told(new, "GET", "/crons/shop"))["entries"]
    assert (entry["expression"], entry["timezone"]) == ("0 3 * * *", "Europe/Berlin")


async def test_a_page_is_cut_into_requests_that_the_server_takes(old: Client, new: Client) -> None:
    # The Cyrillic text would be twice as large as a request if it was escaped.
    payloads = [*("a" * (MAX_BODY // 4) for _ in range(9)), *("ш" * (MAX_BODY // 3), "\U0001f41f")]
    for payload in payloads:
        await told(old, "POST", "/jobs", {"queue": "q", "type": "t", "payload": payload})
    assert await move(old, new) == 0
    jobs = (await told(new, "GET", "/jobs"))["jobs"]
    assert [job["payload"] for job in jobs] == payloads
