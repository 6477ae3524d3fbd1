"""The state of the server: what it counts anyway, at one moment, without a tick."""

import pytest
from store.rig import only_sqlite

import zq

from .client import Client, Doc


async def status(client: Client) -> Doc:
    reply = await client.get("/status")
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    return doc


async def test_an_idle_server_has_waited_for_nothing(client: Client) -> None:
    doc = await status(client)
    assert (doc["version"], doc["zq"]) == ("0.7.0", zq.__version__)
    assert (doc["commit_mode"], doc["enqueue_commit_mode"]) == ("fsync", "fsync")
    assert doc["ticks"] == doc["flushes"] == {"count": 0}
    assert doc["inbox"] == {"jobs": 0, "jobs_limit": 100_000, "changes": 0}
    assert (doc["streams"], doc["claims"], doc["limits_reached"]) == (0, 0, [])
    assert doc["since"] == client.site.now
    assert doc["disk"]["database_bytes"] > 0


@only_sqlite
async def test_the_disk_and_the_log_are_told_with_their_limits(client: Client) -> None:
    await client.enqueue()
    doc = await status(client)
    assert doc["disk"]["free_bytes"] > doc["disk"]["reserve_bytes"] > 0
    assert 0 < doc["log"]["bytes"] < doc["log"]["bytes_limit"] == 2**30


async def test_ticks_and_flushes_of_late_are_told(client: Client) -> None:
    await client.enqueue()
    doc = await status(client)
    assert doc["ticks"]["count"] == doc["flushes"]["count"] == 1
    assert doc["ticks"]["p50_ms"] == doc["ticks"]["p99_ms"] > 0
    client.site.clock.advance(60_000)
    # The minute that is over is stored by a tick, which has ended before this one.
    await client.call("PATCH", "/queues/q/settings", {"retry_limit": 1})
    client.site.clock.advance(600_000)
    assert (await status(client))["ticks"] == {"count": 0}
    await client.take(queue="q")
    assert (await status(client))["streams"] == 1


@pytest.mark.settings(default_commit_mode="buffered", max_sweeps=3, max_inbox_jobs=1000)
async def test_settings_that_are_not_at_their_defaults_are_told(client: Client) -> None:
    doc = await status(client)
    assert doc["commit_mode"] == "buffered"
    assert doc["inbox"]["jobs_limit"] == 1000
    flags = doc["flags"]
    assert (flags["--max-sweeps"], flags["--default-commit-mode"]) == ("3", "buffered")
    assert "--max-body" not in flags


@pytest.mark.settings(global_in_flight_limit=1)
async def test_a_limit_of_jobs_in_flight_is_told_once_it_is_reached(client: Client) -> None:
    assert (await status(client))["limits_reached"] == []
    await client.in_flight()
    doc = await status(client)
    assert (doc["limits_reached"], doc["in_flight_limit"]) == (["server_limit"], 1)


@only_sqlite
@pytest.mark.settings(disk_reserve=2**52)
async def test_a_full_disk_is_told(client: Client) -> None:
    assert (await status(client))["limits_reached"] == ["storage_full"]


async def test_the_answer_waits_for_no_tick(client: Client) -> None:
    with client.site.busy():
        assert (await status(client))["streams"] == 0
    assert (await client.get("/status", verbose=1)).status == 400
