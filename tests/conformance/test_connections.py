"""Limits on connections and their times: too many, too slow, silent."""

import asyncio
import contextlib
import json

import pytest

from zq.http.transport.gate import MOST_TURNED_AWAY, peer_of
from zq.http.transport.h2.frames import PREFACE, FrameKind, whole
from zq.http.transport.turns import CROWD, UNCOUNTED

from .client import JSON, Client, Wire, new_job
from .metrics import Scraper
from .raw import RawConnection, RawReply
from .site import Site
from .streams import PATIENCE_S, pause

HEALTH = b"GET /health HTTP/1.1\r\nHost: q\r\n\r\n"
TAKE = b"GET /jobs/take HTTP/1.1\r\nHost: q\r\n\r\n"
HEADER_TIMEOUT_MS = 10_000
BODY_TIMEOUT_MS = 30_000

ENOUGH_TURNS = 100
"""Of the event loop: an answer comes within far fewer."""


@pytest.fixture
def wire() -> Wire:
    """None of this depends on the format."""
    return JSON


async def test_of_a_crowd_that_asks_at_once_those_that_stay_are_answered(site: Site) -> None:
    """More ask than may begin in one turn of the loop. Every third one is gone before its turn."""
    async with contextlib.AsyncExitStack() as stack:
        crowd = [
            await stack.enter_async_context(await RawConnection.open(site.port))
            for _ in range(UNCOUNTED + CROWD + 60)
        ]
        for each in crowd:
            await each.send(HEALTH)
        for each in crowd[::3]:
            await each.reset()
        stayed = [each for number, each in enumerate(crowd) if number % 3]
        assert {(await each.reply()).status for each in stayed} == {200}


def assert_refused(reply: RawReply, code: str, setting: str) -> None:
    """An answer that says which limit it was, and when to come back."""
    assert reply.status == 503
    assert reply.headers["zq-error"] == code
    assert int(reply.headers["retry-after"]) >= 1
    assert setting in reply.doc["error"]


async def served(connection: RawConnection) -> RawConnection:
    await connection.send(HEALTH)
    assert (await connection.reply()).status == 200
    return connection


async def ask(site: Site, request: bytes = HEALTH, source: str = "127.0.0.1") -> RawReply:
    """One answer over a connection of its own, which the server closes if it turns it away."""
    async with await RawConnection.open(site.port, source=source) as connection:
        await connection.send(request)
        reply = await connection.reply()
        if reply.headers.get("connection") == "close":
            assert await connection.rest() == b""
        return reply


async def until_served(site: Site) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await ask(site)).status != 200:
            await pause()


@pytest.mark.settings(max_connections=3)
async def test_a_connection_too_many_is_told_so_and_closed(site: Site, scrape: Scraper) -> None:
    others = [await served(await RawConnection.open(site.port)) for _ in range(2)]
    for _ in range(3):
        assert_refused(await ask(site), "too_many_connections", "--max-connections ")
    for other in others:
        await served(other)
    metrics = await scrape()
    assert metrics["zq_connections"] == 3
    assert metrics["zq_connections_accepted_total"] == 3
    assert metrics["zq_refusals_total", "too_many_connections"] == 3
    for other in others:
        await other.close()
    await until_served(site)


@pytest.mark.settings(max_connections=1)
async def test_http2_beyond_the_limit_is_told_so_in_its_last_frame(
    site: Site, scrape: Scraper
) -> None:
    async with await RawConnection.open(site.port) as connection:
        await connection.send(PREFACE)
        (_, _, _, settings), (kind, _, _, farewell) = whole(await connection.rest())
    assert (settings[3], kind) == (FrameKind.SETTINGS, FrameKind.GOAWAY)
    assert b"--max-connections permits" in farewell
    assert (await scrape())["zq_refusals_total", "too_many_connections"] == 1


@pytest.mark.settings(max_connections=1)
async def test_whoever_is_turned_away_and_silent_is_not_waited_for(
    site: Site, scrape: Scraper
) -> None:
    async with await RawConnection.open(site.port) as connection:
        await scrape.until(lambda m: m["zq_refusals_total", "too_many_connections"] == 1)
        site.clock.advance(1_000)
        with contextlib.suppress(ConnectionResetError):
            assert await connection.rest() == b""


@pytest.mark.settings(max_connections=1)
async def test_a_crowd_beyond_the_limit_is_dropped_and_the_place_stays_free(
    site: Site, scrape: Scraper, caplog: pytest.LogCaptureFixture
) -> None:
    crowd = [await RawConnection.open(site.port) for _ in range(MOST_TURNED_AWAY + 6)]
    for dropped in crowd[MOST_TURNED_AWAY:]:
        with contextlib.suppress(ConnectionResetError):
            assert await dropped.rest() == b""
    for each in crowd:
        await each.close()
    await scrape.until(lambda m: m["zq_connections"] == 1)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.settings(max_connections=1)
async def test_a_flood_is_logged_once_a_second(
    site: Site, scrape: Scraper, caplog: pytest.LogCaptureFixture
) -> None:
    for count in (5, 2):
        for _ in range(count):
            await ask(site)
        site.clock.advance(1_000)
    await ask(site)
    lines = [record for record in caplog.records if record.message == "connections refused"]
    assert [vars(line)["fields"] for line in lines] == [
        {"limit": "--max-connections", "peer": "127.0.0.1", "count": count} for count in (1, 5, 2)
    ]


@pytest.mark.settings(max_connections_per_peer=2)
async def test_one_address_cannot_take_all_connections(site: Site, scrape: Scraper) -> None:
    own = await served(await RawConnection.open(site.port))
    assert_refused(await ask(site), "too_many_connections", "--max-connections-per-peer")
    assert (await ask(site, source="127.0.0.2")).status == 200
    assert (await scrape())["zq_refusals_total", "too_many_connections"] == 1
    await own.close()
    await until_served(site)


@pytest.mark.settings(max_streams_per_peer=2)
async def test_take_streams_are_limited_by_address(client: Client, scrape: Scraper) -> None:
    first, _ = [await client.take() for _ in range(2)]
    assert_refused(await ask(client.site, TAKE), "too_many_streams", "--max-streams-per-peer")
    assert (await ask(client.site)).status == 200
    other = await RawConnection.open(client.site.port, source="127.0.0.2")
    await other.send(TAKE)
    assert (await other.head())[0] == 200
    metrics = await scrape()
    assert metrics["zq_take_streams"] == 3
    assert metrics["zq_refusals_total", "too_many_streams"] == 1
    await first.close()
    await scrape.until(lambda m: m["zq_take_streams"] == 2)
    await client.take()
    await other.close()


@pytest.mark.settings(max_connections_per_peer=0, max_streams_per_peer=0)
async def test_zero_is_no_limit(client: Client) -> None:
    for _ in range(5):
        await client.take()


# Times


async def test_a_connection_that_says_nothing_is_closed(site: Site, scrape: Scraper) -> None:
    async with await RawConnection.open(site.port) as connection:
        await scrape.until(lambda m: m["zq_connections"] == 2)
        site.clock.advance(HEADER_TIMEOUT_MS)
        assert await connection.rest() == b""
    metrics = await scrape.until(lambda m: m["zq_connections"] == 1)
    assert metrics["zq_refusals_total", "header_timeout"] == 1


async def trickle(site: Site, connection: RawConnection) -> tuple[RawReply, int]:
    """A header that grows by a byte a second: the answer, and after how many seconds it came."""
    await connection.send(b"GET /health HTTP/1.1\r\nHost: q\r\nX: ")
    reply = asyncio.create_task(connection.reply())
    seconds = 0
    while not await is_done(reply):
        site.clock.advance(1_000)
        seconds += 1
        assert seconds < 100
        if not await is_done(reply):
            await connection.send(b"x")
    assert await connection.rest() == b""
    return await reply, seconds


async def is_done(task: asyncio.Task[RawReply]) -> bool:
    """Whether it is, once what was sent has arrived: server and client share this loop."""
    for _ in range(ENOUGH_TURNS):
        await asyncio.sleep(0)
    return task.done()


async def test_a_header_that_trickles_in_is_cut_off(site: Site, scrape: Scraper) -> None:
    async with await RawConnection.open(site.port) as connection:
        await scrape.until(lambda m: m["zq_connections"] == 2)
        reply, seconds = await trickle(site, connection)
    assert reply.status == 408
    assert "--header-timeout" in reply.doc["error"]
    assert seconds == HEADER_TIMEOUT_MS // 1000
    assert (await scrape())["zq_refusals_total", "header_timeout"] == 1


async def test_an_idle_connection_is_kept_but_its_next_header_has_its_time(site: Site) -> None:
    async with await RawConnection.open(site.port) as connection:
        for _ in range(2):
            await served(connection)
            site.clock.advance(10 * HEADER_TIMEOUT_MS)
        reply, seconds = await trickle(site, connection)
    assert reply.status == 408
    assert HEADER_TIMEOUT_MS // 1000 <= seconds <= HEADER_TIMEOUT_MS // 1000 + 1


async def test_a_stream_has_no_header_to_be_late(client: Client) -> None:
    stream = await client.take()
    client.site.clock.advance(HEADER_TIMEOUT_MS)
    job = await client.enqueue()
    assert (await stream.job())["id"] == job["id"]


async def upload(site: Site) -> RawConnection:
    """An enqueue whose body is awaited; it is sent by chunks."""
    connection = await RawConnection.open(site.port)
    await connection.send(
        b"POST /jobs HTTP/1.1\r\nHost: q\r\nTransfer-Encoding: chunked\r\n"
        b"Expect: 100-continue\r\n\r\n"
    )
    assert (await connection.reply()).status == 100
    return connection


async def send_chunk(connection: RawConnection, data: bytes) -> None:
    await connection.send(b"%x\r\n%s\r\n" % (len(data), data))


async def test_a_body_that_trickles_in_is_cut_off(site: Site, scrape: Scraper) -> None:
    async with await upload(site) as connection:
        for size in range(1, BODY_TIMEOUT_MS // 1000 + 1):
            await send_chunk(connection, b" ")
            await scrape.until(lambda m, size=size: m["zq_inbox_bytes"] == size)  # type: ignore[misc]
            site.clock.advance(1_000)
        # What has come has earned it a few hundredths of a second.
        site.clock.advance(100)
        reply = await connection.reply()
    assert reply.status == 408
    assert reply.headers["connection"] == "close"
    assert "--body-timeout" in reply.doc["error"]
    metrics = await scrape()
    assert metrics["zq_refusals_total", "body_timeout"] == 1
    assert metrics["zq_inbox_bytes"] == 0


async def test_a_slow_line_has_the_time_that_its_bytes_need(site: Site, scrape: Scraper) -> None:
    body = json.dumps(new_job(payload="x" * 60 * 1024)).encode()
    async with await upload(site) as connection:
        for start in range(0, len(body), 2048):
            part = body[start : start + 2048]
            await send_chunk(connection, part)
            arrived = start + len(part)
            await scrape.until(lambda m, arrived=arrived: m["zq_inbox_bytes"] == arrived)  # type: ignore[misc]
            site.clock.advance(2_000)
        await connection.send(b"0\r\n\r\n")
        assert (await connection.reply()).status == 201


async def test_a_body_that_never_ends_is_no_job(client: Client, scrape: Scraper) -> None:
    async with await upload(client.site) as connection:
        await send_chunk(connection, json.dumps(new_job()).encode())
        await scrape.until(lambda m: m["zq_inbox_bytes"] > 0)
        client.site.clock.advance(2 * BODY_TIMEOUT_MS)
        assert (await connection.reply()).status == 408
    assert await client.count() == 0


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "127.0.0.1"),
    ],
)
def test_a_peer_is_an_address_or_the_network_that_one_host_may_fill(
    address: str, peer: str
) -> None:
    assert peer_of(asyncio.BaseTransport(extra={"peername": (address, 1)})) == peer
