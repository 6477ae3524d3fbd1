"""Bodies that would hold the event loop: looked at aside, or refused before they are read."""

import json
from typing import Any

import msgpack
import pytest
from rooms import needs

from zq.engine.turns import Turns
from zq.service.jobs import Jobs
from zq.wire.bulk import JOB_BYTES
from zq.wire.weight import LIGHT_BYTES, LIGHT_VALUES

from .client import Client
from .site import Site

TOPICS = needs("doors.topics")

PAIRS = 20_000
"""Pairs of the objects in a payload that is heavy in both formats."""

HEAVY = {f"name-{n:012}": {"n": n} for n in range(PAIRS)}


JSON_SENT = {"content-type": "application/json"}


def looked_at(site: Site) -> int:
    """How many bodies the server has had looked at aside."""
    aside = site.server._aside
    assert aside is not None
    return aside.calls


async def test_a_heavy_payload_is_looked_at_aside_and_stored_as_it_is(client: Client) -> None:
    assert 3 * PAIRS > LIGHT_VALUES
    assert not looked_at(client.site)
    payload = {"a": HEAVY, "b": list(HEAVY)}
    job = await client.enqueue(payload=payload)
    assert looked_at(client.site) == 1
    assert (await client.job(job["id"]))["payload"] == payload


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/jobs", {"queue": "q", "type": "t", "payload": [[]] * 20_000}),
        ("/jobs/success", {"ids": ["x"], "more": [[]] * 20_000}),
        ("/queues/q/push", [[]] * 20_000),
        pytest.param("/v0/topics/t", {"records": [{"data": [[]] * 20_000}]}, marks=TOPICS),
        ("/api/messages", {"topic": "t", "payload": "", "more": [[]] * 20_000}),
    ],
)
@pytest.mark.parametrize("kind", ["json", "msgpack"])
async def test_a_small_body_of_many_containers_is_looked_at_aside(
    client: Client, path: str, fields: object, kind: str
) -> None:
    if path.startswith(("/v0", "/api")):
        if kind == "msgpack":
            pytest.skip("this door takes JSON only")
        await client.send("PUT", "/v0/topics/t", b'{"type": "log"}', JSON_SENT)
    body = json.dumps(fields).encode() if kind == "json" else msgpack.packb(fields)
    assert len(body) < LIGHT_BYTES
    reply = await client.send("POST", path, body, {"content-type": f"application/{kind}"})
    assert reply.status < 500
    assert looked_at(client.site) == 1


@pytest.mark.parametrize("kind", ["json", "msgpack"])
async def test_integral_floats_of_a_heavy_body_are_made_integers_aside(
    client: Client, kind: str
) -> None:
    job = {"queue": "q", "type": "t", "priority": 5.0, "payload": [1.0], "unknown": [1.0] * 70_000}
    body = json.dumps(job).encode() if kind == "json" else msgpack.packb(job)
    reply = await client.send("POST", "/jobs", body, {"content-type": f"application/{kind}"})
    assert reply.status == 201, reply.body[:300]
    assert looked_at(client.site) == 1
    (stored,) = await client.jobs(queue="q")
    assert (repr(stored["priority"]), repr(stored["payload"])) == ("5", "[1.0]")


async def test_a_float_beside_deep_brackets_is_an_integer(client: Client) -> None:
    deep = "[" * 600 + "1.0" + "]" * 600
    body = f'{{"queue":"q","type":"t","payload":1,"priority":5.0,"unknown":{deep}}}'
    headers = {"content-type": "application/json"}
    reply = await client.send("POST", "/jobs", body.encode(), headers)
    assert reply.status == 201, reply.body[:300]
    (stored,) = await client.jobs(queue="q")
    assert repr(stored["priority"]) == "5"


async def test_the_loop_reads_what_is_light(client: Client) -> None:
    await client.enqueue(payload="," * (4 * LIGHT_BYTES // 10))
    await client.enqueue(payload=[1] * (LIGHT_BYTES // 10))
    assert not looked_at(client.site)


async def test_a_bulk_of_many_jobs_is_checked_in_slices(client: Client) -> None:
    turns: Turns = client.site.server.engine.turns
    before = turns.waited
    made = await client.enqueue_many(3_000)
    assert turns.waited - before == 2
    assert len(made) == 3_000
    assert await client.count() == 3_000


async def test_slices_of_a_bulk_are_smaller_if_its_payloads_are_large(client: Client) -> None:
    turns: Turns = client.site.server.engine.turns
    before = turns.waited
    jobs = [{"queue": "q", "type": "t", "payload": "x" * 256 * JOB_BYTES}] * 16
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    assert reply.status == 201
    # Five of the jobs make a slice, behind a first one that is empty.
    assert turns.waited - before == 4
    assert await client.count() == 16


async def test_what_is_made_of_a_heavy_body_counts_as_held_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = client.site.server._bodies
    assert bodies is not None
    held: list[int] = []
    enqueue = Jobs.enqueue

    async def watched(self: Jobs, *arguments: Any, **named: Any) -> Any:
        held.append(bodies.held)
        return await enqueue(self, *arguments, **named)

    monkeypatch.setattr(Jobs, "enqueue", watched)
    await client.enqueue(payload="x")
    body = {"jobs": [{"queue": "q", "type": "t", "payload": "x" * 2 * LIGHT_BYTES}]}
    assert (await client.post("/jobs/bulk", body)).status == 201
    assert held[0] < 1024
    assert held[1] >= 4 * LIGHT_BYTES
    assert bodies.held == 0


async def test_a_bulk_whose_last_slice_is_wrong_stores_nothing(client: Client) -> None:
    jobs: list[dict[str, Any]] = [{"queue": "q", "type": "t", "payload": 1}] * 2_000
    reply = await client.post("/jobs/bulk", {"jobs": [*jobs, {"queue": "", "type": "t"}]})
    assert reply.status == 400
    reply = await client.post("/jobs/bulk", {"jobs": [*jobs, {**jobs[0], "queue": "a,b"}]})
    assert reply.status == 400
    assert "jobs[2000]" in reply.doc["error"]
    assert await client.count() == 0


@pytest.mark.settings(max_values=60_000)
async def test_a_body_with_too_many_values_is_refused_by_the_name_of_the_limit(
    client: Client,
) -> None:
    job = {"queue": "q", "type": "t", "payload": 1, "unknown": [1234567.5] * 61_000}
    for path, body in (("/jobs", job), ("/jobs/bulk", {"jobs": [job]})):
        reply = await client.post(path, body)
        assert (reply.status, reply.headers["zq-error"]) == (413, "too_many_values")
        assert "60000" in reply.doc["error"] and "--max-values" in reply.doc["error"]
    reply = await client.post("/jobs/success", {"ids": ["x"] * 61_000, "more": "x" * LIGHT_BYTES})
    assert reply.status == 413
    assert await client.count() == 0


@pytest.mark.settings(max_values=60_000)
async def test_texts_with_commas_are_no_values(client: Client) -> None:
    payload = ["a,b,c,d,e,f,g,h"] * 15_000
    job = await client.enqueue(payload=payload)
    assert (await client.job(job["id"]))["payload"] == payload


@pytest.mark.settings(max_values=60_000)
@pytest.mark.parametrize(
    ("path", "body", "kind", "status"),
    [
        pytest.param(
            "/v0/topics/t",
            json.dumps({"records": [{"data": [1234567] * 61_000}]}),
            "json",
            413,
            marks=TOPICS,
        ),
        (
            "/api/messages",
            json.dumps({"topic": "t", "payload": "", "x": [12345] * 61_000}),
            "json",
            413,
        ),
        ("/api/messages", "topic=t&payload=&" + "a=1&" * 61_000, "x-www-form-urlencoded", 400),
        ("/queues/q/push", json.dumps([1234567] * 61_000), "json", 413),
        ("/queues/q/push", msgpack.packb([2.5] * 61_000), "msgpack", 413),
        ("/queues/q/push", "a=1&" * 61_000, "x-www-form-urlencoded", 413),
    ],
)
async def test_every_door_has_the_bound(
    client: Client, path: str, body: str | bytes, kind: str, status: int
) -> None:
    if path.startswith("/v0"):
        await client.send("PUT", path, b'{"type": "log"}', {"content-type": "application/json"})
    text = body.encode() if isinstance(body, str) else body
    reply = await client.send("POST", path, text, {"content-type": f"application/{kind}"})
    assert reply.status == status, reply.body[:300]


async def test_a_heavy_form_becomes_a_payload(client: Client) -> None:
    form = "&".join(f"name{n}=value" for n in range(5_000))
    headers = {"content-type": "application/x-www-form-urlencoded"}
    reply = await client.send("POST", "/queues/q.fifo/push/g", form.encode(), headers)
    again = await client.send("POST", "/queues/q.fifo/push/g", form.encode(), headers)
    assert reply.status == again.status == 202, reply.doc
    assert reply.doc["id"] == again.doc["id"], "equal payloads of a group are one job"
    assert looked_at(client.site) == 2
    (job,) = await client.jobs(queue="q.fifo")
    assert job["payload"] == {f"name{n}": "value" for n in range(5_000)}
