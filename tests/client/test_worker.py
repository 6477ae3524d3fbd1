"""The worker: which jobs it takes, how many run at a time, and what their handlers see."""

import asyncio
import threading
from typing import Any

import pytest
from aiohttp import ClientSession
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause

import zq
from zq.client.app import App
from zq.client.values import JobQuery

from .conftest import working
from .workers import finish, pass_time


async def test_so_many_jobs_run_at_a_time_and_no_more(app: App) -> None:
    running = 0
    most = 0
    all_in, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            all_in.set()
        await go_on.wait()
        running -= 1

    await work.enqueue_many([work.args()] * 9)
    finishing = asyncio.create_task(finish(app, concurrency=3, prefetch=9))
    await all_in.wait()
    go_on.set()

    assert len(await finishing) == 9
    assert most == 3


async def test_ordinary_functions_run_in_threads_beside_the_loop(app: App) -> None:
    barrier = threading.Barrier(3, timeout=PATIENCE_S)
    names = set()

    @app.task
    def work(n: int) -> int:
        barrier.wait()
        names.add(threading.current_thread().name)
        assert zq.current_job().payload["args"] == [n]
        return n

    jobs = await work.enqueue_many(work.args(n) for n in range(3))
    await finish(app, concurrency=3)

    assert [await job.result() for job in jobs] == [0, 1, 2]
    assert len(names) == 3
    assert threading.main_thread().name not in names


async def test_what_a_handler_sees_of_its_job(app: App, site: Site) -> None:
    seen: dict[str, Any] = {}

    @app.task(queue="q", max_attempts=2)
    async def work(n: int) -> None:
        job = zq.current_job()
        names = ("id", "type", "queue", "key", "attempt", "max_attempts", "group", "user", "params")
        seen.update({name: getattr(job, name) for name in names})
        seen["created_ms"] = job.created_at.timestamp() * 1000
        assert not job.cancelled.is_set()
        seen["job"] = job
        raise ValueError("no")

    job = await work.options(key="k").enqueue(1)
    await finish(app)
    await pass_time(app, site, 10_000)
    await finish(app)

    finished = seen.pop("job")
    assert seen == {
        "id": job.id,
        "type": "work",
        "queue": "q",
        "key": "k",
        "attempt": 2,
        "max_attempts": 2,
        "group": None,
        "user": None,
        "params": {},
        "created_ms": site.now - 10_000,
    }
    assert finished.cancelled.is_set()
    with pytest.raises(LookupError):
        zq.current_job()


async def test_a_worker_says_how_much_it_does_at_a_time(app: App, site: Site) -> None:
    app.task(lambda: None)
    async with working(app, concurrency=3, prefetch=7, worker_id="w"), ClientSession() as http:
        workers: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE_S):
            while not workers:
                async with http.get(f"{site.url}/workers") as answer:
                    workers = (await answer.json())["workers"]

    (told,) = workers
    assert (told["id"], told["concurrency"], told["prefetch"]) == ("w", 3, 7)


async def test_a_worker_takes_from_the_queues_that_it_is_told(app: App) -> None:
    done = []

    @app.task(queue="a")
    async def first() -> None:
        done.append("a")

    @app.task(queue="b")
    async def second() -> None:
        done.append("b")

    await first.enqueue()
    await second.enqueue()
    assert zq.Worker(app).queues == ["a", "b"]
    await finish(app, queues=["b"])

    assert done == ["b"]


async def test_messagepack_carries_the_same(site: Site) -> None:
    value = {"text": "ž", "big": 2**63, "list": [1.5, None, True], "raw": "AP8="}
    async with App(site.url, codec=zq.MSGPACK) as app:

        @app.task
        async def echo(given: dict[str, Any], raw: bytes) -> list[Any]:
            return [given, raw]

        jobs = await echo.enqueue_many([echo.args(value, b"\0\xff")] * 3)
        await finish(app, concurrency=2)

        assert [await job.result() for job in jobs] == [[value, "AP8="]] * 3


async def test_two_workers_share_the_jobs_of_a_queue(app: App) -> None:
    done: list[int] = []
    both = asyncio.Barrier(2)

    @app.task
    async def work(n: int) -> None:
        done.append(n)
        if n < 2:
            await both.wait()

    await work.enqueue_many(work.args(n) for n in range(20))
    async with working(app, prefetch=1), working(app, prefetch=1):
        async with asyncio.timeout(PATIENCE_S):
            while await app.backend.count(JobQuery(statuses=("completed",))) != 20:
                await pause()

    assert sorted(done) == list(range(20))
