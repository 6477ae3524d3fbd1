"""Request bodies of queue-ti: JSON, or a form of plain fields, into shapes that are checked."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl

import msgspec
from aiohttp import hdrs, web
from msgspec import Meta

from zq.http.api.endpoints import is_strict
from zq.http.bulk_line import SMALL, BulkLine
from zq.http.door import Handler
from zq.http.reading import RequestBodies
from zq.http.transport.answer import Response
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME, MAX_UINT32
from zq.model.settings import MAX_RATE
from zq.wire.codecs import JSON
from zq.wire.strict import refuse_unknown, strict_decoder
from zq.wire.weight import QUICK_BYTES

T = TypeVar("T")
Serve = Callable[[web.BaseRequest, T], Awaitable[Response]]

FORM = "application/x-www-form-urlencoded"
WRONG = "invalid request body"

MOST_FIELDS = 1_000
"""The most fields of a form. No message has more than a few."""

Count = Annotated[int, Meta(ge=0, le=MAX_UINT32)]
Seconds = Annotated[int, Meta(ge=0, le=MAX_TIME // 1000)]


class EnqueueBody(msgspec.Struct):
    topic: str = ""
    payload: str = ""
    metadata: dict[str, str] | None = None
    key: str | None = None


class DequeueBody(msgspec.Struct):
    topic: str = ""
    count: int | None = None
    visibility_timeout_seconds: int | None = None
    consumer_group: str | None = None


class SettleBody(msgspec.Struct):
    error: str | None = None
    consumer_group: str | None = None


class PurgeBody(msgspec.Struct, forbid_unknown_fields=True):
    statuses: list[str] | None = None


class SchemaBody(msgspec.Struct):
    schema_json: str


class ReplayBody(msgspec.Struct):
    from_time: str | None = None


class GroupBody(msgspec.Struct):
    consumer_group: str | None = None


class ScheduleBody(msgspec.Struct):
    schedule: str


class OverridesBody(msgspec.Struct):
    max_retries: Count | None = None
    message_ttl_seconds: Seconds | None = None
    max_depth: Count | None = None
    throughput_limit: int | None = None
    replayable: bool | None = None
    replay_window_seconds: Count | None = None


class MessageEndpoints:
    """Endpoints that read a body: ``serve(request, what was sent)``."""

    def __init__(self, bodies: RequestBodies, line: BulkLine) -> None:
        self._bodies = bodies
        self._line = line

    def new_message(self, shape: type[T], serve: Serve[T]) -> Handler:
        """An endpoint for new messages, of which large bodies take turns."""
        bodies, line = self._bodies, self._line

        async def handler(request: web.BaseRequest) -> Response:
            body = await bodies.read(request, reserved=False)
            try:
                if len(body) > SMALL:
                    await line.take(request.transport, len(body))
                return await serve(request, await _decoded(bodies, body, request, shape))
            finally:
                bodies.release(len(body))

        handler.__doc__ = serve.__doc__
        return handler

    def change(self, shape: type[T], serve: Serve[T], *, optional: bool = False) -> Handler:
        """An endpoint for anything else, whose body may be missing where it is `optional`."""
        bodies = self._bodies

        async def handler(request: web.BaseRequest) -> Response:
            body = await bodies.read(request, reserved=True)
            try:
                if optional and not body:
                    return await serve(request, shape())
                return await serve(request, await _decoded(bodies, body, request, shape))
            finally:
                bodies.release(len(body))

        handler.__doc__ = serve.__doc__
        return handler


async def _decoded(
    bodies: RequestBodies, body: bytes, request: web.BaseRequest, shape: type[T]
) -> T:
    """A body as a value. One that the loop cannot read in a slice is looked at aside first."""
    if len(body) > QUICK_BYTES and FORM not in request.headers.get(hdrs.CONTENT_TYPE, "").lower():
        await bodies.light(request, body, JSON)
    return _decode(body, request, shape)


def _decode(body: bytes, request: web.BaseRequest, shape: type[T]) -> T:
    kind = request.headers.get(hdrs.CONTENT_TYPE, "").partition(";")[0].strip().lower()
    strict = is_strict(request)
    try:
        if kind == "application/json" or kind.endswith("+json"):
            if strict:
                strict_decoder(shape).decode(body)
            return msgspec.json.decode(body, type=shape)
        if kind == FORM:
            fields = dict(
                parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
            )
            if strict:
                msgspec.convert(fields, strict_decoder(shape).type, strict=False)
            return msgspec.convert(fields, shape, strict=False)
    except msgspec.ValidationError as error:
        refuse_unknown(error, shape, f"{WRONG}: ")
        raise InvalidRequest(f"{WRONG}: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{WRONG}: {error}") from None
    except ValueError as error:  # of the form: it has too many fields
        raise InvalidRequest(f"{WRONG}: {error}: send up to {MOST_FIELDS}") from None
    except RecursionError:
        raise InvalidRequest(f"{WRONG}: it nests too deeply") from None
    raise InvalidRequest(f"{WRONG}: send it as application/json")


def throughput(limit: int | None) -> float | None:
    """A checked `throughput_limit` as a rate; none and 0 mean no limit."""
    if limit is not None and not 0 <= limit <= MAX_RATE:
        raise InvalidRequest(
            f"throughput_limit must be a non-negative integer of at most {MAX_RATE}"
        )
    return limit or None
