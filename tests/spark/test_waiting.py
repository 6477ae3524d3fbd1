"""What waits at servers now, for the report."""

import asyncio

import pytest
from conformance.site import Site

import zq
from bench.ports import free_port
from zq.client.values import Submission
from zq.spark.errors import StatsUnread
from zq.spark.report.waiting import WaitingQueue, ask


async def test_servers_tell_every_queue_with_unfinished_jobs(site: Site) -> None:
    async with zq.App(site.url) as app:
        ready = Submission("mail", "send", None)
        later = Submission("mail", "send", None, ready_at=site.now + 60_000)
        await app.backend.enqueue([ready, ready, later])
        found = await asyncio.to_thread(ask, [site.url, site.url], None)

    assert found.servers == [site.url, site.url]
    assert found.queues == [WaitingQueue("mail", 4, 2, 0)]


async def test_a_server_that_cannot_be_asked_is_told() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(StatsUnread, match=f"{url} does not tell what waits there: "):
        await asyncio.to_thread(ask, [url], None)
