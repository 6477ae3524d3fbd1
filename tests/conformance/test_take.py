"""GET /jobs/take: framings, parameters, heartbeats, and the distribution of jobs."""

import asyncio
import json
import struct

import msgpack
import pytest

from zq.http.transport.heartbeats import STEPS

from .client import HEARTBEAT_MS, JSON, Client, as_read, ids
from .raw import RawConnection
from .site import Site
from .streams import TakeStream

NDJSON = "application/x-ndjson"
MSGPACK_STREAM = "application/vnd.zizq.msgpack-stream"
SSE = "text/event-stream"
FRAMINGS = [NDJSON, MSGPACK_STREAM, SSE]


async def raw_take(site: Site, accept: str | None, query: str = "") -> RawConnection:
    """An open take stream whose headers are read, as bare bytes."""
    connection = await RawConnection.open(site.port)
    header = f"Accept: {accept}\r\n" if accept else ""
    await connection.send(f"GET /jobs/take{query} HTTP/1.1\r\nHost: q\r\n{header}\r\n".encode())
    status, headers = await connection.head()
    assert (status, headers["transfer-encoding"]) == (200, "chunked")
    return connection


ACCEPTED = [
    (None, NDJSON),
    ("*/*", NDJSON),
    ("application/x-ndjson", NDJSON),
    ("application/json", NDJSON),
    ("application/vnd.zizq.msgpack-stream", MSGPACK_STREAM),
    ("application/msgpack", MSGPACK_STREAM),
    ("text/event-stream", SSE),
    ("application/json, application/msgpack", MSGPACK_STREAM),
    ("application/msgpack, */*", MSGPACK_STREAM),
    ("application/msgpack, text/event-stream;q=0.1", SSE),
]


async def test_accept_chooses_the_framing(site: Site) -> None:
    for accept, expected in ACCEPTED:
        async with await RawConnection.open(site.port) as connection:
            header = f"Accept: {accept}\r\n" if accept else ""
            await connection.send(f"GET /jobs/take HTTP/1.1\r\nHost: q\r\n{header}\r\n".encode())
            status, headers = await connection.head()
        assert (status, headers["content-type"]) == (200, expected)


async def test_any_other_accept_is_406_in_json(client: Client) -> None:
    reply = await client.send("GET", "/jobs/take", headers={"accept": "text/html"})
    assert (reply.status, reply.media_type) == (406, "application/json")
    assert reply.doc["supported"] == [SSE, NDJSON, MSGPACK_STREAM]


@pytest.mark.every_library
async def test_headers_come_before_any_job(client: Client) -> None:
    stream = await client.take()
    assert stream.media_type == client.wire.stream_type
    job = await client.enqueue()
    assert (await stream.job())["id"] == job["id"]


async def test_an_ndjson_job_is_one_line(site: Site) -> None:
    async with Client(site, JSON) as client:
        job = await client.enqueue(payload={"text": "line\nline\r\u2028"})
    async with await raw_take(site, NDJSON) as connection:
        frame = await connection.chunk()
    assert frame.endswith(b"\n")
    assert frame.count(b"\n") == 1
    assert b"\r" not in frame
    assert json.loads(frame)["id"] == job["id"]


async def test_a_messagepack_job_is_a_length_and_a_map(site: Site) -> None:
    async with Client(site, JSON) as client:
        job = await client.enqueue(payload={"n": 1})
    async with await raw_take(site, MSGPACK_STREAM) as connection:
        frame = await connection.chunk()
    (length,) = struct.unpack_from(">I", frame)
    assert length == len(frame) - 4
    assert msgpack.unpackb(frame[4:])["id"] == job["id"]


async def test_an_sse_job_is_one_data_line(site: Site) -> None:
    async with Client(site, JSON) as client:
        job = await client.enqueue(payload="a\nb")
    async with await raw_take(site, SSE) as connection:
        frame = await connection.chunk()
    assert frame.startswith(b"data: {")
    assert frame.endswith(b"}\n\n")
    assert frame.count(b"\n") == 2
    assert json.loads(frame.removeprefix(b"data: "))["id"] == job["id"]


async def test_whitespace_in_a_payload_does_not_break_the_framing(client: Client) -> None:
    body = b'{"queue":"q",\r\n"type":"t",\n"payload":\r\n{\n\r\n"a" :\t[\n1 ,\r2\n]\n}\n}'
    for framing in FRAMINGS:
        for _ in range(2):
            assert (await client.send("POST", "/jobs", body)).status == 201
        stream = await client.take(prefetch=2, accept=framing)
        assert [job["payload"] for job in await stream.jobs(2)] == [{"a": [1, 2]}] * 2


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.every_library
async def test_every_framing_delivers_the_same_jobs(client: Client, framing: str) -> None:
    payloads = [None, {"a": [1, 2.5, "é\n"]}, "x" * 100_000, 2**64 - 1]
    for payload in payloads:
        await client.enqueue(payload=payload, priority=5, retry_limit=1)
    stream = await client.take(prefetch=0, accept=framing)
    jobs = await stream.jobs(len(payloads))
    assert [job["payload"] for job in jobs] == payloads
    assert [as_read(job) for job in jobs] == await client.jobs()


# Parameters


async def test_bad_parameters_are_400(client: Client) -> None:
    for query in ("prefetch=-1", "prefetch=x", "prefetch=1.5", "limit=1"):
        reply = await client.send("GET", f"/jobs/take?{query}", headers={"accept": "*/*"})
        assert reply.status == 400, query
        assert reply.body.startswith(b"Failed to deserialize query string: "), query


async def test_the_queue_parameter_filters(client: Client) -> None:
    for queue in ("a", "b", "c", "a/b", "x&y"):
        await client.enqueue(queue=queue)
    for wanted, expected in [
        ("b", {"b"}),
        ("a,c", {"a", "c"}),
        (",a,,", {"a"}),
        ("a/b,x&y", {"a/b", "x&y"}),
        ("", {"a", "b", "c", "a/b", "x&y"}),
        (",", {"a", "b", "c", "a/b", "x&y"}),
    ]:
        stream = await client.take(prefetch=10, queue=wanted)
        assert {job["queue"] for job in await stream.jobs(len(expected))} == expected
        await client.heartbeat(stream)
        await stream.close()
        await client.until_count(0, status="in_flight")


@pytest.mark.every_library
async def test_a_stream_may_name_thousands_of_queues(client: Client) -> None:
    names = [f"queue-{number}" for number in range(3_000)]
    stream = await client.take(prefetch=2, queue=",".join(names))
    last = await client.enqueue(queue=names[-1], priority=2)
    assert (await stream.job())["id"] == last["id"]
    await client.enqueue(queue="other", priority=0)
    first = await client.enqueue(queue=names[0], priority=1)
    assert (await stream.job())["id"] == first["id"]


async def test_a_filtered_stream_hears_only_its_queues(client: Client) -> None:
    stream = await client.take(prefetch=0, queue="a,b")
    await client.enqueue(queue="c")
    wanted = await client.enqueue(queue="b")
    assert (await stream.job())["id"] == wanted["id"]
    await client.heartbeat(stream)
    assert await client.count(status="ready") == 1


async def test_a_worker_id_is_optional_and_may_be_anything(client: Client) -> None:
    job = await client.enqueue()
    stream = await client.take(headers={"worker-id": 'w"1" / (x)'})
    assert (await stream.job())["id"] == job["id"]


@pytest.mark.every_library
async def test_head_sends_headers_and_claims_nothing(client: Client) -> None:
    for target in ["/jobs/take", "/jobs/take?prefetch=0&queue=default"]:
        job = await client.enqueue()
        reply = await client.send("HEAD", target, headers={"accept": NDJSON})
        assert (reply.status, reply.media_type, reply.body) == (200, NDJSON, b""), target
        stored = await client.job(job["id"])
        assert stored["status"] == "ready", target
        assert "dequeued_at" not in stored, target
        refused = await client.send("HEAD", target, headers={"accept": "text/html"})
        assert refused.status == 406, target


async def test_head_leaves_the_connection_usable(site: Site) -> None:
    async with await RawConnection.open(site.port) as connection:
        await connection.send(b"HEAD /jobs/take HTTP/1.1\r\nHost: q\r\n\r\n")
        assert (await connection.reply(to_head=True)).status == 200
        await connection.send(b"GET /jobs/count HTTP/1.1\r\nHost: q\r\n\r\n")
        assert (await connection.reply()).doc == {"count": 0}


# Heartbeats


@pytest.mark.parametrize(
    ("framing", "beat"),
    [(NDJSON, b"\n"), (MSGPACK_STREAM, b"\0\0\0\0"), (SSE, b": heartbeat\n\n")],
)
async def test_a_silent_stream_beats(site: Site, framing: str, beat: bytes) -> None:
    async with await raw_take(site, framing) as connection, Client(site, JSON) as client:
        for _ in range(3):
            await client.count()
            site.clock.advance(HEARTBEAT_MS)
            assert await connection.chunk() == beat


@pytest.mark.every_library
async def test_a_heartbeat_comes_three_seconds_after_the_last_frame(client: Client) -> None:
    clock = client.site.clock
    stream = await client.take(prefetch=0)
    clock.advance(2_000)
    first = await client.enqueue()
    assert (await stream.job())["id"] == first["id"]
    # Three seconds after the connect, but only one after a frame: the next frame is a job.
    clock.advance(1_000)
    second = await client.enqueue()
    frame = await stream.frame()
    assert frame is not None
    assert frame["id"] == second["id"]
    clock.advance(HEARTBEAT_MS - 1)
    third = await client.enqueue()
    frame = await stream.frame()
    assert frame is not None
    assert frame["id"] == third["id"]
    await client.count()
    clock.advance(HEARTBEAT_MS)
    clock.advance(HEARTBEAT_MS // STEPS)  # streams are looked at in common rounds
    assert await stream.frame() is None


@pytest.mark.settings(heartbeat_interval=500)
async def test_the_heartbeat_interval_is_a_setting(client: Client) -> None:
    stream = await client.take()
    for _ in range(3):
        await client.count()
        client.site.clock.advance(500)
        assert await stream.frame() is None


# Many streams


@pytest.mark.every_library
async def test_no_job_is_delivered_twice(client: Client) -> None:
    streams = [await client.take(prefetch=20) for _ in range(5)]
    issued = await client.enqueue_many(200)
    delivered: list[str] = []

    async def work(stream: TakeStream) -> None:
        while True:
            job = await stream.job()
            delivered.append(job["id"])
            await client.succeed(job["id"])

    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(work(stream)) for stream in streams]
        await client.until_count(0)
        for worker in workers:
            worker.cancel()
    assert sorted(delivered) == issued


@pytest.mark.every_library
async def test_a_hundred_waiting_streams_get_one_job_each(client: Client) -> None:
    streams = [await client.take() for _ in range(100)]
    issued = await client.enqueue_many(100)
    jobs = [await stream.job() for stream in streams]
    assert sorted(ids(jobs)) == issued
    assert await client.count(status="in_flight") == 100


async def test_one_job_goes_to_one_of_many_streams(client: Client) -> None:
    streams = [await client.take() for _ in range(20)]
    job = await client.enqueue()
    await client.until(job["id"], status="in_flight")
    client.site.clock.advance(HEARTBEAT_MS)
    frames = [await stream.frame() for stream in streams]
    assert [frame["id"] for frame in frames if frame] == [job["id"]]


async def test_streams_of_different_queues_do_not_disturb_each_other(client: Client) -> None:
    names = [f"q{number}" for number in range(10)]
    streams = {name: await client.take(prefetch=3, queue=name) for name in names}
    expected = {name: await client.enqueue_many(3, queue=name) for name in reversed(names)}
    for name in names:
        assert ids(await streams[name].jobs(3)) == expected[name]
