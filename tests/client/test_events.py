"""The events of jobs in programs, and the progress that handlers report."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause

import zq
from zq.client.app import App

from .conftest import working
from .relay import Relay


async def listening(
    site: Site, events: AsyncGenerator[zq.JobEvent, None]
) -> "asyncio.Task[zq.JobEvent]":
    """The next event, waited for by the first one who listens."""
    task = asyncio.create_task(anext(events))
    async with asyncio.timeout(PATIENCE_S):
        while not site.server.engine.events.listens:
            await pause()
    return task


async def test_a_job_is_followed_to_its_end(app: App, site: Site) -> None:
    go_on = asyncio.Event()

    @app.task
    async def work(n: int) -> None:
        await go_on.wait()
        await zq.current_job().progress({"n": n})

    job = await work.enqueue(7)
    other = await work.options(delay=3600).enqueue(8)
    followed = job.events()
    first = await listening(site, followed)
    async with working(app):
        go_on.set()
        async with asyncio.timeout(PATIENCE_S):
            told = [await first, *[event async for event in followed]]

    assert [event.type for event in told] == ["started", "progress", "completed"]
    assert told[1].data == {"n": 7}
    assert {event.id for event in told} == {job.id}
    # Of what has ended, and of what is gone, nothing more can come.
    assert [event async for event in job.events()] == []
    assert await other.cancel() == "cancelled"
    assert [event async for event in other.events()] == []


async def test_a_thread_tells_of_its_progress_too(app: App, site: Site) -> None:
    @app.task
    def work() -> None:
        zq.current_job().progress_sync(0.5)

    async with aclosing(app.events(types="progress")) as events:
        first = await listening(site, events)
        await work.enqueue()
        async with working(app):
            told = await asyncio.wait_for(first, PATIENCE_S)
    assert (told.type, told.data) == ("progress", 0.5)


@pytest.mark.parametrize("by_proxy", [False, True], ids=["plain", "proxy"])
async def test_what_happens_while_the_network_is_down_is_told_later(
    site: Site, by_proxy: bool
) -> None:
    async with Relay.to(site) as relay, App(relay.url) as app, App(site.url) as direct:
        queue, there = app.queue("mail"), direct.queue("mail")
        async with aclosing(app.events(queue="mail", types=["enqueued"])) as events:
            first = await listening(site, events)
            await queue.enqueue("a", 1)
            seen = [(await first).key]
            refused = relay.fail("/events", "refused") if by_proxy else None
            relay.cut()
            await there.enqueue("b", 1)
            await direct.queue("other").enqueue("x", 1)
            await there.enqueue("c", 1)
            async with asyncio.timeout(PATIENCE_S):
                seen += [(await anext(events)).key for _ in range(2)]
    assert seen == ["mail,a", "mail,b", "mail,c"]
    assert refused is None or refused.is_set()


async def test_a_program_goes_on_where_it_was(app: App, site: Site) -> None:
    queue = app.queue("mail")
    async with aclosing(app.events()) as events:
        first = await listening(site, events)
        await queue.enqueue("a", 1)
        place = (await first).event_id
    await queue.enqueue("b", 1)
    async with aclosing(app.events(since=place)) as events:
        assert (await asyncio.wait_for(anext(events), PATIENCE_S)).key == "mail,b"


async def test_where_nobody_is_there_is_nothing_to_hear() -> None:
    async with App("http://127.0.0.1:1") as app:
        with pytest.raises(zq.Unavailable):
            await anext(app.events())


async def test_an_embedded_queue_tells_too_and_stays_closed(tmp_path: Path) -> None:
    async with zq.App(f"sqlite://{tmp_path}/data") as app:
        queue = app.queue("mail")
        events = app.events(queue="mail")
        first = asyncio.create_task(anext(events))
        keys: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while not first.done():
                await queue.enqueue(key := f"a{len(keys)}", 1)
                keys.append(f"mail,{key}")
        assert first.result().key in keys
    await events.aclose()
    with zq.App(f"sqlite://{tmp_path}/data") as other:
        assert other.queue("mail").sync.status("a0") is not None
