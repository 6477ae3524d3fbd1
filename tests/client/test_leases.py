"""Leases: renewed while the worker lives, lost when it hangs; notices; returns by name."""

import asyncio

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause

import zq
from zq.client.app import App
from zq.client.http.backend import HttpBackend
from zq.client.values import Delivery, Held, JobQuery, Notice, RefusedItems, Submission, TakeRequest
from zq.client.worker import supply

from .conftest import Caller, Take, working
from .relay import Relay
from .workers import until_delivered, until_leased, until_ready


async def test_a_job_may_take_many_times_its_lease(app: App, site: Site) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    runs = 0

    @app.task
    async def slow() -> str:
        nonlocal runs
        runs += 1
        begun.set()
        await go_on.wait()
        return "done"

    async with working(app, lease=0.3, prefetch=3):
        # The second is held here too, and waits for the first.
        jobs = await slow.enqueue_many([slow.args()] * 2)
        await begun.wait()
        for _ in range(5):
            site.clock.advance(200)
            for job in jobs:
                await until_leased(app, job.id, site.now + 300)
        go_on.set()
        assert [await job.result(PATIENCE_S) for job in jobs] == ["done", "done"]

    assert runs == 2


async def test_a_silent_connection_costs_one_renewal(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zq.client.http.backend.TIMEOUT_S", 3600.0)
    begun, go_on = asyncio.Event(), asyncio.Event()
    async with Relay.to(site) as relay, App(relay.url) as app, App(site.url) as near:

        @app.task
        async def slow() -> str:
            begun.set()
            await go_on.wait()
            return "done"

        job = await slow.enqueue()
        silent = relay.fail("/jobs/extend", "silent")
        async with working(app, lease=0.3):
            async with asyncio.timeout(PATIENCE_S):
                await begun.wait()
                await silent.wait()
            site.clock.advance(200)
            await until_leased(near, job.id, site.now + 300)
            go_on.set()
            assert await job.result(PATIENCE_S) == "done"


async def test_a_lost_lease_ends_its_execution_and_the_job_comes_again(
    app: App, site: Site
) -> None:
    begun: asyncio.Queue[int | None] = asyncio.Queue()
    told: asyncio.Queue[str | None] = asyncio.Queue()
    app.on("stalled")(lambda event: told.put_nowait(event.id))
    ended = []

    @app.task
    async def work() -> str:
        job = zq.current_job()
        begun.put_nowait(job.delivery.lease)
        try:
            if job.delivery.lease == 1:
                await asyncio.Event().wait()
        finally:
            ended.append(job.attempt)
        return "done"

    job = await work.enqueue()
    async with working(app, lease=30):
        assert await asyncio.wait_for(begun.get(), PATIENCE_S) == 1
        # Seen from the server, the worker has been silent for longer than it may.
        site.clock.advance(30_001)
        assert await asyncio.wait_for(begun.get(), PATIENCE_S) == 2
        assert await job.result(PATIENCE_S) == "done"

    assert await told.get() == job.id
    # Neither execution has failed.
    assert ended == [1, 1]
    assert await app.backend.errors(job.id) == []


async def test_a_job_that_is_cancelled_by_force_is_stopped(app: App) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    told: asyncio.Queue[str | None] = asyncio.Queue()
    app.on("cancelled")(lambda event: told.put_nowait(event.id))

    @app.task
    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    job = await work.enqueue()
    async with working(app):
        await begun.wait()
        assert await job.cancel(force=True) == "cancelled"
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
        assert await asyncio.wait_for(told.get(), PATIENCE_S) == job.id

    assert (await app.backend.get(job.id)).status == "cancelled"


async def test_a_cancelled_job_that_has_not_begun_never_does(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A worker gives back what it is late with, which may then come in another order.
    monkeypatch.setattr(supply, "BEHIND_S", PATIENCE_S)
    begun, go_on = asyncio.Event(), asyncio.Event()
    runs = []

    @app.task
    async def work(n: int) -> int:
        runs.append(n)
        begun.set()
        await go_on.wait()
        return n

    jobs = await work.enqueue_many(work.args(n) for n in range(3))
    async with working(app, prefetch=3):
        await begun.wait()
        assert await jobs[1].cancel(force=True) == "cancelled"
        # Notices come in order, so a later job tells that this one has been read.
        last = await work.enqueue(3)
        go_on.set()
        assert await last.result(PATIENCE_S) == 3

    assert runs == [0, 2, 3]


async def test_who_drains_a_worker_from_outside_makes_it_end_in_good_order(app: App) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        begun.set()
        await go_on.wait()

    await work.enqueue_many([work.args()] * 3)
    worker = zq.Worker(app, prefetch=2, worker_id="a b/c")
    running = asyncio.create_task(worker.run())
    await begun.wait()
    await app.backend.drain("a b/c")
    async with asyncio.timeout(PATIENCE_S):
        while await app.backend.count(JobQuery(statuses=("ready",))) != 2:
            await pause()
    go_on.set()
    report = await running

    assert (report.finished, len(report.returned)) == (1, 1)


async def test_what_has_not_begun_goes_to_others_while_the_rest_finishes(app: App) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def work(n: int) -> int:
        if n == 0:
            begun.set()
            await go_on.wait()
        return n

    jobs = await work.enqueue_many(work.args(n) for n in range(4))
    leaving = zq.Worker(app, prefetch=4)
    running = asyncio.create_task(leaving.run())
    await begun.wait()
    stopping = asyncio.create_task(leaving.stop())
    async with working(app):
        assert [await job.result(PATIENCE_S) for job in jobs[1:]] == [1, 2, 3]
        assert not running.done()
        go_on.set()
        await stopping

    assert await jobs[0].result() == 0
    assert (await running).returned == [job.id for job in jobs[1:]]


@pytest.mark.parametrize("trouble", ["the stream breaks", "a request is lost"])
async def test_a_worker_that_stops_keeps_no_job_that_it_does_not_run(
    site: Site, trouble: str
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    runs: list[int] = []
    async with Relay.to(site) as relay, App(relay.url) as app, App(site.url) as near:

        @app.task
        async def work(n: int) -> int:
            runs.append(n)
            if n == 0:
                begun.set()
                await go_on.wait()
            return n

        near.task(work.function)
        jobs = await work.enqueue_many(work.args(n) for n in range(3))
        leaving = zq.Worker(app, prefetch=3, lease=30)
        running = asyncio.create_task(leaving.run())
        await begun.wait()
        refused = None if trouble == "the stream breaks" else relay.fail("/drain", "refused")
        stopping = asyncio.create_task(leaving.stop(PATIENCE_S))
        if refused is None:
            await until_ready(near, 2)
            relay.cut()
            await until_delivered(site, 6)
        else:
            await refused.wait()
            await until_delivered(site, 5)
        async with working(near), asyncio.timeout(PATIENCE_S):
            assert [await near.job(job.id).result(PATIENCE_S) for job in jobs[1:]] == [1, 2]
        assert not running.done()
        go_on.set()
        await stopping
        assert await near.job(jobs[0].id).result() == 0

    assert runs == [0, 1, 2]
    assert (await running).returned == [job.id for job in jobs[1:]]


async def test_what_a_stopping_worker_could_not_give_back_yet_does_not_stall(
    site: Site,
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    async with Relay.to(site) as relay, App(relay.url) as app, App(site.url) as near:

        @app.task
        async def work() -> None:
            begun.set()
            await go_on.wait()

        jobs = await work.enqueue_many([work.args()] * 2)
        leaving = zq.Worker(app, prefetch=2, lease=0.3)
        running = asyncio.create_task(leaving.run())
        await begun.wait()
        lost = relay.fail("/drain", "silent")
        stopping = asyncio.create_task(leaving.stop(PATIENCE_S))
        await asyncio.wait_for(lost.wait(), PATIENCE_S)
        for _ in range(3):
            site.clock.advance(200)
            for job in jobs:
                await until_leased(near, job.id, site.now + 300)
        relay.hang_up()
        await until_ready(near, 1)
        go_on.set()
        await stopping

    assert (await running).returned == [jobs[1].id]


async def test_a_handler_may_hold_its_job_for_longer(app: App, site: Site) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> str:
        await zq.current_job().extend(100)
        begun.set()
        await go_on.wait()
        return "done"

    async with working(app, lease=30):
        job = await work.enqueue()
        await begun.wait()
        site.clock.advance(90_000)
        go_on.set()
        assert await job.result(PATIENCE_S) == "done"
    assert (await app.backend.get(job.id)).attempts == 0


async def test_deliveries_are_held_longer_and_given_back_by_name(
    call: Caller, take: Take, site: Site
) -> None:
    await call(call.backend.enqueue([Submission("q", "t", n) for n in range(3)]))
    first, second, third = await take(3)
    held = [Held(each.id, each.lease) for each in (first, second)]

    refused = await call(call.backend.extend([*held, Held(third.id, 9)], 60_000))
    assert refused == RefusedItems(stale=[third.id])
    assert await call(call.backend.release(held, 5_000)) == RefusedItems()
    assert await call(call.backend.release(held)) == RefusedItems(stale=[first.id, second.id])

    scheduled = await call(call.backend.get(first.id))
    assert (scheduled.status, scheduled.attempts) == ("scheduled", 0)
    assert scheduled.ready_at == site.now + 5_000
    with pytest.raises(zq.BackendError) as unknown:
        await call(call.backend.drain("nobody"))
    assert unknown.value.status == 404


@pytest.mark.parametrize("codec", [zq.JSON, zq.MSGPACK], ids=lambda codec: str(codec.content_type))
async def test_notices_come_between_jobs_in_both_formats(site: Site, codec: zq.Codec) -> None:
    async with App(site.url, codec=codec) as app:
        backend = app.backend
        assert isinstance(backend, HttpBackend)
        stream = await backend.take(TakeRequest(("q",), 2, "w"))
        tricky = {"control": "cancel", "text": '\n{"control":'}
        (stored,) = await backend.enqueue([Submission("q", "t", tricky)])
        (job,) = await stream.deliveries()
        assert isinstance(job, Delivery)
        assert job.payload == tricky
        await backend.cancel(stored.id, force=True)
        await backend.enqueue([Submission("q", "t", tricky)])
        seen: list[Delivery | Notice] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(seen) < 2:
                seen += await stream.deliveries()
        await backend.drain("w")
        seen += await stream.deliveries()
        await stream.close()

    assert seen[0] == Notice("cancel", stored.id, job.lease)
    assert isinstance(seen[1], Delivery)
    assert seen[2] == Notice("drain")
