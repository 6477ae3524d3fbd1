"""Request bodies of queue-ti: JSON, or a form of plain fields, into shapes that are checked."""

from typing import Annotated, TypeVar
from urllib.parse import parse_qsl

import msgspec
from aiohttp import hdrs, web
from msgspec import Meta

from zq.http.transport.bodies import Bodies
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME, MAX_UINT32
from zq.model.settings import MAX_RATE

T = TypeVar("T")

FORM = "application/x-www-form-urlencoded"
WRONG = "invalid request body"

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


class PurgeBody(msgspec.Struct):
    statuses: list[str] | None = None


class OverridesBody(msgspec.Struct):
    max_retries: Count | None = None
    message_ttl_seconds: Seconds | None = None
    max_depth: Count | None = None
    throughput_limit: int | None = None
    replayable: bool | None = None
    replay_window_seconds: Count | None = None


class BodyReader:
    """Reads bodies and gives back the memory that they took."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies

    async def read(
        self, request: web.BaseRequest, shape: type[T], *, optional: bool = False, new: bool = False
    ) -> T:
        """The body in its shape; an `optional` one may be missing. `new` jobs have no reserve.

        Raises `InvalidRequest`, and what `Bodies.read` does.
        """
        body = await self._bodies.read(request, reserved=not new)
        try:
            if optional and not body:
                return shape()
            return _decode(body, request.headers.get(hdrs.CONTENT_TYPE, ""), shape)
        finally:
            self._bodies.release(len(body))


def _decode(body: bytes, content_type: str, shape: type[T]) -> T:
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind == "application/json" or kind.endswith("+json"):
            return msgspec.json.decode(body, type=shape)
        if kind == FORM:
            fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
            return msgspec.convert(fields, shape, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{WRONG}: {error}") from None
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
