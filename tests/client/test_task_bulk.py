"""Many calls of a task at once: their order, their requests, and what ends them early."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.http.address import Address
from zq.client.http.aio import AioTransport
from zq.client.http.backend import HttpBackend
from zq.client.http.transport import Reply, Request
from zq.client.task import CHUNK


async def test_many_calls_are_stored_in_their_order(app: App) -> None:
    @app.task
    async def work(n: int) -> None: ...

    jobs = await work.enqueue_many(work.args(n) for n in range(2 * CHUNK + 1))

    assert len({job.id for job in jobs}) == 2 * CHUNK + 1
    assert [job.id for job in jobs] == sorted(job.id for job in jobs)
    page = await app.backend.jobs(after=jobs[CHUNK - 2].id, limit=3)
    assert [job.payload["args"] for job in page.jobs] == [[CHUNK - 1], [CHUNK], [CHUNK + 1]]
    assert await work.enqueue_many([]) == []
    more = await asyncio.to_thread(work.enqueue_many_sync, [work.args(1)])
    assert len(more) == 1


@pytest.mark.settings(max_bulk_items=300, max_body=100_000)
async def test_many_calls_go_in_smaller_requests_where_the_server_asks_for_it(app: App) -> None:
    @app.task
    async def work(text: str) -> None: ...

    jobs = await work.enqueue_many([work.args("x" * 500)] * CHUNK)

    assert [job.id for job in jobs] == sorted(job.id for job in jobs)
    assert await app.backend.count() == CHUNK


@pytest.mark.settings(max_bulk_bytes=100_000)
async def test_many_large_calls_go_in_requests_that_are_stored_in_one_go(app: App) -> None:
    @app.task
    async def work(text: str) -> None: ...

    jobs = await work.enqueue_many([work.args("x" * 1_000)] * 300)

    assert len(jobs) == await app.backend.count() == 300


@pytest.mark.settings(max_payload=1000)
async def test_a_refusal_tells_how_many_calls_were_stored_before(app: App) -> None:
    @app.task
    async def work(text: str) -> None: ...

    calls = [work.args("")] * CHUNK + [work.args("x" * 2000)] + [work.args("")] * CHUNK
    with pytest.raises(zq.BackendError) as refused:
        await work.enqueue_many(calls)

    assert refused.value.code == "payload_too_large"
    assert refused.value.__notes__ == [f"{CHUNK} of the jobs were stored before that"]
    assert await app.backend.count() == CHUNK


async def test_the_next_request_is_made_while_the_server_has_the_one_before(site: Site) -> None:
    made = asyncio.Event()
    bulks = 0

    class Slow(AioTransport):
        async def send(self, request: Request) -> Reply:
            nonlocal bulks
            bulks += 1
            reply = await super().send(request)
            if bulks == 1:
                async with asyncio.timeout(PATIENCE_S):
                    await made.wait()
                assert bulks == 1
            return reply

    address = Address(site.url)
    app = App(backend=HttpBackend(address, Slow(address)))

    @app.task
    async def work(n: int) -> None: ...

    def calls() -> Iterator[Any]:
        for n in range(2 * CHUNK):
            if n == CHUNK:
                made.set()
            yield work.args(n)

    async with app:
        assert len(await work.enqueue_many(calls())) == 2 * CHUNK
    assert bulks == 2


async def test_calls_that_end_in_an_error_leave_those_before_it(app: App) -> None:
    @app.task
    async def work(n: int) -> None: ...

    def calls() -> Iterator[Any]:
        for n in range(CHUNK + 1):
            yield work.args(n)
        raise LookupError

    with pytest.raises(LookupError) as ended:
        await work.enqueue_many(calls())

    assert ended.value.__notes__ == [f"{CHUNK} of the jobs were stored before that"]
    assert await app.backend.count() == CHUNK
