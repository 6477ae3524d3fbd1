"""`Zq-Strict: 1` at the other doors: their bodies refuse unknown fields then, and only then."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from conformance.client import JSON, Client
from conformance.site import Site
from google.protobuf.internal.encoder import TagBytes
from grpc import aio

from zq.doors.queue_ti.http.rpc import queue_pb2 as pb

from .messages import Messages
from .rpc import rpc_of

STRICT = {"zq-strict": "1"}


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"grpc_port": 0}


@pytest.fixture
async def client(site: Site) -> AsyncIterator[Client]:
    async with Client(site, JSON) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "doc", "near"),
    [
        ("POST", "/v0/topics/t", {"records": [{"data": 1, "tagg": "a"}]}, "tag"),
        ("POST", "/v0/topics/t", {"records": [{"data": 1}], "config": {"durabl": True}}, "durable"),
        ("POST", "/v0/topics/t/diff", {"from_sq": 1}, "from_seq"),
        ("PUT", "/v0/topics/t", {"durabl": True}, "durable"),
        ("POST", "/v0/topics/q/claim", {"node": "n", "lease_s": 1}, "lease_ms"),
        ("PUT", "/v0/routers/r", {"source": "t", "dest": "u", "filtr": 1}, "filter"),
        ("POST", "/api/messages", {"topic": "m", "payload": "x", "metdata": {}}, "metadata"),
        ("POST", "/api/messages/dequeue", {"topic": "m", "cont": 1}, "count"),
        ("PUT", "/api/topic-configs/m", {"max_retris": 1}, "max_retries"),
    ],
)
async def test_a_typo_is_told_to_strict_clients_and_passed_over_for_others(
    client: Client, method: str, path: str, doc: Any, near: str
) -> None:
    await client.call("PUT", "/v0/topics/t", {})
    await client.call("PUT", "/v0/topics/q", {"type": "queue"})
    before = (await client.get("/v0/topics")).doc["topics"], (await client.get("/jobs/count")).doc
    client.always = STRICT
    reply = await client.call(method, path, doc)
    client.always = {}
    assert reply.status == 400
    assert f"did you mean '{near}'?" in reply.body.decode().replace('\\"', '"')
    after = (await client.get("/v0/topics")).doc["topics"], (await client.get("/jobs/count")).doc
    assert after == before
    assert (await client.call(method, path, doc)).status < 300


async def test_a_form_is_read_as_strictly(client: Client) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    body = b"topic=m&payload=x&kee=1"
    reply = await client.send("POST", "/api/messages", body, headers | STRICT)
    assert (reply.status, "did you mean 'key'?" in reply.body.decode()) == (400, True)
    assert (await client.send("POST", "/api/messages", body, headers)).status == 201


async def test_grpc_names_the_number_of_an_unknown_field(site: Site, client: Client) -> None:
    api = Messages(client)
    sent = pb.EnqueueRequest(topic="m", payload=b"x").SerializeToString() + TagBytes(77, 0) + b"\1"
    async with rpc_of(site) as rpc:
        call: Any = rpc.channel.unary_unary(
            "/queue.QueueService/Enqueue", None, pb.EnqueueResponse.FromString
        )
        with pytest.raises(aio.AioRpcError, match="no field of the number 77") as refused:
            await call(sent, metadata=(("zq-strict", "1"),))
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await api.list("m") == []
        await call(sent)
    assert len(await api.list("m")) == 1
