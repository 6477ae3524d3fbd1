"""After somebody has edited the file, unreadable rows are set aside, and the rest goes on."""

import sqlite3
from contextlib import closing

import pytest
from store.rig import only_sqlite

from .client import MSGPACK_HTTP2, Client
from .site import Site

pytestmark = only_sqlite

LARGE = "x" * 1000


def harm(site: Site, statement: str, job_id: str | None = None) -> None:
    """Change the file beside the server, which holds SQLite's locks on it as any program does."""
    key = None if job_id is None else site.server.services.ids.key(job_id)
    with closing(sqlite3.connect(site.root / "zq.db", isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        other.execute(statement, [] if key is None else [key])


async def named(client: Client) -> list[tuple[str, str]]:
    """Table and key of the rows that health names."""
    found = (await client.get("/health")).doc.get("quarantined", {"rows": 0, "latest": []})
    assert found["rows"] == len(found["latest"])
    return [(row["table"], row["key"]) for row in found["latest"]]


async def test_health_names_nothing_where_nothing_is_set_aside(client: Client) -> None:
    assert "quarantined" not in (await client.get("/health")).doc


async def test_a_stream_gets_the_other_jobs(client: Client, site: Site) -> None:
    ids = await client.enqueue_many(3)
    harm(site, "UPDATE jobs SET options = '{' WHERE id = ?", ids[0])
    harm(site, """UPDATE jobs SET options = '{"retry_limit":[]}' WHERE id = ?""", ids[1])
    stream = await client.take(prefetch=10)
    assert [job["id"] for job in await stream.jobs(1)] == [ids[2]]
    assert set(await named(client)) == {("jobs", ids[0]), ("jobs", ids[1])}
    assert not await client.exists(ids[0])


async def test_a_job_whose_payload_is_missing_does_not_stay_with_its_worker(
    client: Client, site: Site
) -> None:
    bad = (await client.enqueue(payload=LARGE))["id"]
    good = (await client.enqueue(payload=LARGE))["id"]
    harm(site, "DELETE FROM payloads WHERE job_id = ?", bad)
    stream = await client.take(prefetch=1)
    assert [job["id"] for job in await stream.jobs(1)] == [good]
    assert await named(client) == [("jobs", bad)]


async def test_listings_and_single_jobs_go_on(client: Client, site: Site) -> None:
    bad, good = await client.enqueue_many(2)
    harm(site, "UPDATE jobs SET type = CAST(x'ff' AS TEXT) WHERE id = ?", bad)
    assert [job["id"] for job in await client.jobs()] == [good]
    assert (await client.get(f"/jobs/{bad}")).status == 404
    assert await named(client) == [("jobs", bad)]
    assert await client.count() == 1


async def test_a_server_starts_over_what_cannot_be_read(client: Client, site: Site) -> None:
    ids = await client.enqueue_many(3)
    harm(site, """UPDATE jobs SET options = '{"retry_limit":"x"}' WHERE id = ?""", ids[0])
    harm(site, "UPDATE jobs SET extras = '[' WHERE id = ?", ids[1])
    harm(site, "INSERT INTO queue_settings VALUES ('default', '{', NULL)")
    await site.restart()
    assert set(await named(client)) == {("jobs", ids[1]), ("queue_settings", "default")}
    stream = await client.take(prefetch=10)
    assert [job["id"] for job in await stream.jobs(1)] == [ids[2]]
    assert ("jobs", ids[0]) in await named(client)


@pytest.mark.settings(history=86_400_000)
async def test_the_history_skips_records_that_cannot_be_read(client: Client, site: Site) -> None:
    ids = await client.enqueue_many(3)
    await (await client.take(prefetch=3)).jobs(3)
    for each in ids:
        await client.succeed(each)
    body = """CAST('[["no","attempt"]]' AS BLOB)"""
    harm(site, f"UPDATE log_batches SET body = {body}, checksum = NULL WHERE last_seq = 2")
    records = (await client.get("/history")).doc["records"]
    assert [record["seq"] for record in records] == [1]
    gone = await client.get("/history", after=1)
    assert (gone.status, gone.doc["min_seq"]) == (410, 3)
    records = (await client.get("/history", after=2)).doc["records"]
    assert [record["seq"] for record in records] == [3]
    assert await named(client) == [("log_batches", "1/2")]


@pytest.mark.parametrize("wire", [MSGPACK_HTTP2], ids=str)
async def test_a_payload_that_is_no_json_does_not_come_again_and_again(
    client: Client, site: Site
) -> None:
    """MessagePack is made of it, and cannot be; as JSON it would go out as it is."""
    bad, good = await client.enqueue_many(2)
    harm(site, "UPDATE jobs SET payload = '{' || substr(payload, 2) || '{' WHERE id = ?", bad)
    stream = await client.take(prefetch=10)
    assert [job["id"] for job in await stream.jobs(1)] == [good]
    assert await named(client) == [("jobs", bad)]
