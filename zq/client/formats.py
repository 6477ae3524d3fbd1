"""The two formats that a client can use. They carry the same data; JSON is the faster one here.

Values that JSON does not have are sent as msgspec writes them: times as RFC 3339 text, bytes as
base64, dataclasses and structs as objects. Models of pydantic are sent in their own JSON form.
"""

import contextlib
import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from zq.client.errors import InvalidPayload
from zq.client.models import SECRET, is_secret
from zq.client.unions import is_model
from zq.client.values import Delivery, Notice

T = TypeVar("T")

_LENGTH = struct.Struct(">I")


def plain(value: Any) -> Any:
    """Data in place of a value that msgspec does not know. Raises TypeError."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"values of type {type(value).__name__} cannot be sent")
    kind: Any = type(value)
    if not is_model(kind):
        return dump(mode="json")
    if is_secret(kind):
        raise TypeError(f"{kind.__name__} cannot be sent: {SECRET}")
    # So that the model takes its own data back: by aliases, and without what it computes.
    return dump(mode="json", by_alias=True, round_trip=True)


def said_by(error: BaseException) -> str:
    """The message of any exception, as text that can be sent. Its own code may raise as well."""
    kind = type(error).__name__
    try:
        said = str(error)
    except BaseException as fault:
        return f"{kind}, whose message cannot be read: {type(fault).__name__}"
    # Bytes in file names, for example, are not all characters.
    return said.encode(errors="replace").decode() or kind


@dataclass(frozen=True)
class Codec:
    """A format of bodies and of the take stream."""

    content_type: str
    stream_type: str
    write: Callable[[Any], bytes]
    read: Callable[..., Any]
    cut: Callable[[bytes], tuple[Sequence[Delivery | Notice], bytes]]
    """Splits the received bytes of a stream into messages and the rest, an unfinished frame."""
    gather: Callable[[Sequence[bytes]], bytes]
    """Makes a bulk body from encoded jobs."""
    may_hide: Callable[[bytes], Any]
    """True if a body may have come of a float that is no number. JSON has null in its place."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _codec, (self.content_type,)

    def encode(self, value: Any) -> bytes:
        """Raises `InvalidPayload` for values that cannot be sent.

        A value's own code may raise anything while it is written, such as the `model_dump` of a
        model or a property. Only an interrupt is not the value's.
        """
        try:
            body = self.write(value)
            if self.may_hide(body) and (place := _no_number(value)):
                raise InvalidPayload(
                    f"the value cannot be sent: {place}, and JSON has no such number: send None"
                )
            return body
        except InvalidPayload:
            raise
        except RecursionError as error:
            raise InvalidPayload("the value cannot be sent: it is nested too deeply") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise InvalidPayload(f"the value cannot be sent: {said_by(error)}") from error

    def decode(self, body: bytes, type: type[T]) -> T:
        """Raises msgspec.MsgspecError."""
        value: T = self.read(body, type=type)
        return value


_INFINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""A float of MessagePack that is no number. Little else looks so."""


def _no_number(value: Any) -> str:
    """The place of the first float in a value that is no number, and that float; empty if there is
    none."""
    # Most nulls are None, and a look at each part of a value takes ten times as long as this.
    with contextlib.suppress(OverflowError):  # a whole number that MessagePack does not have
        if not _INFINITE.search(msgspec.msgpack.encode(value, enc_hook=plain)):
            return ""
    left = [("", msgspec.to_builtins(value, str_keys=True, enc_hook=plain))]
    while left:
        place, part = left.pop()
        if isinstance(part, float) and not math.isfinite(part):
            return f"{place.removeprefix('.') or 'it'} is {part}"
        if isinstance(part, dict):
            left += [(f"{place}.{name}", each) for name, each in reversed(part.items())]
        elif isinstance(part, list | tuple | set | frozenset):
            left += [(f"{place}[{index}]", each) for index, each in reversed([*enumerate(part)])]
    return ""


def _cut_lines(data: bytes) -> tuple[Sequence[Delivery | Notice], bytes]:
    end = data.rfind(b"\n") + 1
    text, rest = data[:end], data[end:]
    if _NOTICE not in text:
        # Heartbeats are empty lines, which the decoder skips.
        return _lines.decode_lines(text), rest
    lines = [line for line in text.split(b"\n") if line]
    return [
        _notices.decode(line) if line.startswith(_NOTICE) else _lines.decode(line) for line in lines
    ], rest


def _cut_frames(data: bytes) -> tuple[Sequence[Delivery | Notice], bytes]:
    found: list[Delivery | Notice] = []
    start = 0
    while len(data) >= start + _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data, start)
        end = start + _LENGTH.size + length
        if len(data) < end:
            break
        frame = data[start + _LENGTH.size : end]
        if frame[1:9] == _PACKED_NOTICE:
            found.append(_packed_notices.decode(frame))
        elif frame:
            found.append(_frames.decode(frame))
        start = end
    return found, data[start:]


def _pack(value: Any) -> bytes:
    # The server refuses MessagePack's own types for times and bytes in a job.
    return _packer.encode(msgspec.to_builtins(value, str_keys=True, enc_hook=plain))


def _gather_texts(jobs: Sequence[bytes]) -> bytes:
    return b'{"jobs":[%b]}' % b",".join(jobs)


def _gather_packed(jobs: Sequence[bytes]) -> bytes:
    return _packer.encode({"jobs": [msgspec.Raw(job) for job in jobs]})


# A notice begins with the field that only notices have.
_NOTICE = b'{"control":'
_PACKED_NOTICE = msgspec.msgpack.encode("control")

_lines = msgspec.json.Decoder(Delivery)
_notices = msgspec.json.Decoder(Notice)
_packed_notices = msgspec.msgpack.Decoder(Notice)
_frames = msgspec.msgpack.Decoder(Delivery)
_packer = msgspec.msgpack.Encoder()

JSON = Codec(
    "application/json",
    "application/x-ndjson",
    msgspec.json.Encoder(enc_hook=plain).encode,
    msgspec.json.decode,
    _cut_lines,
    _gather_texts,
    lambda body: b"null" in body,
)
MSGPACK = Codec(
    "application/msgpack",
    "application/vnd.zizq.msgpack-stream",
    _pack,
    msgspec.msgpack.decode,
    _cut_frames,
    _gather_packed,
    _INFINITE.search,
)
CODECS = {codec.content_type: codec for codec in (JSON, MSGPACK)}


def _codec(content_type: str) -> Codec:
    return CODECS[content_type]
