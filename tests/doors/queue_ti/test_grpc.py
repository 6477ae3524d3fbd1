"""Messages over gRPC: the same ones as over REST, with gRPC's own statuses."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from conformance.client import JSON, Client
from conformance.site import Site
from conformance.streams import pause
from grpc import aio
from manual_clock import ManualClock

from zq.config import Settings
from zq.doors.queue_ti.http.rpc import queue_pb2 as pb
from zq.doors.queue_ti.http.rpc.service import MOST_FIELDS
from zq.runtime import Server
from zq.setting import ConfigError

from .messages import Messages
from .rpc import PATIENCE_S, UNKNOWN, Rpc, rpc_of


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"grpc_port": 0, "grpc_window": 2}


@pytest.fixture
async def api(site: Site) -> AsyncIterator[Messages]:
    async with Client(site, JSON) as client:
        yield Messages(client)


@pytest.fixture
async def rpc(site: Site) -> AsyncIterator[Rpc]:
    async with rpc_of(site) as rpc:
        yield rpc


async def test_a_message_goes_in_and_out_and_is_gone_once_it_is_acknowledged(
    api: Messages, rpc: Rpc
) -> None:
    id = await rpc.enqueue("t", b"hello", metadata={"a": "b"}, key="k")
    listed = await api.one("t")
    assert (listed["id"], listed["payload"], listed["key"]) == (id, "hello", "k")
    assert await rpc.enqueue("t", b"newer", key="k") == id

    taken = await rpc.dequeue("t", visibility_timeout_seconds=60)
    assert (taken.id, taken.topic, taken.payload, taken.key) == (id, "t", b"newer", "k")
    assert (taken.retry_count, taken.max_retries) == (0, 3)
    assert taken.created_at.ToMilliseconds() == api.site.now
    assert (await api.one("t"))["status"] == "processing"
    await rpc.call(pb.AckRequest(id=id))
    assert await api.list("t") == []


async def test_a_nack_counts_and_a_dead_letter_can_be_taken_and_fails(
    api: Messages, rpc: Rpc
) -> None:
    await api.configure("t", max_retries=1)
    id = await rpc.enqueue("t")
    await rpc.dequeue("t")
    await rpc.call(pb.NackRequest(id=id, error="boom"))
    dead = await api.one("t.dlq")
    assert (dead["id"], dead["last_error"]) == (id, "boom")

    batch = await rpc.call(pb.BatchDequeueRequest(topic="t.dlq", count=1))
    assert list(batch.messages) == []
    taken = await rpc.dequeue("t.dlq")
    assert (taken.id, taken.max_retries) == (id, 0)
    await rpc.call(pb.NackRequest(id=id))
    assert (await api.one("t.dlq"))["status"] == "failed"


async def test_messages_count_as_bodies_and_acknowledgements_pass(site: Site) -> None:
    await site.restart(max_body=4_000, max_inbox_bytes=5_000)
    bodies = site.server._bodies
    assert bodies is not None
    async with rpc_of(site) as rpc:
        id = await rpc.enqueue("t", b"x")
        await rpc.dequeue("t")
        with site.busy():
            # Its message is held until its answer, which waits for a tick.
            first = asyncio.create_task(rpc.enqueue("t", b"x" * 2_500))
            while not bodies.held:
                await pause()
            assert bodies.held >= 2 * 2_500
            assert await rpc.code(pb.EnqueueRequest(topic="t", payload=b"x")) == "UNAVAILABLE"
            settled = asyncio.create_task(rpc.call(pb.AckRequest(id=id)))
            while bodies.held < 2 * 2_500 + len(id):
                await pause()
        await asyncio.gather(first, settled)
    assert bodies.held == 0


@pytest.mark.parametrize(
    "more",
    [
        pb.EnqueueRequest(metadata={f"name{n}": "" for n in range(2 * MOST_FIELDS)}),
        b"\x78\x01" * 2 * MOST_FIELDS,
        b"\x7d\0\0\0\0" * 2 * MOST_FIELDS,
        b"\x79\0\0\0\0\0\0\0\0" * 2 * MOST_FIELDS,
    ],
    ids=["metadata", "numbers", "words", "long words"],
)
async def test_a_message_of_many_fields_is_refused_before_it_is_read(
    rpc: Rpc, more: bytes | pb.EnqueueRequest
) -> None:
    request = pb.EnqueueRequest(topic="t", payload=b"x" * 100_000)
    request.MergeFromString(more if isinstance(more, bytes) else more.SerializeToString())
    with pytest.raises(aio.AioRpcError, match=f"more than {MOST_FIELDS} fields") as refused:
        await rpc.call(request)
    assert refused.value.code().name == "INVALID_ARGUMENT"
    few = pb.EnqueueRequest(topic="t", payload=b"x")
    few.MergeFromString(b"\x78\x01" * (MOST_FIELDS - 2))
    assert await rpc.code(few) == "OK"


async def test_a_batch_is_the_oldest_first(rpc: Rpc) -> None:
    for payload in (b"a", b"b", b"c"):
        await rpc.enqueue("t", payload)
    batch = await rpc.call(pb.BatchDequeueRequest(topic="t", count=2))
    assert [message.payload for message in batch.messages] == [b"a", b"b"]
    assert not batch.messages[0].HasField("key")


@pytest.mark.parametrize("payload", [b"\xff\x00", b"a\x00b", "ä".encode(), b'{"base64":"eA=="}'])
async def test_bytes_come_back_as_they_were_sent(rpc: Rpc, payload: bytes) -> None:
    await rpc.enqueue("t", payload)
    assert (await rpc.dequeue("t")).payload == payload


async def test_bytes_that_are_no_text_are_seen_as_base_64(api: Messages, rpc: Rpc) -> None:
    await rpc.enqueue("t", b"\xff")
    assert (await api.one("t"))["payload"] == '{"base64":"/w=="}'


async def test_what_other_doors_have_stored_comes_as_text_or_json(api: Messages, rpc: Rpc) -> None:
    await api.enqueue("t", "text")
    await api.native.enqueue(queue="t", payload={"n": 1}, meta={"a": 1})
    assert (await rpc.dequeue("t")).payload == b"text"
    native = await rpc.dequeue("t")
    assert (native.payload, dict(native.metadata)) == (b'{"n":1}', {"a": "1"})


REFUSED = {
    "no topic": (pb.EnqueueRequest(payload=b"x"), "INVALID_ARGUMENT"),
    "no payload": (pb.EnqueueRequest(topic="t"), "INVALID_ARGUMENT"),
    "a dead-letter topic": (pb.EnqueueRequest(topic="t.dlq", payload=b"x"), "INVALID_ARGUMENT"),
    "a full topic": (pb.EnqueueRequest(topic="full", payload=b"x"), "RESOURCE_EXHAUSTED"),
    "a large payload": (pb.EnqueueRequest(topic="t", payload=b"x" * 600), "INVALID_ARGUMENT"),
    "nothing there": (pb.DequeueRequest(topic="t"), "NOT_FOUND"),
    "nothing named": (pb.DequeueRequest(), "INVALID_ARGUMENT"),
    "no time": (
        pb.DequeueRequest(topic="t", visibility_timeout_seconds=0),
        "INVALID_ARGUMENT",
    ),
    "a count of none": (pb.BatchDequeueRequest(topic="t"), "INVALID_ARGUMENT"),
    "a large count": (pb.BatchDequeueRequest(topic="t", count=1001), "INVALID_ARGUMENT"),
    "no id to ack": (pb.AckRequest(), "INVALID_ARGUMENT"),
    "an unknown id": (pb.AckRequest(id=UNKNOWN), "NOT_FOUND"),
    "no UUID": (pb.AckRequest(id="x"), "NOT_FOUND"),
    "no id to nack": (pb.NackRequest(), "INVALID_ARGUMENT"),
    "an unknown id to nack": (pb.NackRequest(id=UNKNOWN), "NOT_FOUND"),
    "no topic to subscribe": (pb.SubscribeRequest(), "INVALID_ARGUMENT"),
}


class TestRefusals:
    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {"grpc_port": 0, "max_payload": 512}

    async def test_each_has_its_status(self, api: Messages, rpc: Rpc) -> None:
        await api.configure("full", max_depth=1)
        await api.enqueue("full")
        codes = {what: await rpc.code(request) for what, (request, _) in REFUSED.items()}
        assert codes == {what: code for what, (_, code) in REFUSED.items()}
        counted = (await api.native.get("/metrics")).body.decode()
        assert '"queue_full"} 1' in counted


async def test_a_topic_that_is_not_registered_is_refused(site: Site) -> None:
    await site.restart(queue_ti_require_topic_registration=True)
    async with rpc_of(site) as rpc:
        refused = pb.EnqueueRequest(topic="t", payload=b"x")
        assert await rpc.code(refused) == "FAILED_PRECONDITION"


async def read(stream: Any) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        message = await stream.read()
    assert message is not aio.EOF
    return message


async def test_a_subscriber_that_waits_is_woken_by_the_tick_of_a_message(
    api: Messages, rpc: Rpc
) -> None:
    stream = rpc.subscribe("t", visibility_timeout_seconds=60)
    await stream.wait_for_connection()
    await api.list("t")
    assert api.site.server.engine.streams.claiming == 1
    id = await api.enqueue("t", "hi")
    message = await read(stream)
    assert (message.id, message.payload, message.retry_count) == (id, b"hi", 0)
    assert await api.ack(id) == 204
    assert await api.list("t") == []


@pytest.mark.parametrize("how", ["ack", "nack", "time-out", "purge"])
async def test_a_window_is_open_again_once_a_message_is_no_more_held(
    api: Messages, rpc: Rpc, how: str
) -> None:
    ids = [await api.enqueue("t", str(n)) for n in range(3)]
    stream = rpc.subscribe("t", visibility_timeout_seconds=60)
    assert [(await read(stream)).id for _ in range(2)] == ids[:2]
    third = asyncio.ensure_future(read(stream))
    # An answer has come back: so have all ticks before it, and the third message is not sent.
    assert [message["status"] for message in await api.list("t")] == [
        "pending",
        "processing",
        "processing",
    ]
    assert not third.done()
    if how == "ack":
        assert await api.ack(ids[0]) == 204
    elif how == "nack":
        await api.configure("t", max_retries=1)
        await rpc.call(pb.NackRequest(id=ids[0]))
    elif how == "time-out":
        api.site.clock.advance(60_001)
    else:
        await api.post("/topics/t/purge", {"statuses": ["processing"]})
    assert (await third).id in ids


async def test_what_was_sent_is_still_settled_when_the_subscriber_has_gone(
    api: Messages, rpc: Rpc
) -> None:
    id = await api.enqueue("t")
    stream = rpc.subscribe("t", visibility_timeout_seconds=60)
    await read(stream)
    stream.cancel()
    await rpc.enqueue("other")  # the server has seen what came before
    assert (await api.one("t"))["status"] == "processing"
    await rpc.call(pb.AckRequest(id=id))
    assert await api.list("t") == []


async def test_a_subscription_ends_with_the_server(site: Site, rpc: Rpc) -> None:
    stream = rpc.subscribe("t")
    await stream.wait_for_connection()
    await site.stop()
    with pytest.raises(aio.AioRpcError) as raised:
        await stream.read()
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    await site.start()


async def test_it_is_off_unless_it_is_asked_for(site: Site) -> None:
    await site.restart(grpc_port=None)
    assert site.server.ports == {}


def test_it_needs_its_door() -> None:
    with pytest.raises(ConfigError, match="--grpc-port is about the door queue-ti"):
        Settings.of(grpc_port=0, doors=("topics",))


async def test_a_port_in_use_is_named(site: Site, tmp_path: Path) -> None:
    other = Settings.of(
        root_dir=tmp_path / "other", port=0, no_admin=True, grpc_port=site.server.ports["grpc"]
    )
    with pytest.raises(Exception, match=r"in use by another.*choose another --grpc-port"):
        await Server(other, clock=ManualClock()).start()


async def test_groups_take_and_settle_messages_of_their_own(api: Messages, rpc: Rpc) -> None:
    for group in ("a", "b"):
        reply = await api.post("/topics/t/consumer-groups", {"consumer_group": group})
        assert reply.status == 201
    await rpc.enqueue("t", b"hello")
    taken = await rpc.dequeue("t", consumer_group="a")
    assert (taken.topic, taken.payload) == ("t", b"hello")
    assert await rpc.code(pb.AckRequest(id=taken.id, consumer_group="b")) == "NOT_FOUND"
    assert await rpc.code(pb.AckRequest(id=taken.id, consumer_group="a")) == "OK"
    assert await rpc.code(pb.DequeueRequest(topic="t", consumer_group="a")) == "NOT_FOUND"
    stream = rpc.subscribe("t", consumer_group="b")
    message = await stream.read()
    assert (message.topic, message.payload) == ("t", b"hello")
    assert await rpc.code(pb.NackRequest(id=message.id, consumer_group="b")) == "OK"
    stream.cancel()


async def test_bytes_that_are_no_message_are_an_invalid_argument(site: Site) -> None:
    async with aio.insecure_channel(f"127.0.0.1:{site.server.ports['grpc']}") as channel:
        for method in ("Enqueue", "Dequeue", "BatchDequeue", "Ack", "Nack"):
            call: Any = channel.unary_unary(f"/queue.QueueService/{method}")
            with pytest.raises(aio.AioRpcError) as raised:
                await call(b"\xff\xff\xff")
            assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "cannot be read" in (raised.value.details() or "")
        subscribe: Any = channel.unary_stream("/queue.QueueService/Subscribe")
        stream = subscribe(b"\xff\xff\xff")
        with pytest.raises(aio.AioRpcError) as raised:
            await stream.read()
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
