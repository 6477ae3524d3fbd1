"""GET /events: the events of a job's life, their listeners, and gaps."""

import re
import socket
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from zq.engine.subscribers.events import KEEP_S
from zq.engine.subscribers.window import MOST_BYTES, PART_BYTES
from zq.http.api import events
from zq.http.transport.channel import KERNEL_HOLDS, LISTENER_UNSENT, Channel, channel_of

from .client import JSON, Client, Doc, new_job
from .raw import RawConnection
from .site import Site
from .streams import EventStream, pause

UNKNOWN_ID = "01JD0000000000000000000000"


def plain(event: Mapping[str, Any]) -> Doc:
    """Without what is different each time."""
    return {name: value for name, value in event.items() if name not in ("ts", "event_id")}


async def names(stream: EventStream, count: int) -> list[tuple[str, str]]:
    """The next events by type and id of the job."""
    return [(event["type"], event["id"]) for event in await stream.events(count)]


@pytest.mark.every_library
async def test_a_life_is_told_in_its_order(client: Client) -> None:
    stream, site = await client.listen(), client.site
    began = site.now
    unique = {"unique_key": "k", "unique_while": "exists"}
    job = await client.enqueue(queue="q", payload="secret", **unique)
    site.clock.advance(10)
    worker = await client.take(queue="q")
    await worker.job()
    assert (await client.post(f"/jobs/{job['id']}/progress", {"data": {"n": 1}})).status == 204
    await client.fail(job["id"], retry_at=site.now + 50)
    site.clock.advance(50)
    await worker.job()
    await client.succeed(job["id"])

    told = await stream.events(6)
    about = {"id": job["id"], "queue": "q", "key": "k"}
    assert [plain(event) for event in told] == [
        about | {"type": "enqueued", "attempt": 0},
        about | {"type": "started", "attempt": 1},
        about | {"type": "progress", "attempt": 1, "data": {"n": 1}},
        about | {"type": "retrying", "attempt": 1},
        about | {"type": "started", "attempt": 2},
        about | {"type": "completed", "attempt": 2},
    ]
    assert [event["ts"] - began for event in told] == [0, 10, 10, 10, 60, 60]
    assert len({event["event_id"] for event in told}) == 6


@pytest.mark.parametrize("bulk", [False, True], ids=["alone", "bulk"])
async def test_a_copy_that_is_not_stored_is_not_told_of(client: Client, bulk: bool) -> None:
    stream = await client.listen(types="enqueued")
    dedupe: Doc = {"queue": "a", "dedupe": {"id": "n"}}
    unique: Doc = {"queue": "b", "unique_key": "k", "unique_while": "exists"}
    forgotten: Doc = {"queue": "c", "dedupe": {"id": "n"}}
    first = [await client.make("ready", **dedupe), await client.make("completed", **unique)]
    # Of this one nothing is left but its name.
    gone = await client.in_flight(**forgotten)
    await client.succeed(gone["id"])
    assert not await client.exists(gone["id"])
    assert await names(stream, 3) == [("enqueued", id) for id in (*first, gone["id"])]

    copies = [new_job(**name) for name in (dedupe, unique, forgotten)]
    if bulk:
        await client.post("/jobs/bulk", {"jobs": [*copies, new_job(), *copies]})
    else:
        for copy in copies:
            assert (await client.post("/jobs", copy)).doc["duplicate"] is True
        await client.enqueue()
    (stored,) = await client.jobs(order="desc", limit=1)
    assert await names(stream, 1) == [("enqueued", stored["id"])]


async def test_new_jobs_of_topics_and_copies_for_a_new_target_are_told_of(client: Client) -> None:
    await client.call("PUT", "/queues/q/settings", {"fan_out": ["q@a"]})
    await client.enqueue(queue="q")
    stream = await client.listen(types="enqueued")
    await client.call("PUT", "/v0/topics/t", {"type": "queue"})
    await client.post("/v0/topics/t", {"records": [{"data": 1}, {"data": 2}]})
    await client.send("PUT", "/queues/q/targets/q%40b")

    told = [(event["queue"], event["id"]) for event in await stream.events(3)]
    jobs = sorted((job["id"], job["queue"]) for job in await client.jobs())
    assert told == [(queue, id) for id, queue in jobs[1:]]
    assert [queue for queue, _ in told] == ["t", "t", "q@b"]


async def test_other_ends_are_told_too(client: Client) -> None:
    stream = await client.listen(types="failed,cancelled")
    dead = await client.make("dead", queue="q")
    waiting = await client.make("cancelled", queue="q")
    held = (await client.in_flight(queue="q"))["id"]
    await client.post(f"/jobs/{held}/cancel", {"force": True})
    scheduled = await client.make("scheduled", queue="q")
    await client.send("POST", "/jobs/cancel")

    assert await names(stream, 4) == [
        ("failed", dead),
        ("cancelled", waiting),
        ("cancelled", held),
        ("cancelled", scheduled),
    ]


async def test_a_job_that_is_not_kept_is_told_of_all_the_same(client: Client) -> None:
    stream = await client.listen()
    gone = {"dead_ms": 0, "completed_ms": 0}
    dead = await client.make("dead", retention=gone)
    cancelled = await client.make("cancelled", retention=gone)
    completed = await client.make("completed", retention=gone)

    told = await stream.events(8)
    assert [(e["type"], e["id"]) for e in told if e["type"] not in ("enqueued", "started")] == [
        ("failed", dead),
        ("cancelled", cancelled),
        ("completed", completed),
    ]


async def test_a_job_that_expires_and_one_that_stalls_are_told_of(client: Client) -> None:
    stream = await client.listen(types="expired,stalled")
    late = await client.enqueue(queue="late", ttl_ms=50)
    client.site.clock.advance(50)
    assert await names(stream, 1) == [("expired", late["id"])]

    held = await client.enqueue(queue="held")
    claim = {"holder": "h", "lease_ms": 100}
    assert len((await client.post("/queues/held/claim", claim)).doc["jobs"]) == 1
    client.site.clock.advance(101)
    event = await stream.event()
    assert (event["type"], event["id"], event["attempt"]) == ("stalled", held["id"], 1)


async def test_a_job_that_dies_into_another_queue_is_told_of_in_both(client: Client) -> None:
    settings = {"dead_letter": "graves"}
    assert (await client.call("PUT", "/queues/q/settings", settings)).status == 200
    job = await client.in_flight(queue="q")
    stream = await client.listen()
    await client.fail(job["id"], kill=True)

    told = [(e["type"], e["queue"], e["id"]) for e in await stream.events(2)]
    assert told == [("failed", "q", job["id"]), ("enqueued", "graves", job["id"])]


async def test_a_duplicate_is_no_job_and_a_refused_success_no_end(client: Client) -> None:
    stream = await client.listen()
    job = await client.enqueue(unique_key="k")
    assert (await client.post("/jobs", new_job(unique_key="k"))).status == 200
    assert (await client.post("/jobs/success", {"ids": [job["id"]]})).status == 422
    await client.delete(f"/jobs/{job['id']}")
    last = await client.enqueue()

    assert await names(stream, 2) == [("enqueued", job["id"]), ("enqueued", last["id"])]


async def test_filters_are_for_queues_jobs_and_types(client: Client) -> None:
    ids = [(await client.enqueue(queue="abc"[number % 3]))["id"] for number in range(6)]
    by_queue = await client.listen(queue="a,b")
    by_job = await client.listen(job=f"{ids[2]},{ids[4]},{UNKNOWN_ID}")
    by_type = await client.listen(types="completed")
    by_all = await client.listen(queue="b", types="started,completed", job=ids[4])
    worker = await client.take(prefetch=1)
    for id in ids:
        assert (await worker.job())["id"] == id
        await client.succeed(id)

    both = [(type, id) for id in ids for type in ("started", "completed")]
    assert await names(by_queue, 8) == [(t, id) for t, id in both if id not in (ids[2], ids[5])]
    assert await names(by_job, 4) == [(t, id) for t, id in both if id in (ids[2], ids[4])]
    assert await names(by_type, 6) == [("completed", id) for id in ids]
    assert await names(by_all, 2) == [("started", ids[4]), ("completed", ids[4])]


EMPTY_FILTERS = [{"types": "done"}, {"job": "nonsense"}, {"user": "ann"}, {"types": "completed,x"}]


async def test_a_filter_that_says_nothing_is_refused(client: Client) -> None:
    for params in EMPTY_FILTERS:
        reply = await client.get("/events", **params)
        assert reply.status == 400
        assert next(iter(params)) in reply.error


@pytest.mark.every_library
async def test_who_comes_back_is_told_what_was_missed(client: Client) -> None:
    stream = await client.listen()
    await client.enqueue()
    await stream.event()
    await stream.close()
    many = await client.enqueue_many(5)
    await client.enqueue(queue="other")

    again = await client.listen(last_id=stream.last_id, queue="default")
    assert await names(again, 2) == [("enqueued", id) for id in many[:2]]
    # From the middle of what was stored by one request.
    from_there = await client.listen(last_id=again.last_id, queue="default")
    assert await names(from_there, 3) == [("enqueued", id) for id in many[2:]]
    later = await client.enqueue()
    assert await names(from_there, 1) == [("enqueued", later["id"])]


@pytest.mark.every_library
async def test_who_comes_back_after_a_restart_is_told_of_the_gap(client: Client) -> None:
    stream = await client.listen()
    await client.enqueue()
    last_id = (await stream.event())["event_id"]
    await client.site.restart()
    other = await client.listen()
    job = await client.enqueue()

    again = await client.listen(last_id=last_id)
    gap = await again.event()
    assert (gap["type"], gap["ts"]) == ("gap", client.site.now)
    assert "missed" not in gap
    assert await names(again, 1) == await names(other, 1) == [("enqueued", job["id"])]
    # The gap's own id is as good as any other: nothing lies between.
    after = await client.listen(last_id=gap["event_id"])
    assert await names(after, 1) == [("enqueued", job["id"])]


UNKNOWN_IDS = ["nonsense", "7", "-", "x-1", "", "{epoch}-99"]


async def test_an_id_that_never_was_is_a_gap(client: Client) -> None:
    for last_id in UNKNOWN_IDS:
        first = await client.listen()
        await client.enqueue()
        epoch = (await first.event())["event_id"].partition("-")[0]

        stream = await client.listen(last_id=last_id.replace("{epoch}", epoch))
        if not last_id:
            await client.heartbeat(stream)
            continue
        assert [event["type"] for event in await stream.events(2)] == ["gap", "enqueued"]


async def test_events_are_kept_for_a_while_after_the_last_listener_has_gone(
    client: Client,
) -> None:
    engine, clock = client.site.server.engine, client.site.clock
    await client.enqueue()
    assert not engine.events.listens

    stream = await client.listen()
    await client.enqueue()
    await stream.event()
    await stream.close()
    clock.advance(int(KEEP_S * 1000) - 1)
    missed = await client.enqueue()
    again = await client.listen(last_id=stream.last_id)
    assert await names(again, 1) == [("enqueued", missed["id"])]

    await again.close()
    await client.enqueue()
    while engine.events.listens:
        # The server has to see first that the connection is closed.
        clock.advance(int(KEEP_S * 1000))
        await client.count()
    assert engine.events.next == 1
    late = await client.listen(last_id=again.last_id)
    assert (await late.event())["type"] == "gap"


async def test_a_reader_that_does_not_read_misses_events_and_is_told_so(site: Site) -> None:
    size = 512  # the longest name: of all that an event tells, the most
    async with Client(site, JSON) as client, await RawConnection.open(site.port) as slow:
        await slow.send(b"GET /events HTTP/1.1\r\nHost: q\r\n\r\n")
        # More than sockets and the window hold together.
        many = {"jobs": [new_job(queue="q" * size, ready_at=2**52)] * 5_000}
        for _ in range(2 * MOST_BYTES // (5_000 * size)):
            assert (await client.post("/jobs/bulk", many)).status == 201
        last = await client.enqueue(queue="last")
        await slow.head()
        parts = [await slow.chunk()]
        while f'"id":"{last["id"]}"'.encode() not in parts[-1]:
            parts.append(await slow.chunk())

    told = b"".join(parts).decode()
    kinds = [line for line in told.split("\n") if line.startswith("event: ")]
    gap = kinds.index("event: gap")
    assert set(kinds[:gap] + kinds[gap + 1 :]) == {"event: enqueued"}
    assert '"missed":' in told
    numbers = [int(n) for n in re.findall(r"\nid: [0-9a-f]+-(\d+)\nevent: enqueued", told)]
    assert numbers == [*range(1, gap + 1), *range(numbers[gap], numbers[-1] + 1)]
    assert f'"missed":{numbers[gap] - gap - 1}' in told


async def test_little_is_held_for_a_reader_that_does_not_read(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels: list[Channel] = []

    def seen(request: web.BaseRequest) -> Channel:
        channels.append(channel_of(request))
        return channels[-1]

    monkeypatch.setattr(events, "channel_of", seen)
    async with Client(site, JSON) as client, await RawConnection.open(site.port, 4096) as slow:
        await slow.send(b"GET /events HTTP/1.1\r\nHost: q\r\n\r\n")
        await slow.head()
        many = {"jobs": [new_job(queue="q" * 512, ready_at=2**52)] * 500}
        for _ in range(20):
            assert (await client.post("/jobs/bulk", many)).status == 201
        (channel,) = channels
        # A text of up to two parts may come on top of what its writer waits for.
        assert 0 < channel.unsent() <= LISTENER_UNSENT + 2 * PART_BYTES
        assert channel.transport is not None
        kernel = channel.transport.get_extra_info("socket")
        assert kernel.getsockopt(socket.IPPROTO_TCP, KERNEL_HOLDS) == LISTENER_UNSENT


@pytest.mark.every_library
async def test_a_quiet_stream_beats_and_remembers_its_place(client: Client) -> None:
    stream = await client.listen(queue="quiet")
    await client.enqueue(queue="busy")
    await client.heartbeat(stream)
    if client.wire.events_type != "text/event-stream":
        return
    place = stream.last_id
    missed = await client.enqueue(queue="quiet")
    again = await client.listen(queue="quiet", last_id=place)
    assert await names(again, 1) == [("enqueued", missed["id"])]


@pytest.mark.every_library
async def test_a_stopping_server_ends_its_streams(client: Client) -> None:
    stream = await client.listen()
    await client.heartbeat(stream)
    await client.site.stop()
    await stream.ended()


@pytest.mark.settings(max_streams_per_peer=1)
@pytest.mark.every_library
async def test_an_address_may_have_so_many(client: Client) -> None:
    stream = await client.listen()
    reply = await client.get("/events")
    assert (reply.status, reply.headers["zq-error"]) == (503, "too_many_streams")
    await stream.close()
    while (await client.send("HEAD", "/events")).status == 503:
        await pause()


FORMATS = [
    (None, "text/event-stream"),
    ("*/*", "text/event-stream"),
    ("text/event-stream", "text/event-stream"),
    ("application/x-ndjson", "application/x-ndjson"),
    ("application/json", "application/x-ndjson"),
    ("application/msgpack", "application/vnd.zizq.msgpack-stream"),
    ("text/html", None),
]


@pytest.mark.every_library
async def test_accept_decides_the_format(client: Client) -> None:
    for accept, expected in FORMATS:
        reply = await client.send("HEAD", "/events", headers={"accept": accept})
        assert (reply.status, reply.body) == (406 if expected is None else 200, b"")
        if expected is not None:
            assert reply.headers["content-type"] == expected
            stream = await client.listen(accept=expected)
            job = await client.enqueue()
            assert await names(stream, 1) == [("enqueued", job["id"])]


async def test_progress_is_for_jobs_in_flight(client: Client) -> None:
    async def report(id: str, **fields: Any) -> tuple[int, str | None]:
        reply = await client.post(f"/jobs/{id}/progress", {"data": 1} | fields)
        return reply.status, reply.headers.get("zq-error")

    held = await client.in_flight(queue="held")
    assert await report(held["id"]) == (204, None)
    assert await report(held["id"], lease=held["lease"]) == (204, None)
    assert await report(held["id"], lease=held["lease"] + 1) == (409, "stale_lease")
    for status in ("scheduled", "ready", "completed", "dead", "cancelled"):
        id = await client.make(status, queue=status)
        assert await report(id) == (404, "not_in_flight")
        assert await report(id, lease=1) == (409, "stale_lease")
    assert await report(UNKNOWN_ID) == (404, "not_in_flight")


async def test_progress_has_a_bound_and_is_any_json(client: Client) -> None:
    stream = await client.listen(types="progress")
    job = await client.in_flight()
    path = f"/jobs/{job['id']}/progress"
    assert (await client.post(path, {})).status == 400
    assert (await client.post(path, {"data": 1, "lease": -1})).status == 400
    assert (await client.post(path, {"data": "x" * 8191})).status == 413
    some = [None, "x" * 8190, [2.0, {"ž": []}], 0]
    for data in some:
        assert (await client.post(path, {"data": data})).status == 204
    assert [(await stream.event())["data"] for _ in some] == some
