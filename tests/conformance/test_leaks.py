"""Connections and requests come and go, and leave nothing behind."""

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path

from zq.http.transport.answer import Answer

from .client import JSON, Client
from .raw import RawConnection
from .site import Site
from .streams import PATIENCE_S, pause


def usage(site: Site) -> tuple[int, int]:
    """Descriptors of this process, which runs the server too, and tasks of the loop.

    Connections to the store are left out: there are a dozen at most, which are opened when they
    are first needed.
    """
    gc.collect()
    to_store = site.connections()
    return len(list(Path("/proc/self/fd").iterdir())) - to_store, len(asyncio.all_tasks())


async def cycle(site: Site, number: int) -> None:
    """One worker's life, which ends in one of the ways in which they end."""
    async with await RawConnection.open(site.port) as stream:
        await stream.send(b"GET /jobs/take?prefetch=3 HTTP/1.1\r\nHost: q\r\n\r\n")
        assert (await stream.head())[0] == 200
        await stream.chunk()
        match number % 3:
            case 0:
                await stream.reset()
            case 1:
                stream.half_close()
                await stream.rest()


async def test_fifty_streams_leave_no_descriptor_task_or_job_behind(site: Site) -> None:
    async with Client(site, JSON) as client:
        await client.enqueue_many(10, payload="x" * 10_000)
        for number in range(3):  # whatever is created once is created now
            await cycle(site, number)
        await client.until_count(10, status="ready")
        before = usage(site)
        for number in range(50):
            await cycle(site, number)
        await client.until_count(10, status="ready")
        async with asyncio.timeout(PATIENCE_S):
            # The third life may not have been over when it was looked.
            while any(now > then for now, then in zip(usage(site), before, strict=True)):
                await pause()
        assert await client.count(status="in_flight") == 0


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """The garbage collector does not run: what goes, goes because nothing knows it any more."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def answers() -> int:
    """How many answers are in memory."""
    # Not by `isinstance`: that makes proxies load the objects for which they stand.
    return sum(type(thing) is Answer for thing in gc.get_objects())


async def test_the_answer_of_a_bulk_goes_when_it_is_sent(client: Client) -> None:
    async def bulk() -> None:
        # Larger than one read of a socket: its handler begins before all of it is there.
        await client.enqueue_many(2_000, payload="x" * 500)

    await bulk()
    with without_collections():
        before = answers()
        for _ in range(10):
            await bulk()
        assert answers() <= before + 1  # the last one may still be on its way out
