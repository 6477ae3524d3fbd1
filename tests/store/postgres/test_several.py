"""Several servers on one database: processes that are killed, stopped, cut off, and go on."""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
from conformance.batches import put as put_batched
from conformance.client import Client
from conformance.client import new_job as new_body
from conformance.crons import entry
from conformance.crons import put as put_crons
from conformance.streams import PATIENCE_S, TakeStream, pause
from conformance.test_budgets import put as put_budget
from conformance.test_schemas import put as put_schema
from conformance.test_settings import put as put_settings
from process.server import ServerProcess, running

import zq
from store.on_postgres import database_at, run_on
from store.postgres.cutting import Proxy
from zq.client.backend import run
from zq.client.values import JobQuery

FENCED = 75

APART_MS = 1_000

FLAGS = ("serve", "--port", "0", "--no-admin", "--log-format", "json")


class Pair:
    """Two servers that share a database, and a client of each."""

    def __init__(self, servers: list[ServerProcess], clients: list[Client]) -> None:
        self.first, self.second = servers
        self.one, self.other = clients


@asynccontextmanager
async def pair(*addresses: str, flags: Sequence[str] = ()) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        servers = []
        for address in addresses:
            line = (*FLAGS, "--store", address, "--servers", "2", *flags)
            server = await ServerProcess.spawn(None, *line)
            stack.push_async_callback(server.kill)
            servers.append(await server.listening())
        clients = [await stack.enter_async_context(each.client()) for each in servers]
        yield Pair(servers, clients)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Pair]:
    address = database_at(tmp_path)
    async with pair(address, address) as both:
        yield both


async def test_jobs_are_taken_and_settled_at_either_server(two: Pair) -> None:
    stream = await two.one.take(prefetch=1)
    jobs = [await two.other.enqueue() for _ in range(3)]
    ids = []
    for _ in jobs:
        job = await stream.job()
        ids.append(job["id"])
        # Its stream learns from the other server that it may have another one.
        await two.other.succeed(job["id"])
    assert ids == [job["id"] for job in jobs]
    assert await two.one.count() == 0


async def test_a_job_cancelled_at_one_server_is_taken_from_its_worker_at_the_other(
    two: Pair,
) -> None:
    stream = await two.one.take(prefetch=1)
    await two.one.enqueue()
    job = await stream.job()
    following = await two.one.enqueue()
    assert (await two.other.delete(f"/jobs/{job['id']}")).status in (200, 204)
    assert (await stream.job())["id"] == following["id"]


async def test_the_jobs_of_a_killed_server_are_ready_for_the_other(two: Pair) -> None:
    held, kept = await two.one.take(prefetch=2), await two.other.take(prefetch=1, queue="kept")
    await two.one.enqueue_many(2)
    await two.one.enqueue(queue="kept")
    taken = [job["id"] for job in await held.jobs(2)]
    own = await kept.job()
    await two.first.kill()
    stream = await two.other.take(prefetch=2)
    again = await stream.jobs(2)
    assert [job["id"] for job in again] == taken
    assert all(job["attempts"] == 0 for job in again)
    # Its own jobs stay where they are.
    assert (await two.other.job(own["id"]))["status"] == "in_flight"
    await two.other.succeed(*taken, own["id"])
    assert await two.other.count() == 0


async def test_a_stopped_server_is_fenced_and_settles_nothing_when_it_goes_on(two: Pair) -> None:
    held = await two.one.take(prefetch=1)
    await two.one.enqueue()
    job = await held.job()
    stream = await two.other.take(prefetch=1)
    two.first.signal(signal.SIGSTOP)
    again = await stream.job()
    assert again["id"] == job["id"]
    two.first.signal(signal.SIGCONT)
    try:
        reply = await two.one.post(f"/jobs/{job['id']}/success", None)
        assert reply.status >= 500
    except httpx.HTTPError:
        pass
    assert await two.first.exited() == FENCED
    assert (await two.other.job(job["id"]))["status"] == "in_flight"
    await two.other.succeed(job["id"])


async def test_a_server_that_is_cut_off_ends_once_others_have_its_jobs(tmp_path: Path) -> None:
    address = database_at(tmp_path)
    proxy = Proxy(address)
    async with pair(proxy.address, address) as two:
        held = await two.one.take(prefetch=1)
        await two.one.enqueue()
        job = await held.job()
        stream = await two.other.take(prefetch=1)
        proxy.is_shut = True
        proxy.end_all()
        assert (await stream.job())["id"] == job["id"]
        proxy.is_shut = False
        assert await two.first.exited() == FENCED
        assert (await two.other.job(job["id"]))["status"] == "in_flight"
    proxy.close()


async def test_what_holds_for_a_queue_holds_at_both_servers(two: Pair) -> None:
    """Settings, schemas, and whoever waits: one server changes what the other one goes by."""
    stream = await two.other.take(prefetch=1, queue="q")
    for _ in range(3):
        await put_settings(two.one, "q", paused=True)
        job = await two.other.enqueue(queue="q")
        assert (await two.other.job(job["id"]))["status"] == "ready"
        assert not await stream.has_frame()
        await put_settings(two.one, "q", paused=False)
        assert (await stream.job())["id"] == job["id"]
        waiting = asyncio.create_task(two.other.get(f"/jobs/{job['id']}/result", wait_ms=30_000))
        await two.one.succeed(job["id"])
        assert (await waiting).status in (200, 204, 404)

    await put_schema(two.one, "typed")
    async with asyncio.timeout(PATIENCE_S):
        while (await two.other.post("/jobs", new_body(queue="typed", payload=1))).status == 201:
            await pause()
    assert await two.other.count(queue="typed", status="in_flight") == 0


async def test_limits_hold_for_both_servers_together(two: Pair) -> None:
    await put_budget(two.one, "b", 3)
    await put_settings(two.other, "slim", concurrency=2)
    for each in (two.one, two.other):
        await each.enqueue_many(10, queue="drawn", budgets=[{"key": "b"}])
        await each.enqueue_many(10, queue="slim")
    for queue, most in (("drawn", 3), ("slim", 2)):
        streams = [await each.take(prefetch=10, queue=queue) for each in (two.one, two.other)]
        taken: list[str] = []

        async def take_all(stream: TakeStream, taken: list[str] = taken) -> None:
            while True:
                taken.append((await stream.job())["id"])

        takers = [asyncio.create_task(take_all(stream)) for stream in streams]
        for done in range(20):
            async with asyncio.timeout(PATIENCE_S):
                while len(taken) <= done:
                    await pause()
            assert len(taken) <= done + most
            in_flight = await two.one.count(queue=queue, status="in_flight")
            assert in_flight <= most
            await (two.one if done % 2 else two.other).succeed(taken[done])
        assert len(set(taken)) == len(taken) == 20
        for taker in takers:
            taker.cancel()


async def test_a_rate_holds_for_both_servers_together(two: Pair) -> None:
    """A second's worth at once, and so many in each second after that.

    The servers' times may be apart by as long as the second one took to read that of the first.
    """
    rate = 20
    await put_settings(two.one, "rated", rate=rate)
    await two.other.enqueue_many(5 * rate, queue="rated")
    streams = [await each.take(prefetch=5 * rate, queue="rated") for each in (two.one, two.other)]
    taken: list[int] = []

    async def take_all(stream: TakeStream) -> None:
        while True:
            taken.append((await stream.job())["dequeued_at"])

    takers = [asyncio.create_task(take_all(stream)) for stream in streams]
    async with asyncio.timeout(PATIENCE_S):
        while len(taken) < 5 * rate:
            await pause()
    for taker in takers:
        taker.cancel()
    first, *others = sorted(taken)
    for count, at in enumerate(others, 2):
        assert count <= rate + (at - first + APART_MS) * rate / 1000, (count, at - first)


async def test_jobs_fold_into_one_batch_whichever_server_they_come_to(two: Pair) -> None:
    """Payloads are folded once each, and in the order of each caller, while hosts are taken."""
    clients = (two.one, two.other)
    stream = await two.other.take(prefetch=1)
    taken: list[list[int]] = []

    async def take_all() -> None:
        while sum(map(len, taken)) < 40:
            job = await stream.job()
            taken.append(job["payload"])
            await two.one.succeed(job["id"])

    async def enqueue(client: Client, first: int) -> None:
        for number in range(first, first + 20):
            await put_batched(client, [number])

    taking = asyncio.create_task(take_all())
    await asyncio.gather(*map(enqueue, clients, (0, 20)))
    async with asyncio.timeout(PATIENCE_S):
        await taking
    found = [number for payload in taken for number in payload]
    assert sorted(found) == list(range(40))
    for first in (0, 20):
        own = [number for number in found if first <= number < first + 20]
        assert own == sorted(own)

    await put_settings(two.one, "default", paused=True)
    hosts = {(await put_batched(client, [n]))["id"] for n in range(3) for client in clients}
    assert len(hosts) == 1
    assert (await two.one.job(hosts.pop()))["payload"] == [0, 0, 1, 1, 2, 2]


async def test_records_of_both_servers_are_in_one_order_at_either(tmp_path: Path) -> None:
    address = database_at(tmp_path)
    async with pair(address, address, flags=("--history", "1d")) as two:
        clients = (two.one, two.other)
        streams = [await client.take(prefetch=1, queue="default") for client in clients]

        async def settle(client: Client, stream: TakeStream, ids: list[str]) -> None:
            while True:
                ids.append((await stream.job())["id"])
                await client.succeed(ids[-1])

        ended: list[list[str]] = [[], []]
        settling = [
            asyncio.create_task(settle(*each)) for each in zip(clients, streams, ended, strict=True)
        ]
        for client in clients:
            await client.enqueue_many(20)
        pages: list[Any] = []
        for client in clients:
            records: list[Any] = []
            async with asyncio.timeout(PATIENCE_S):
                while len(records) < 40:
                    after = records[-1]["seq"] if records else 0
                    reply = await client.get("/history", after=after, wait_ms=1000)
                    records += reply.doc["records"]
            pages.append(records)
        for each in settling:
            each.cancel()
        assert pages[0] == pages[1]
        assert [record["seq"] for record in pages[0]] == list(range(1, 41))
        order = [record["job_id"] for record in pages[0]]
        assert sorted(order) == sorted(ended[0] + ended[1])
        for ids in ended:
            assert [id for id in order if id in ids] == ids

        for near, far, queue in ((two.one, two.other, "p"), (two.other, two.one, "q")):
            stream = await far.take(prefetch=1, queue=queue)
            last = (await near.get("/history", limit=1)).doc["max_seq"]
            following = asyncio.create_task(near.get("/history", after=last, wait_ms=30_000))
            job = await far.enqueue(queue=queue)
            await stream.job()
            await far.succeed(job["id"])
            (record,) = (await following).doc["records"]
            assert (record["seq"], record["job_id"]) == (last + 1, job["id"])


async def test_counts_and_trends_are_those_of_both_servers(two: Pair) -> None:
    """The open minute is each server's own until it is stored, as a stop does it."""
    clients = (two.one, two.other)
    for client in clients:
        await client.enqueue_many(5, queue="q")
        stream = await client.take(prefetch=2, queue="q")
        await client.succeed(*[job["id"] for job in await stream.jobs(2)])
        await stream.close()
    for client in clients:
        assert await client.count(queue="q") == 6
        async with asyncio.timeout(PATIENCE_S):
            while await client.count(queue="q", status="ready") != 6:
                await pause()

    two.first.signal(signal.SIGTERM)
    assert await two.first.exited() == 0
    for params in ({"queue": "q"}, {}):
        points = (await two.other.get("/stats/history", range="1h", **params)).doc["points"]
        assert sum(point["enqueued"] for point in points) == 10
        assert sum(point["completed"] for point in points) == 4


async def test_programs_and_workers_go_on_at_the_next_server(two: Pair) -> None:
    """One of two addresses is that of a server which is killed amid their requests."""
    url = ",".join(f"http://127.0.0.1:{server.port}" for server in (two.first, two.second))
    ran = set()
    async with zq.App(url) as app:

        @app.task
        async def note(number: int) -> None:
            ran.add(number)

        async with zq.Worker(app):
            async with asyncio.timeout(PATIENCE_S):
                for number in range(40):
                    await note.options(dedupe=f"note-{number}").enqueue(number)
                    if number == 20:
                        while not ran:
                            await pause()
                        killing = asyncio.create_task(two.first.kill())
                await killing
                while await app.backend.count(JobQuery(statuses=("completed",))) < 40:
                    await pause()
        assert ran == set(range(40))
        assert app.backend.url == url
    async with zq.App(url) as late:
        assert await asyncio.to_thread(run, late.backend.blocking.count()) == 40


async def test_cron_fires_once_and_each_sweep_has_its_own_number(two: Pair) -> None:
    stream = await two.other.take(prefetch=6, queue="cron")
    await put_crons(two.one, "g", entry("e", "* * * * * *", job={"queue": "cron"}))
    await stream.jobs(6)
    await two.one.delete("/crons/g")
    fired = [job["ready_at"] for job in await two.other.jobs(queue="cron")]
    # A busy machine may fire the first one up to the date of the next one late.
    assert len(fired) <= (max(fired) - min(fired)) / 1000 + 3

    for each in (two.one, two.other):
        await each.enqueue_many(5, queue="a")
        await each.enqueue_many(5, queue="b")
    replies = await asyncio.gather(
        two.one.send("POST", "/jobs/cancel?queue=a"), two.other.send("POST", "/jobs/cancel?queue=b")
    )
    assert [reply.doc["cancelled"] for reply in replies] == [10, 10]
    ended = (await two.one.get("/sweeps/ended")).doc["sweeps"]
    assert len({sweep["id"] for sweep in ended}) == len(ended) == 2


async def test_one_server_carries_the_lanes_of_both_until_it_dies(
    two: Pair, tmp_path: Path
) -> None:
    """Each job is at the hub once, whichever server has stored it, and whichever carries it."""
    async with running(tmp_path / "hub") as hub, hub.client() as far:
        rule = {"queues": ["out"], "url": f"http://127.0.0.1:{hub.port}", "batch": 5}
        reply = await two.one.call("PUT", "/forward/up", rule)
        assert reply.status in (200, 201), reply.doc
        numbers = iter(range(1000))

        async def push(jobs: int, *clients: Client) -> None:
            for number in islice(numbers, jobs):
                for client in clients:
                    await client.enqueue(queue="out", payload=[number, clients.index(client)])

        async def arrived(jobs: int) -> list[Any]:
            async with asyncio.timeout(PATIENCE_S):
                while await far.count() < jobs:
                    await pause()
            return [tuple(job["payload"]) for job in await far.jobs(limit=2000)]

        async def carries(client: Client) -> bool:
            reply = await client.get("/forward/up")
            assert reply.status == 200, reply.doc
            return bool(reply.doc["state"] != "elsewhere")

        await push(30, two.one, two.other)
        await arrived(60)
        assert await carries(two.one) != await carries(two.other)
        places = (two.first, two.one), (two.second, two.other)
        (carrier, _), (_, left) = places if await carries(two.one) else places[::-1]

        pushing = asyncio.create_task(push(60, left))
        await arrived(80)
        await carrier.kill()
        await pushing
        found = await arrived(120)
        assert len(set(found)) == len(found) == 120
        async with asyncio.timeout(PATIENCE_S):
            while not await carries(left):
                await pause()
            while await left.count(queue="out"):
                await pause()
        assert await far.count() == 120


@pytest.mark.parametrize(
    ("difference", "message", "code"),
    [(-1, "servers of another version use this database", 75), (1, "has schema version", 78)],
    ids=["newer", "older"],
)
async def test_a_server_of_other_tables_joins_none_that_run(
    difference: int, message: str, code: int, tmp_path: Path
) -> None:
    """One of a newer version changes no tables under them, and an older one does not start."""
    address = database_at(tmp_path)
    async with pair(address, address) as two:
        other = f"value::integer + ({difference})"
        run_on(tmp_path, f"UPDATE meta SET value = {other} WHERE name = 'version'")
        joiner = await ServerProcess.spawn(None, *FLAGS, "--store", address, "--servers", "3")
        try:
            assert await joiner.exited() == code
        finally:
            await joiner.kill()
        assert message in " ".join(joiner.messages)
        for client in (two.one, two.other):
            await client.enqueue()
        assert await two.other.count() == 2


async def test_only_servers_that_share_a_database_may_have_it_together(tmp_path: Path) -> None:
    address = database_at(tmp_path)

    async def refusal(*flags: str) -> str:
        server = await ServerProcess.spawn(None, *FLAGS, "--store", address, *flags)
        try:
            assert await server.exited() != 0
        finally:
            await server.kill()
        return " ".join(server.messages)

    async with pair(address, address):
        assert "another server uses this database" in await refusal()
        assert "2 servers use this database" in await refusal("--servers", "2")
    server = await ServerProcess.spawn(None, *FLAGS, "--store", address)
    try:
        await server.listening()
        assert "another server has this database for itself" in await refusal("--servers", "2")
    finally:
        await server.kill()
