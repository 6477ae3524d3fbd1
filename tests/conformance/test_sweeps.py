"""Sweeps and their clients: how many may run, and when they end."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from zq.features.sweeps.service_running import Sweeps
from zq.model.reach import EVERYWHERE

from .client import Client, Doc, Reply
from .streams import PATIENCE_S, pause

Sent = asyncio.Task[Reply]


def cancel(client: Client, queue: str) -> Sent:
    return asyncio.create_task(client.send("POST", f"/jobs/cancel?queue={queue}"))


async def leave(sent: Sent) -> None:
    """Go away without having read the answer."""
    sent.cancel()
    with suppress(asyncio.CancelledError):
        await sent


async def shown(client: Client) -> list[Doc]:
    sweeps: list[Doc] = (await client.get("/sweeps")).doc["sweeps"]
    return sweeps


async def until_shown(client: Client, seen: Callable[[list[Doc]], Any]) -> list[Doc]:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            sweeps = await shown(client)
            if seen(sweeps):
                return sweeps
            await pause()


async def until_begun(client: Client) -> None:
    """Until the first sweep has looked how far it goes: an equal request cannot join it then."""
    sweeps = client.site.server.services[Sweeps]
    await until_shown(client, lambda _: any(s.has_begun for s in sweeps.running(EVERYWHERE)))


@pytest.mark.settings(max_sweeps=2)
async def test_a_sweep_too_many_is_429_and_changes_nothing(client: Client) -> None:
    for queue in "abc":
        await client.enqueue(queue=queue)
    with client.site.busy():
        running = [cancel(client, queue) for queue in "ab"]
        await until_shown(client, lambda sweeps: len(sweeps) == 2)
        refused = await client.send("POST", "/jobs/cancel?queue=c")
        assert (refused.status, refused.headers["zq-error"]) == (429, "too_many_sweeps")
        assert int(refused.headers["retry-after"]) >= 1
        assert "--max-sweeps" in refused.error
    assert [(await sent).doc for sent in running] == [{"cancelled": 1}] * 2
    assert await client.count(queue="c", status="ready") == 1
    assert (await client.send("POST", "/jobs/cancel?queue=c")).doc == {"cancelled": 1}


async def test_a_sweep_ends_with_the_last_client_that_waits_for_it(client: Client) -> None:
    await client.enqueue_many(2_500, queue="a")
    with client.site.busy():
        sent = cancel(client, "a")
        await until_shown(client, len)
        await leave(sent)
        await until_shown(client, lambda sweeps: not sweeps)
    # The slice that was under way is whole, and none came after it.
    assert (await client.delete("/jobs", queue="none")).doc == {"deleted": 0}
    assert await client.count(status="cancelled") in (0, 1_000)


@pytest.mark.settings(max_sweeps=2, filter_timeout=60_000)
async def test_abandoned_sweeps_leave_nothing_running(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A client that has finished sending may still read: it would be served for a while.
    monkeypatch.setattr("zq.http.transport.connection.HALF_CLOSED_S", 0.0)
    await client.enqueue(queue="a")
    for number in range(20):
        path = f"/jobs?filter=last(range({10**12 + number}))"
        sent = asyncio.create_task(client.call("PATCH", path, {"priority": 1}))
        await until_shown(client, len)
        await leave(sent)
        await until_shown(client, lambda sweeps: not sweeps)
    assert (await client.patch("/jobs", {"priority": 2}, filter="true")).doc == {"patched": 1}


@pytest.mark.settings(max_sweeps=1)
async def test_equal_requests_share_a_sweep_that_begins_after_them(client: Client) -> None:
    await client.enqueue_many(10, queue="a")
    with client.site.busy():
        first = cancel(client, "a")
        await until_begun(client)
        others = [cancel(client, "a") for _ in range(20)]
        two = await until_shown(client, lambda sweeps: len(sweeps) == 2)
        # What differs in anything is another sweep, and that would be one too many.
        for path in ("/jobs/cancel?queue=b", "/jobs/cancel?queue=a&type=t"):
            assert (await client.send("POST", path)).status == 429
        force = await client.call("POST", "/jobs/cancel?queue=a", {"force": True})
        assert force.status == 429
        await leave(others.pop())
    assert (await first).doc == {"cancelled": 10}
    assert {(await sent).status for sent in others} == {200}
    await client.enqueue(queue="a")
    with client.site.busy():
        last = cancel(client, "a")
        (sweep,) = await until_shown(client, len)
        assert int(sweep["id"]) == int(two[-1]["id"]) + 1
    assert (await last).doc == {"cancelled": 1}


async def test_a_job_stored_while_an_equal_sweep_runs_is_not_missed(client: Client) -> None:
    await client.enqueue_many(5_000, queue="a")
    first = cancel(client, "a")
    await until_shown(client, lambda sweeps: first.done() or (sweeps and sweeps[0]["changed"]))
    late = await client.enqueue(queue="a")
    assert (await cancel(client, "a")).status == 200
    assert (await client.job(late["id"]))["status"] == "cancelled"
    await first


@pytest.mark.settings(max_sweeps=1)
async def test_a_limited_redrive_is_never_shared(client: Client) -> None:
    for _ in range(2):
        await client.make("dead", queue="a")
    limited = {"limit": 1}
    with client.site.busy():
        first = asyncio.create_task(client.call("POST", "/jobs/redrive", limited))
        await until_shown(client, len)
        assert (await client.call("POST", "/jobs/redrive", limited)).status == 429
    assert (await first).doc == {"redriven": 1}


async def test_whoever_waits_for_the_next_sweep_is_served_though_the_first_is_given_up(
    client: Client,
) -> None:
    await client.enqueue_many(10, queue="a")
    with client.site.busy():
        first = cancel(client, "a")
        await until_begun(client)
        second = cancel(client, "a")
        await until_shown(client, lambda sweeps: len(sweeps) == 2)
        await leave(first)
        await until_shown(client, lambda sweeps: len(sweeps) == 1)
    assert (await second).status == 200
    assert await client.count(status="cancelled") == 10
