"""Large bodies of new jobs wait for their turn as bytes, and other requests pass them."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from zq.http.api.endpoints import JOB_BYTES
from zq.http.bulk_line import PATIENCE_S, TURN_BYTES, BulkLine
from zq.model.commands import Tick, TickResult

from .client import JSON, JSON_HTTP2, Client, new_job, to_json
from .metrics import Metrics, Scraper
from .raw import RawConnection, RawReply
from .site import Site

JOBS = 30
BULK = {"jobs": [new_job(queue="bulk", payload="x" * 100)] * JOBS}
BODY = to_json(BULK)
REQUEST = (
    b"POST /jobs/bulk HTTP/1.1\r\nHost: q\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)
INBOX = 100

pytestmark = pytest.mark.settings(max_inbox_jobs=INBOX)


class Producers:
    """Each with a connection of its own, on which it posts one bulk."""

    def __init__(self, site: Site, stack: contextlib.AsyncExitStack) -> None:
        self._site = site
        self._stack = stack
        self.connections: list[RawConnection] = []

    async def post(self, number: int) -> None:
        for _ in range(number):
            connection = await RawConnection.open(self._site.port)
            await self._stack.enter_async_context(connection)
            await connection.send(REQUEST)
            self.connections.append(connection)

    async def replies(self) -> list[RawReply]:
        return [await connection.reply() for connection in self.connections]


@pytest.fixture
async def producers(site: Site) -> AsyncIterator[Producers]:
    async with contextlib.AsyncExitStack() as stack:
        yield Producers(site, stack)


async def all_arrived(scrape: Scraper, bodies: int) -> None:
    """Wait for bodies. The jobs of those that no longer wait count besides."""

    def told(metrics: Metrics) -> bool:
        jobs, rest = divmod(metrics["zq_inbox_bytes"] - bodies * len(BODY), JOBS * JOB_BYTES)
        return jobs >= 0 and not rest

    await scrape.until(told)


@contextlib.contextmanager
def slow_tick(site: Site) -> Iterator[None]:
    """No tick begins while this lasts. Unlike a lock, it is waited for without end."""
    store: Any = site.server._core._store
    run, over = store.tick, asyncio.Event()

    async def tick(wanted: Tick) -> TickResult:
        await over.wait()
        result: TickResult = await run(wanted)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "tick", tick)
        yield
    over.set()


def first_id(reply: Any) -> str:
    assert reply.status == 201
    id: str = reply.doc["jobs"][0]["id"]
    return id


async def test_bulks_beyond_the_next_tick_wait_and_are_stored(
    site: Site, scrape: Scraper, producers: Producers
) -> None:
    with site.busy():
        await producers.post(20)
        await all_arrived(scrape, 20)
        # Half the inbox is left for others.
        assert (await scrape())["zq_inbox_jobs"] < INBOX / 2 + JOBS
    assert {reply.status for reply in await producers.replies()} == {201}
    async with Client(site, JSON) as client:
        assert await client.count() == 20 * JOBS
    assert (await scrape())["zq_inbox_bytes"] == 0


async def test_a_small_enqueue_and_an_acknowledgement_pass_the_bulks_that_wait(
    site: Site, scrape: Scraper, producers: Producers
) -> None:
    async with Client(site, JSON) as client:
        held = await client.in_flight()
        with site.busy():
            await producers.post(20)
            await all_arrived(scrape, 20)
            before = await scrape()
            single = asyncio.create_task(client.enqueue(queue="single"))
            success = asyncio.create_task(client.post("/jobs/success", {"ids": [held["id"]]}))
            await scrape.until(
                lambda metrics: (
                    metrics["zq_inbox_jobs"] == before["zq_inbox_jobs"] + 1
                    and metrics["zq_inbox_changes"] == 1
                )
            )
        assert (await success).status == 204
        passed = [
            reply for reply in await producers.replies() if first_id(reply) > (await single)["id"]
        ]
        # One was in the tick, two in the inbox.
        assert len(passed) == 20 - 3


async def test_connections_take_turns(site: Site, scrape: Scraper, producers: Producers) -> None:
    async with Client(site, JSON_HTTP2) as greedy:
        with site.busy():
            many = [asyncio.create_task(greedy.post("/jobs/bulk", BULK)) for _ in range(10)]
            await all_arrived(scrape, 10)
            await producers.post(1)
            await all_arrived(scrape, 11)
        (reply,) = await producers.replies()
        later = [
            other for other in await asyncio.gather(*many) if first_id(other) > first_id(reply)
        ]
        # Of ten, one was in the tick, two in the inbox; one more had waited longer.
        assert len(later) == 10 - 3 - 1


async def test_whoever_goes_away_gives_up_its_turn_and_its_memory(
    site: Site, scrape: Scraper, producers: Producers
) -> None:
    with site.busy():
        await producers.post(10)
        await all_arrived(scrape, 10)
        for _ in range(2):
            await producers.connections.pop().reset()
        await all_arrived(scrape, 8)
    await producers.replies()
    async with Client(site, JSON) as client:
        assert await client.count() == 8 * JOBS


async def test_more_are_refused_while_others_wait_too_long(
    site: Site, scrape: Scraper, producers: Producers
) -> None:
    async with Client(site, JSON) as client:
        with slow_tick(site):
            await producers.post(4)
            await all_arrived(scrape, 4)
            site.clock.advance(int(PATIENCE_S * 1000) + 1)
            reply = await client.post("/jobs/bulk", BULK)
            assert reply.status == 503
            assert reply.headers["retry-after"] == "1"
            await all_arrived(scrape, 4)
        await producers.replies()
        assert (await client.post("/jobs/bulk", BULK)).status == 201


async def test_the_loop_turns_between_large_bodies(site: Site) -> None:
    turns = BulkLine(site.server.engine.inbox, site.clock)
    waiting = {asyncio.create_task(turns.take(line, TURN_BYTES)) for line in range(5)}
    left = [5]
    while waiting:
        await asyncio.sleep(0)
        waiting = {task for task in waiting if not task.done()}
        left.append(len(waiting))
    assert all(before - after <= 1 for before, after in itertools.pairwise(left))
