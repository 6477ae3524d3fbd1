"""A client of queue-ti's gRPC, made of the messages in our own `.proto`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from conformance.site import Site
from google.protobuf.message import Message
from grpc import aio

from zq.doors.queue_ti.http.rpc import queue_pb2 as pb

ANSWERS: dict[type[Message], tuple[str, type[Message]]] = {
    pb.EnqueueRequest: ("Enqueue", pb.EnqueueResponse),
    pb.DequeueRequest: ("Dequeue", pb.DequeueResponse),
    pb.BatchDequeueRequest: ("BatchDequeue", pb.BatchDequeueResponse),
    pb.AckRequest: ("Ack", pb.AckResponse),
    pb.NackRequest: ("Nack", pb.NackResponse),
}

PATIENCE_S = 60
"""No call of a test takes so long."""

UNKNOWN = "00000000-0000-0000-0000-000000000000"
"""The id of no message."""


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


class Rpc:
    """Calls over one channel, with credentials or without."""

    def __init__(self, channel: aio.Channel, authorization: str | None = None) -> None:
        self.channel = channel
        self._metadata = () if authorization is None else (("authorization", authorization),)

    async def call(self, request: Message) -> Any:
        name, answer = ANSWERS[type(request)]
        method = self.channel.unary_unary(
            f"/queue.QueueService/{name}", _serialized, answer.FromString
        )
        return await method(request, metadata=self._metadata, timeout=PATIENCE_S)

    async def code(self, request: Message) -> str:
        """The name of the status with which a call is refused, or OK."""
        try:
            if isinstance(request, pb.SubscribeRequest):
                await self.subscribe(request.topic).read()
            else:
                await self.call(request)
        except aio.AioRpcError as error:
            assert error.details()
            return error.code().name
        return "OK"

    def subscribe(self, topic: str, **fields: Any) -> Any:
        """A stream to `read` from."""
        method = self.channel.unary_stream(
            "/queue.QueueService/Subscribe",
            _serialized,
            pb.SubscribeResponse.FromString,
        )
        request = pb.SubscribeRequest(topic=topic, **fields)
        return method(request, metadata=self._metadata, timeout=PATIENCE_S)

    async def enqueue(self, topic: str, payload: bytes = b"x", **fields: Any) -> str:
        sent = pb.EnqueueRequest(topic=topic, payload=payload, **fields)
        id: str = (await self.call(sent)).id
        return id

    async def dequeue(self, topic: str, **fields: Any) -> Any:
        return await self.call(pb.DequeueRequest(topic=topic, **fields))


@asynccontextmanager
async def rpc_of(
    site: Site, authorization: str | None = None, tls: grpc.ChannelCredentials | None = None
) -> AsyncIterator[Rpc]:
    """A client of a site's gRPC."""
    address = f"localhost:{site.server.ports['grpc']}"
    channel = aio.insecure_channel(address) if tls is None else aio.secure_channel(address, tls)
    async with channel:
        yield Rpc(channel, authorization)
