"""The ends of viewers, the cost of a slow one, and what is left after them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from conformance.client import Client
from conformance.site import Site
from conformance.streams import PATIENCE_S, pause
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from zq.operators.admin.engine import Viewers

from .viewing import ADMIN, BEAT_MS, ids, is_reading, watching

pytestmark = pytest.mark.settings(**ADMIN)

HANDSHAKE = (
    "GET /events HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)

UNSENT = 512 * 1024
"""More than one frame and what the connection holds besides."""


@asynccontextmanager
async def sleeper(site: Site) -> AsyncIterator[asyncio.StreamReader]:
    """A viewer that takes as little as TCP lets it, until it is read."""
    port = int(site.admin_url.rpartition(":")[2])
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=raw, limit=4096)
    writer.write(HANDSHAKE.encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    try:
        yield reader
    finally:
        writer.close()


def unsent(site: Site) -> int:
    """Bytes that the admin listener's connections hold for their viewers."""
    manager = site.server.entrances[1]._listener._manager  # type: ignore[union-attr]
    transports = [connection.transport for connection in manager.connections]
    return sum(t.get_write_buffer_size() for t in transports if t is not None)


async def turn(site: Site, beats: int) -> None:
    """Let the time of some frames pass, and each of them be read."""
    for _ in range(beats):
        site.clock.advance(BEAT_MS)
        async with asyncio.timeout(PATIENCE_S):
            while is_reading(site):
                await pause()


async def all_gone(site: Site) -> None:
    """Wait until the server has noticed that its viewers have gone."""
    async with asyncio.timeout(PATIENCE_S):
        while len(site.server.services.engine[Viewers]):
            await pause()


async def test_a_viewer_that_hardly_reads_holds_up_nobody_and_little_memory(
    site: Site, client: Client
) -> None:
    await client.enqueue_many(200, type="t" * 200)
    async with sleeper(site) as reader, watching(site) as watcher:
        await watcher.hear_of("job_snapshot")
        most = 0
        for number in range(200):
            # One that takes nothing is cut off; the server's clock may get that far here.
            assert await reader.read(1024)
            await client.enqueue_many(30, priority=1000 - number, type="t" * 200)
            snapshot = await watcher.hear_of("job_snapshot")
            assert snapshot["ready"]["total"] == 200 + 30 * (number + 1)
            most = max(most, unsent(site))
            # The kernel may hold several megabytes of them itself.
            if most and number >= 60:
                break
        # About 80 KB each: all of them would be several megabytes.
        assert 0 < most < UNSENT


async def test_a_viewer_that_never_reads_is_cut_off(site: Site, client: Client) -> None:
    await client.enqueue_many(200, type="t" * 200)
    viewers = site.server.services.engine[Viewers]
    async with sleeper(site):
        async with asyncio.timeout(PATIENCE_S):
            while len(viewers):
                await client.enqueue_many(30, priority=1, type="t" * 200)
                await turn(site, 5)


async def test_those_who_look_at_the_same_share_one_reading(site: Site) -> None:
    viewers = site.server.services.engine[Viewers]
    async with watching(site) as one, watching(site) as other:
        await one.hear_of("job_snapshot")
        await other.hear_of("job_snapshot")
        assert (len(viewers), len(viewers._views)) == (2, 1)

        await other.subscribe("ready", {"kind": "tail"}, 5)
        assert len(viewers._views) == 2


async def test_nothing_is_left_of_viewers_that_have_gone(site: Site, client: Client) -> None:
    viewers = site.server.services.engine[Viewers]
    assert not viewers.listens
    for number in range(3):
        async with watching(site) as watcher:
            await watcher.hear_of("job_snapshot")
            await client.in_flight(queue=f"q{number}")
            await watcher.subscribe("ready", {"kind": "tail"}, 5)
    await all_gone(site)

    assert not viewers.listens
    assert viewers._views == {}
    assert not viewers._endings._news
    tasks = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
    assert not [name for name in tasks if name.startswith(("_Conversation", "_Scene"))]
    version = viewers._version
    await client.enqueue()
    assert viewers._version == version


async def test_a_viewer_that_breaks_off_is_forgotten(site: Site) -> None:
    viewers = site.server.services.engine[Viewers]
    async with sleeper(site):
        assert len(viewers) == 1
    await all_gone(site)


async def test_a_server_that_stops_says_goodbye(site: Site) -> None:
    async with watching(site) as watcher:
        await watcher.hear_of("job_snapshot")
        stopping = asyncio.create_task(site.stop())
        closed = await watcher.socket.receive(timeout=PATIENCE_S)
        assert (closed.type, closed.data) == (aiohttp.WSMsgType.CLOSE, 1001)
        await stopping


async def test_a_reading_that_fails_is_made_again(site: Site, client: Client) -> None:
    async with watching(site) as watcher:
        await watcher.hear_of("job_snapshot")
        jobs = site.server.services.engine[Viewers]._reads
        sight = jobs.sight
        failures = 1

        async def fails_once(view: object) -> object:
            nonlocal failures
            if failures:
                failures -= 1
                raise TimeoutError("the disk sleeps")
            return await sight(view)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jobs, "sight", fails_once)
            id = (await client.enqueue())["id"]
            assert await watcher.changes(1) == [("ready", id)]


async def test_race_a_tick_during_the_first_reading_of_a_view_is_shown(
    site: Site, client: Client
) -> None:
    viewers = site.server.services.engine[Viewers]
    sight = viewers._reads.sight
    has_read, may_end = asyncio.Event(), asyncio.Event()

    async def held(view: object) -> object:
        seen = await sight(view)  # type: ignore[arg-type]
        has_read.set()
        await may_end.wait()
        return seen

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(viewers._reads, "sight", held)
        async with watching(site) as watcher, asyncio.timeout(PATIENCE_S):
            await has_read.wait()
            version = viewers._version
            id = (await client.enqueue())["id"]
            while viewers._version == version:
                await pause()
            site.clock.advance(BEAT_MS)
            may_end.set()
            assert (await watcher.hear())["ready"]["total"] == 0
            assert await watcher.changes(1) == [("ready", id)]


words = st.text(max_size=6)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
junk = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
lists = st.sampled_from(["ready", "in_flight", "scheduled"]) | junk
anchors = junk | st.fixed_dictionaries(
    {"kind": st.sampled_from(["head", "tail", "offset", "around", "job_id", "start", "end"])},
    optional={"offset": st.integers() | junk, "id": words, "fallback": words | junk},
)
messages = junk | st.fixed_dictionaries(
    {
        "type": st.sampled_from(["subscribe", "set_detail_level", "delete_job", "find"]),
        "list": lists,
        "anchor": anchors,
        "limit": st.integers() | junk,
    },
    optional={
        "direction": st.sampled_from(["forward", "backward", "locate"]) | junk,
        "query": st.fixed_dictionaries({"queues": st.lists(words, max_size=3) | junk}) | junk,
        "detail": st.booleans() | junk,
        "id": words,
    },
)


@given(said=st.lists(messages, min_size=1, max_size=20))
@hypothesis_settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_whatever_a_viewer_says_the_server_goes_on(site: Site, said: list[object]) -> None:
    async with watching(site) as watcher:
        for message in said:
            await watcher.socket.send_json(message)
        window = await watcher.subscribe("scheduled", {"kind": "offset", "offset": 1}, 499)
        while window != {"items": [], "first_position": 0, "total": 0}:
            window = (await watcher.hear_of("job_snapshot"))["scheduled"]
    assert ids(window) == []
