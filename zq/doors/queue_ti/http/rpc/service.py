"""`queue.QueueService`: its six methods. Payloads are bytes there, and JSON here."""

from __future__ import annotations

import base64
import binascii
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import grpc
import msgspec
from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet
from grpc import StatusCode
from grpc.aio import ServicerContext

from zq.doors.queue_ti.http.access import Access
from zq.doors.queue_ti.http.calls import MessageCalls, MessagesWanted, NewMessage
from zq.doors.queue_ti.http.documents import DLQ, MessageDocument, text_of
from zq.doors.queue_ti.http.rpc import queue_pb2 as pb
from zq.doors.queue_ti.http.rpc.links import RpcLink, RpcLinks
from zq.doors.queue_ti.http.rpc.queue_pb2 import DequeueResponse, SubscribeResponse
from zq.doors.queue_ti.model import EVERYTHING, Action, Permit
from zq.engine.delivery.windows import ClaimWindow
from zq.http.api.endpoints import HEADER as STRICT_HEADER
from zq.http.api.endpoints import strict_value
from zq.http.door import status_in
from zq.http.guard import KEY_BESIDE, Guard
from zq.http.transport.answers import Answers
from zq.http.transport.bodies import Bodies
from zq.http.transport.gate import PeerCounts
from zq.model import errors
from zq.model.errors import (
    InvalidRequest,
    NotFound,
    QueueNotRegistered,
    ServiceUnavailable,
    TooManyStreams,
    Unauthorized,
    UnknownField,
    ZqError,
    unexpected,
)
from zq.model.ids import minted_at
from zq.model.job import JobRecord
from zq.model.keys import Key, KeyScope
from zq.model.reach import Reach

MOST_FIELDS = 4_096
"""The most fields of a message, of which each entry of the metadata is one. Reading a message takes
the event loop about five microseconds a field."""


def has_too_many_fields(sent: bytes) -> bool:
    """True if a message has more than `MOST_FIELDS` fields. None of them is read.

    What is no message may count as one of few fields: its reader refuses it.
    https://protobuf.dev/programming-guides/encoding/
    """
    at, end, left = 0, len(sent), MOST_FIELDS
    while at < end:
        if not left:
            return True
        left -= 1
        tag, at = _number(sent, at)
        match tag & 7:
            case 0:
                _, at = _number(sent, at)
            case 1:
                at += 8
            case 2:
                size, at = _number(sent, at)
                at += size
            case 5:
                at += 4
    return False


def _number(sent: bytes, at: int) -> tuple[int, int]:
    """The number of variable length at a place, and the place behind it."""
    number = shift = 0
    while at < len(sent):
        byte = sent[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or shift > 63:
            break
    return number, at


class _Bytes(msgspec.Struct, forbid_unknown_fields=True):
    """A payload that stands for bytes which are no text."""

    base64: str


_bytes = msgspec.json.Decoder(_Bytes)


def stored_payload(sent: bytes) -> bytes:
    """The JSON of a payload: a text or, where the bytes are none, an object with their base 64."""
    try:
        return msgspec.json.encode(sent.decode())
    except UnicodeDecodeError:
        return msgspec.json.encode(_Bytes(base64.b64encode(sent).decode()))


def sent_payload(stored: str) -> bytes:
    """The bytes of a payload. JSON that is no text, of a native job, is sent as it is."""
    if stored.startswith('"'):
        return msgspec.json.decode(stored, type=str).encode()
    try:
        # An object of another kind is refused at its first field, before values are made of it.
        return base64.b64decode(_bytes.decode(stored).base64, validate=True)
    except (msgspec.ValidationError, binascii.Error):
        return stored.encode()


def dequeued(job: JobRecord, document: MessageDocument) -> DequeueResponse:
    return DequeueResponse(
        id=document.id,
        topic=document.topic,
        payload=sent_payload(job.payload or "null"),
        metadata=document.metadata or {},
        created_at=_created_at(job),
        retry_count=document.retry_count,
        max_retries=min(document.max_retries, _INT32),
        key=job.unique_key,
    )


def subscribed(job: JobRecord, document: MessageDocument) -> SubscribeResponse:
    """A message as a part of a stream."""
    return SubscribeResponse(
        id=document.id,
        topic=document.topic,
        payload=sent_payload(job.payload or "null"),
        metadata=document.metadata or {},
        created_at=_created_at(job),
        retry_count=document.retry_count,
    )


_INT32 = 2**31 - 1


def _created_at(job: JobRecord) -> Timestamp:
    seconds, milliseconds = divmod(minted_at(job.key), 1000)
    return Timestamp(seconds=seconds, nanos=milliseconds * 1_000_000)


log = logging.getLogger(__name__)

NAME = "queue.QueueService"

Context = ServicerContext[Any, Any]
Asked = TypeVar("Asked", bound=Message)
Timed = pb.DequeueRequest | pb.BatchDequeueRequest | pb.SubscribeRequest


class RpcOptions(NamedTuple):
    """The parts of the server that the methods use besides the calls."""

    guard: Guard
    access: Access | None
    """Finds users, where the door knows some."""
    answers: Answers
    bodies: Bodies
    """Counts the messages of calls together with the bodies of requests."""
    refused: Counter[str]
    max_per_peer: int
    """How many subscriptions one address may have; 0 means no limit."""
    window: int
    """The most messages of one subscription that are not settled."""


class Caller(NamedTuple):
    """The sender of a call: its key, if it needs one, its reach, and what its user may do.

    `peer` is its address, as the gate knows it.
    """

    key: Key | None
    reach: Reach
    permit: Permit
    peer: str


class QueueService:
    """The methods, as handlers of a server. Their calls come over `links`."""

    def __init__(self, calls: MessageCalls, links: RpcLinks, options: RpcOptions) -> None:
        self._calls = calls
        self._links = links
        self._guard, self._access, self._answers, self._bodies = options[:4]
        self._refused, most, self._window = options[4:]
        self._peers = PeerCounts(most)

    def handlers(self) -> grpc.GenericRpcHandler:
        """The handlers by the names of their methods."""
        unary = self._unary
        take, put = KeyScope.TAKE, KeyScope.ENQUEUE
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Enqueue": unary(pb.EnqueueRequest, put, self.enqueue),
            "Dequeue": unary(pb.DequeueRequest, take, self.dequeue),
            "BatchDequeue": unary(pb.BatchDequeueRequest, take, self.batch_dequeue),
            "Ack": unary(pb.AckRequest, take, self.ack),
            "Nack": unary(pb.NackRequest, take, self.nack),
            "Subscribe": grpc.unary_stream_rpc_method_handler(
                self._subscription, None, _serialized
            ),
        }
        return grpc.method_handlers_generic_handler(NAME, methods)

    async def enqueue(self, asked: pb.EnqueueRequest, caller: Caller) -> Message:
        """Store a message, or give its content to the pending one with its key."""
        caller.permit.require(Action.WRITE, asked.topic)
        _require("topic", asked.topic)
        _require("payload", asked.payload)
        new = NewMessage(
            asked.topic,
            stored_payload(asked.payload),
            dict(asked.metadata) or None,
            asked.key if asked.HasField("key") else None,
        )
        return pb.EnqueueResponse(id=await self._calls.enqueue(new, caller.reach))

    async def dequeue(self, asked: pb.DequeueRequest, caller: Caller) -> Message:
        """Take one message, also from a dead-letter topic."""
        await self._calls.require_consuming(asked.topic, asked.consumer_group, caller.permit)
        taken = await self._take(_wanted(asked, 1), caller)
        if not taken:
            raise NotFound("no messages available")
        return taken[0]

    async def batch_dequeue(self, asked: pb.BatchDequeueRequest, caller: Caller) -> Message:
        """Take up to `count` messages; none from a dead-letter topic."""
        await self._calls.require_consuming(asked.topic, asked.consumer_group, caller.permit)
        wanted = _wanted(asked, asked.count)
        if asked.topic.endswith(DLQ):
            caller.reach.require([asked.topic])
            return pb.BatchDequeueResponse()
        return pb.BatchDequeueResponse(messages=await self._take(wanted, caller))

    async def ack(self, asked: pb.AckRequest, caller: Caller) -> Message:
        """Say that a message is done: it is gone."""
        _require("id", asked.id)
        group, reach = asked.consumer_group, caller.reach
        await self._calls.require_settling(asked.id, group, reach, caller.permit)
        await self._calls.ack(asked.id, group, reach)
        return pb.AckResponse()

    async def nack(self, asked: pb.NackRequest, caller: Caller) -> Message:
        """Say that a message failed."""
        _require("id", asked.id)
        group, reach = asked.consumer_group, caller.reach
        await self._calls.require_settling(asked.id, group, reach, caller.permit)
        await self._calls.nack(asked.id, asked.error, group, reach)
        return pb.NackResponse()

    async def subscribe(self, asked: pb.SubscribeRequest, caller: Caller, context: Context) -> None:
        """Send messages as they come, while few enough of them are not settled.

        Those that were sent keep their visibility time-out when the client goes away: it may still
        settle them.
        """
        await self._require_consuming(asked, caller)
        window = ClaimWindow(self._window)
        _wanted(asked, window.room)
        # Without this a client could not tell a subscription without messages from one that hangs.
        await context.send_initial_metadata(())
        with self._guard.while_valid(caller.key, window.end):
            while not (self._calls.has_stopped or window.ended):
                await self._send(asked, caller, context, window)
                await window.wait_for_room()
        if window.ended:
            raise Unauthorized("the key of this subscription is not known here any longer")
        raise ServiceUnavailable("the server is stopping: subscribe again shortly")

    async def _send(
        self, asked: pb.SubscribeRequest, caller: Caller, context: Context, window: ClaimWindow
    ) -> None:
        """Send the next messages of a subscription, as many as there is room for."""
        with (
            self._calls.claimer(_wanted(asked, window.room), caller.reach, window) as claimer,
            self._guard.while_valid(caller.key, claimer.give_up),
        ):
            jobs = await claimer.take()
            # The user may have lost the right while this has waited: then the jobs go back.
            await self._require_consuming(asked, caller)
            with self._answers.room(sum([job.payload_size for job in jobs])):
                jobs = await self._calls.readable(jobs)
                for job, document in zip(
                    jobs, await self._calls.documents(jobs, asked.topic), strict=True
                ):
                    await context.write(subscribed(job, document))
                    claimer.leases.pop(job.key)
                jobs.clear()

    async def _take(self, wanted: MessagesWanted, caller: Caller) -> list[pb.DequeueResponse]:
        with self._calls.claimer(wanted, caller.reach) as claimer:
            jobs = await claimer.take()
            size = sum([job.payload_size for job in jobs])
            self._answers.admit(size)
            with self._answers.room(size):
                jobs = await self._calls.readable(jobs)
                documents = await self._calls.documents(jobs, wanted.topic)
                return [dequeued(*pair) for pair in zip(jobs, documents, strict=True)]

    async def _subscription(self, sent: bytes, context: Context) -> None:
        async with self._call(context, KeyScope.TAKE) as caller:
            asked = _parsed(pb.SubscribeRequest, sent, context)
            with self._peers.one_more(caller.peer, _too_many):
                await self.subscribe(asked, caller, context)

    async def _require_consuming(self, asked: pb.SubscribeRequest, caller: Caller) -> None:
        permit = caller.permit
        if self._access is not None:
            permit = await self._access.renewed(permit)
        await self._calls.require_consuming(asked.topic, asked.consumer_group, permit)

    def _unary(
        self,
        asked: type[Asked],
        scope: KeyScope,
        serve: Callable[[Asked, Caller], Awaitable[Message]],
    ) -> grpc.RpcMethodHandler[Any, Any]:
        async def handler(sent: bytes, context: Context) -> Message:
            async with self._call(context, scope) as caller:
                # The message is held as it was sent, and once more as it was read.
                size, reserved = len(sent), scope is not KeyScope.ENQUEUE
                with self._bodies.counting(size, reserved=reserved), self._bodies.holding(size):
                    return await serve(_parsed(asked, sent, context), caller)
            raise AssertionError("an error has ended the call")

        # Messages are parsed once their sender is admitted, and their errors are ours.
        return grpc.unary_unary_rpc_method_handler(handler, None, _serialized)

    async def _admit(self, context: Context, scope: KeyScope, link: RpcLink) -> Caller:
        header, certificate, peer = _header(context, "authorization"), link.certified, link.peer
        if self._access is None:
            return Caller(*self._guard.admit_call(header, certificate, scope), EVERYTHING, peer)
        secret = _header(context, KEY_BESIDE.lower())
        key = None if secret is None else f"Bearer {secret}"
        admitted = self._guard.admit_call(key, certificate, scope)
        return Caller(*admitted, Permit(await self._access.user(header, peer)), peer)

    @asynccontextmanager
    async def _call(self, context: Context, scope: KeyScope) -> AsyncIterator[Caller]:
        """Admit a call. Within the block, errors are answered with their statuses."""
        try:
            link = self._links.of(str(context.peer()))
            with link.calling():
                yield await self._admit(context, scope, link)
        except ZqError as error:
            self._refused[error.code] += 1
            await context.abort(status_in(CODES, error), text_of(error))
        except Exception as error:
            log.exception("a call failed")
            told = unexpected(error)
            await context.abort(status_in(CODES, told), text_of(told))


def _parsed(kind: type[Asked], sent: bytes, context: Context) -> Asked:
    if has_too_many_fields(sent):
        raise InvalidRequest(
            f"the message has more than {MOST_FIELDS} fields, of which each entry of the metadata"
            " is one: send fewer"
        )
    try:
        asked = kind.FromString(sent)
    except DecodeError:
        raise InvalidRequest(f"the message cannot be read as a {kind.DESCRIPTOR.name}") from None
    strict = _header(context, STRICT_HEADER.lower())
    if strict is not None and strict_value(strict):
        unknown: Any = UnknownFieldSet(asked)
        for field in unknown:
            raise UnknownField(
                f"{kind.DESCRIPTOR.name} has no field of the number {field.field_number}: this"
                " server's queue.proto lists its fields"
            )
    return asked


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _header(context: Context, wanted: str) -> str | None:
    """A value of the metadata of a call, which is what headers are to HTTP."""
    for name, value in context.invocation_metadata() or ():
        if name == wanted:
            return value if isinstance(value, str) else value.decode(errors="replace")
    return None


def _require(name: str, value: str | bytes) -> None:
    if not value:
        raise InvalidRequest(f"{name} is required")


def _wanted(asked: Timed, most: int) -> MessagesWanted:
    _require("topic", asked.topic)
    seconds = None
    if asked.HasField("visibility_timeout_seconds"):
        seconds = asked.visibility_timeout_seconds
        if seconds == 0:
            raise InvalidRequest(
                "visibility_timeout_seconds must be greater than zero: leave it out for the usual"
                " one"
            )
    return MessagesWanted(asked.topic, most, seconds, asked.consumer_group)


def _too_many() -> TooManyStreams:
    return TooManyStreams(
        "this address has as many subscriptions as --max-streams-per-peer permits: end some, or"
        " raise it"
    )


CODES: dict[type[ZqError], StatusCode] = {
    errors.InvalidRequest: StatusCode.INVALID_ARGUMENT,
    errors.Unauthorized: StatusCode.UNAUTHENTICATED,
    errors.Forbidden: StatusCode.PERMISSION_DENIED,
    errors.NotFound: StatusCode.NOT_FOUND,
    errors.RequestTimeout: StatusCode.DEADLINE_EXCEEDED,
    errors.Conflict: StatusCode.FAILED_PRECONDITION,
    errors.Gone: StatusCode.NOT_FOUND,
    # Sending it again does not help, as RESOURCE_EXHAUSTED would promise.
    errors.TooLarge: StatusCode.INVALID_ARGUMENT,
    errors.Unprocessable: StatusCode.INVALID_ARGUMENT,
    QueueNotRegistered: StatusCode.FAILED_PRECONDITION,
    errors.LimitReached: StatusCode.RESOURCE_EXHAUSTED,
    errors.Internal: StatusCode.INTERNAL,
    errors.NotOnThisStore: StatusCode.UNIMPLEMENTED,
    errors.ServiceUnavailable: StatusCode.UNAVAILABLE,
    errors.StorageFull: StatusCode.RESOURCE_EXHAUSTED,
}
