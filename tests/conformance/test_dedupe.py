"""Names by which copies of a job are recognised, whatever has happened to the first."""

import asyncio
from typing import Any

import pytest

from .client import Client, Reply, new_job
from .streams import pause

WINDOW_MS = 300_000


async def send(client: Client, name: str = "n", **fields: Any) -> Reply:
    fields = {"dedupe": {"id": name}} | fields
    return await client.post("/jobs", new_job(**fields))


async def stored(client: Client, **fields: Any) -> str:
    """The id of a copy that is taken for a new job."""
    reply = await send(client, **fields)
    assert (reply.status, reply.doc["duplicate"]) == (201, False), reply.doc
    return str(reply.doc["id"])


async def recognised(client: Client, **fields: Any) -> str:
    """The id that a copy is answered with."""
    reply = await send(client, **fields)
    assert (reply.status, reply.doc["duplicate"]) == (200, True), reply.doc
    return str(reply.doc["id"])


async def test_a_copy_is_answered_with_the_first_job(client: Client) -> None:
    first = await stored(client, payload=1)
    copy = await send(client, payload=2)
    assert (copy.status, copy.doc["id"], copy.doc["status"]) == (200, first, "ready")
    assert copy.doc["duplicate"] is True
    assert copy.doc["folded"] is False
    assert (await client.job(first))["payload"] == 1
    assert await client.count() == 1


@pytest.mark.parametrize("window_ms", [1, 1_000, None])
async def test_the_window_begins_with_the_first_and_ends(
    client: Client, window_ms: int | None
) -> None:
    dedupe = {"id": "n"} if window_ms is None else {"id": "n", "window_ms": window_ms}
    length = WINDOW_MS if window_ms is None else window_ms
    first = await stored(client, dedupe=dedupe)
    client.site.clock.advance(length - 1)
    # A copy does not make the window longer.
    assert await recognised(client, dedupe={"id": "n", "window_ms": 3_600_000}) == first
    client.site.clock.advance(1)
    second = await stored(client, dedupe=dedupe)
    assert await recognised(client) == second


@pytest.mark.parametrize("state", ["scheduled", "in_flight", "completed", "dead", "cancelled"])
async def test_what_becomes_of_the_first_does_not_matter(client: Client, state: str) -> None:
    first = await client.make(state, dedupe={"id": "n"})
    copy = await send(client)
    assert (copy.status, copy.doc["id"], copy.doc["status"]) == (200, first, state)


async def test_of_a_first_that_is_gone_the_id_is_known(client: Client) -> None:
    job = await client.in_flight(dedupe={"id": "n"})
    await client.succeed(job["id"])
    assert not await client.exists(job["id"])
    expected = {"id": job["id"], "duplicate": True, "folded": False}
    assert (await send(client)).doc == expected
    reply = await client.post("/jobs/bulk", {"jobs": [new_job(dedupe={"id": "n"})]})
    assert (reply.status, reply.doc) == (200, {"jobs": [expected]})


async def test_of_a_first_whose_retention_is_over_the_id_is_known(client: Client) -> None:
    await client.tire_the_reaper()
    first = await client.make("dead", dedupe={"id": "n"}, retention={"dead_ms": 1_000})
    client.site.clock.advance(1_000)
    copy = await send(client)
    assert (copy.status, copy.doc) == (200, {"id": first, "duplicate": True, "folded": False})


async def test_a_name_belongs_to_its_queue_and_group(client: Client) -> None:
    scopes: list[dict[str, str]] = [
        {"queue": "a"},
        {"queue": "b"},
        {"queue": "a", "group": "g"},
        {"queue": "a", "group": "h"},
        {"queue": "b", "group": "g"},
    ]
    firsts = [await stored(client, **scope) for scope in scopes]
    assert [await recognised(client, **scope) for scope in scopes] == firsts
    assert [await stored(client, **scope, name="other") for scope in scopes] != firsts


async def test_jobs_without_a_name_are_never_copies(client: Client) -> None:
    assert len({await stored(client, dedupe=dedupe) for dedupe in (None, None, ...)}) == 3


async def test_copies_within_one_request_are_recognised(client: Client) -> None:
    named = new_job(dedupe={"id": "n"})
    reply = await client.post("/jobs/bulk", {"jobs": [named, new_job(), named, named]})
    assert reply.status == 201
    jobs = reply.doc["jobs"]
    assert [job["duplicate"] for job in jobs] == [False, False, True, True]
    assert len({jobs[i]["id"] for i in (0, 2, 3)}) == 1
    assert await client.count() == 2
    assert (await client.post("/jobs/bulk", {"jobs": [named]})).status == 200


async def test_of_many_copies_at_once_one_is_stored(client: Client) -> None:
    replies = await asyncio.gather(*(send(client) for _ in range(20)))
    assert sorted(reply.status for reply in replies) == [200] * 19 + [201]
    assert len({reply.doc["id"] for reply in replies}) == 1
    assert await client.count() == 1


async def test_a_copy_of_a_job_that_was_a_duplicate_is_one_of_the_same(client: Client) -> None:
    owner = await client.enqueue(unique_key="k")
    unique = {"unique_key": "k", "unique_while": "queued"}
    assert await recognised(client, **unique) == owner["id"]
    await client.change(owner["id"], priority=1)
    stream = await client.take()
    assert (await stream.job())["id"] == owner["id"]
    # Its key is free by now, but this is the message that was answered with the owner.
    assert await recognised(client, **unique) == owner["id"]


async def test_a_copy_changes_nothing(client: Client) -> None:
    first = await stored(client, payload=1, unique_key="k")
    copy = await send(client, payload=2, unique_key="k", on_conflict="replace_payload")
    assert (copy.status, copy.doc["id"]) == (200, first)
    assert "replaced" not in copy.doc
    assert (await client.job(first))["payload"] == 1


async def test_names_survive_a_restart(client: Client) -> None:
    first = await stored(client)
    await client.site.restart()
    async with Client(client.site, client.wire) as other:
        assert await recognised(other) == first


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/jobs"), ("POST", "/reset")])
async def test_deleting_everything_forgets_the_names(
    client: Client, method: str, path: str
) -> None:
    await stored(client)
    assert (await client.send(method, path)).status in (200, 204)
    await stored(client)


async def test_whoever_waits_with_a_copy_waits_for_the_first(client: Client) -> None:
    first = await stored(client)
    asked = asyncio.create_task(
        client.post("/jobs?wait_ms=30000", new_job(dedupe={"id": "n"}, payload=2))
    )
    stream = await client.take()
    assert (await stream.job())["id"] == first
    async with asyncio.timeout(60):
        while not len(client.site.server.engine.waiters):
            await pause()
    assert (await client.post(f"/jobs/{first}/success", {"result": 7})).status == 204
    reply = await asked
    assert (reply.status, reply.doc["result"], reply.doc["job"]["id"]) == (200, 7, first)
    # It is gone, and with it what became of it.
    late = await client.post("/jobs?wait_ms=30000", new_job(dedupe={"id": "n"}))
    assert late.status == 404


BAD_NAMES = [
    *("n", 5, [], {}, {"id": None}, {"id": ""}, {"id": "a\0b"}, {"id": "é" * 257}),
    *({"id": "n", "window_ms": ms} for ms in (0, -1, 1.5, "1", None, 2**32)),
]


async def test_a_bad_name_is_refused(client: Client) -> None:
    for dedupe in BAD_NAMES:
        for path, body in (
            ("/jobs", new_job(dedupe=dedupe)),
            ("/jobs/bulk", {"jobs": [new_job(), new_job(dedupe=dedupe)]}),
        ):
            reply = await client.post(path, body)
            assert reply.status == 400, reply.doc
            assert "dedupe" in reply.error
        assert await client.count() == 0


async def test_any_other_name_is_taken(client: Client) -> None:
    for name in ("*", "a,b", "é" * 256, " ", '"\\'):
        first = await stored(client, name=name)
        assert await recognised(client, name=name) == first
