"""Threads, processes and event loops: each opens connections of its own, and so do copies."""

import asyncio
import multiprocessing
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

from zq.client.app import App
from zq.client.backend import run
from zq.client.http.address import Address
from zq.client.http.backend import HttpBackend
from zq.client.values import Submission

from .connections import accepted


async def test_threads_do_not_share_a_connection(site: Site) -> None:
    backend = HttpBackend(Address(site.url)).blocking
    barrier = threading.Barrier(4)
    counts: list[int] = []

    def count() -> None:
        barrier.wait(PATIENCE_S)
        counts.extend(run(backend.count()) for _ in range(10))

    await asyncio.gather(*(asyncio.to_thread(count) for _ in range(4)))

    assert counts == [0] * 40
    await backend.close()


def enqueue_here(app: App, name: str, results: Any) -> None:
    results.put(app.queue("q").sync.enqueue(name, name).status)


@pytest.mark.parametrize("method", ["fork", "spawn"])
async def test_a_child_process_opens_its_own_connections(site: Site, method: Any) -> None:
    app = App(site.url)
    # A connection is open, and idle, when the child is made.
    await asyncio.to_thread(enqueue_here, app, "parent", multiprocessing.Queue())
    before = accepted(site)
    context = multiprocessing.get_context(method)
    results = context.Queue()
    child = context.Process(target=enqueue_here, args=(app, "child", results), daemon=True)
    child.start()

    assert await asyncio.to_thread(results.get, timeout=PATIENCE_S) == "queued"
    await asyncio.to_thread(child.join, PATIENCE_S)
    assert accepted(site) == before + 1
    assert (await asyncio.to_thread(app.queue("q").sync.enqueue, "parent", 1)).status == "duplicate"
    assert accepted(site) == before + 1
    await app.close()


async def test_a_fork_leaves_the_connections_of_the_parents_loop_alone(site: Site) -> None:
    before = accepted(site)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(Path(__file__).with_name("forking.py")), site.url),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        said, _ = await process.communicate()

    assert said.decode().split() == ["queued", "queued", "duplicate"]
    # Each has one connection, which the parent can still hear.
    assert accepted(site) == before + 2


def add(a: int, b: int) -> int:
    return a + b


async def test_what_programs_pass_to_executors_can_be_pickled(site: Site) -> None:
    app = App(site.url, token="secret")
    task, queue = app.task(add), app.queue("q", payload=Submission, result=set)
    queue.handler(lambda _payload: None)
    job = await task.options(key="k").enqueue(1, 2)

    copied = pickle.loads(pickle.dumps((app, task, queue.sync, job)))
    copied_app, copied_task, copied_queue, copied_job = copied

    assert (await copied_task.options(key="k").enqueue(1, 2)).id == job.id
    assert await asyncio.to_thread(copied_queue.result, "a", None) is None
    assert await copied_job.cancel() == "cancelled"
    assert copied_app.backend._address == Address(site.url, "secret")
    assert "secret" not in repr(copied_app.backend._address)
    for each in (app, copied_app, copied_task.core, copied_queue._queue.core):
        await each.backend.close()
        await each.backend.blocking.close()


async def test_an_event_loop_after_another_gets_its_own_session(site: Site) -> None:
    backend = HttpBackend(Address(site.url))

    def elsewhere() -> int:
        async def count() -> int:
            found = await backend.count()
            await backend.close()
            return found

        return asyncio.run(count())

    assert await asyncio.to_thread(elsewhere) == 0
    assert await asyncio.to_thread(elsewhere) == 0
    assert await backend.count() == 0
    await backend.close()
