"""Large answers to clients that do not read them: a limit for all together, an end for each."""

import asyncio
from typing import Self

import pytest

from .client import Client, new_job, to_json
from .http2 import Broken, Exchange, Http2Connection
from .metrics import Scraper
from .raw import RawConnection
from .site import Site
from .streams import PATIENCE_S

MIB = 2**20
BIG = "x" * (8 * MIB - 2)
"""As large as a payload may be: more than the kernel's buffers of both sides hold."""

ANSWER_TIMEOUT_MS = 60_000
SMALL_BUFFER = 65_536
CLAIM = to_json({"holder": "me"})


class SlowReader:
    """A request whose answer is read when the test says so."""

    def __init__(self, connection: RawConnection | Http2Connection, exchange: Exchange | None):
        self.connection = connection
        self._exchange = exchange

    @classmethod
    async def ask(cls, client: Client, method: str, target: str, body: bytes = b"") -> Self:
        """Ask, and read the head of the answer, which is 200."""
        port = client.site.port
        if client.wire.http2:
            http2 = await Http2Connection.open(port, window=SMALL_BUFFER)
            exchange = http2.request(method, target, [], end=not body)
            if body:
                await exchange.send(body, end=True)
            assert (await exchange.head())[0] == 200
            return cls(http2, exchange)
        http1 = await RawConnection.open(port, SMALL_BUFFER)
        head = f"{method} {target} HTTP/1.1\r\nHost: q\r\nContent-Length: {len(body)}\r\n\r\n"
        await http1.send(head.encode() + body)
        assert (await http1.head())[0] == 200
        return cls(http1, None)

    async def read(self, size: int) -> None:
        """Read so many bytes of the body. Raises where the server has given up."""
        if self._exchange is None:
            assert isinstance(self.connection, RawConnection)
            await self.connection.read(size)
            return
        while size > 0:
            data = await self._exchange.chunk()
            assert data
            size -= len(data)

    async def close(self) -> None:
        await self.connection.close()


async def is_free(scrape: Scraper) -> None:
    """Wait until no answer is held any more."""
    await scrape.until(lambda metrics: metrics["zq_answer_bytes"] == 0)


@pytest.mark.settings(max_answer_bytes=20 * MIB)
async def test_answers_that_nobody_reads_hold_memory_up_to_a_bound(
    client: Client, scrape: Scraper
) -> None:
    job = await client.enqueue(queue="big", payload=BIG)
    target = f"/jobs/{job['id']}"
    readers = [await SlowReader.ask(client, "GET", target) for _ in range(2)]
    assert (await scrape())["zq_answer_bytes"] > 16 * MIB
    for refused in (
        await client.get(target),
        await client.get("/jobs"),
        await client.post("/queues/big/claim", {"holder": "me"}),
        await client.post("/jobs/bulk", {"jobs": [new_job(payload="x" * 500)] * 9_000}),
    ):
        assert (refused.status, refused.headers["zq-error"]) == (503, "answers_full")
        assert "--max-answer-bytes" in refused.error
        assert int(refused.headers["retry-after"]) >= 1
    # What was refused has changed nothing, and whatever is small goes on.
    await client.until_count(1, status="ready", attempts="0")
    assert await client.count() == 1
    held = await client.in_flight()
    await client.succeed(held["id"])
    assert (await client.get("/health")).status == 200
    # Room comes back with a reader that goes away, and with one that reads.
    await readers[0].close()
    await readers[1].read(8 * MIB)
    await is_free(scrape)
    assert (await client.get(target)).doc["payload"] == BIG
    (claimed,) = (await client.post("/queues/big/claim", {"holder": "me"})).doc["jobs"]
    assert claimed["payload"] == BIG
    await readers[1].close()


@pytest.mark.settings(max_answer_bytes=1)
async def test_a_single_answer_always_has_a_chance(client: Client) -> None:
    payload = client.overflow()
    job = await client.enqueue(payload=payload)
    assert (await client.get(f"/jobs/{job['id']}")).doc["payload"] == payload


async def test_who_takes_nothing_of_an_answer_is_cut_off(client: Client, scrape: Scraper) -> None:
    await scrape()  # its connection may rest from now on
    payload = client.overflow()
    job = await client.enqueue(payload=payload)
    reader = await SlowReader.ask(client, "GET", f"/jobs/{job['id']}")
    async with asyncio.timeout(PATIENCE_S):
        # The time begins when the kernel takes no more for this reader.
        while (await scrape())["zq_answer_bytes"]:
            client.site.clock.advance(ANSWER_TIMEOUT_MS // 10)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await reader.read(len(payload))
    await reader.close()


async def test_a_slow_reader_has_all_the_time_it_takes(client: Client, scrape: Scraper) -> None:
    await scrape()  # its connection may rest from now on
    payload = client.overflow()
    job = await client.enqueue(payload=payload)
    reader = await SlowReader.ask(client, "GET", f"/jobs/{job['id']}")
    for _ in range(16):
        await reader.read(len(payload) // 16)
        for _ in range(5):
            client.site.clock.advance(ANSWER_TIMEOUT_MS // 10)
            await client.count()
    await is_free(scrape)
    await reader.close()


async def test_a_claim_that_nobody_has_read_whole_goes_back_with_its_reader(
    client: Client, scrape: Scraper
) -> None:
    await scrape()  # its connection may rest from now on
    await client.enqueue(queue="big", payload=client.overflow())
    reader = await SlowReader.ask(client, "POST", "/queues/big/claim", CLAIM)
    await client.until_count(1, status="in_flight")
    for _ in range(20):
        # Less than the lease lasts, which would end it too.
        client.site.clock.advance(1_000)
        await client.count()
    assert await client.count(status="in_flight") == 1
    await reader.close()
    await client.until_count(1, status="ready", attempts="0")
    await is_free(scrape)


async def test_a_peer_without_a_window_does_not_hold_its_answers_for_ever(
    site: Site, scrape: Scraper
) -> None:
    await scrape()  # its connection may rest from now on
    connection = await Http2Connection.open(site.port, window=0)
    exchanges = [connection.request("GET", "/queues", [], end=True) for _ in range(100)]
    for exchange in exchanges:
        assert (await exchange.head())[0] == 200
    await scrape.until(lambda metrics: metrics["zq_answer_bytes"] >= 100 * len('{"queues":[]}'))
    for _ in range(20):
        site.clock.advance(ANSWER_TIMEOUT_MS // 10)
        await scrape()
    for exchange in exchanges:
        with pytest.raises(Broken):
            await exchange.chunk()
    await is_free(scrape)
    await connection.close()
