"""The two formats that a client may speak. They carry the same data; JSON is the faster one here.

Values that JSON does not have travel as msgspec writes them: times as RFC 3339 text, bytes as
base64, dataclasses and structs as objects. Models of pydantic travel as their own JSON form.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from zq.client.errors import InvalidPayload
from zq.client.values import Delivery

T = TypeVar("T")

_LENGTH = struct.Struct(">I")


def plain(value: Any) -> Any:
    """What stands for a value that msgspec does not know. Raises TypeError."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} is no data that can be sent")
    return dump(mode="json")


@dataclass(frozen=True)
class Codec:
    """A format of bodies and of the take stream."""

    content_type: str
    stream_type: str
    write: Callable[[Any], bytes]
    read: Callable[..., Any]
    cut: Callable[[bytes], tuple[Sequence[Delivery], bytes]]
    """Deliveries in what has arrived of a stream, and the part of a frame that is left."""

    def encode(self, value: Any) -> bytes:
        """Raises `InvalidPayload` for what is no plain data."""
        try:
            return self.write(value)
        except (TypeError, OverflowError, UnicodeEncodeError, msgspec.MsgspecError) as error:
            raise InvalidPayload(f"this cannot be sent: {error}") from error
        except RecursionError as error:
            raise InvalidPayload("this cannot be sent: it nests too deeply") from error

    def decode(self, body: bytes, type: type[T]) -> T:
        """Raises msgspec.MsgspecError."""
        value: T = self.read(body, type=type)
        return value


def _cut_lines(data: bytes) -> tuple[Sequence[Delivery], bytes]:
    end = data.rfind(b"\n") + 1
    # Heartbeats are empty lines, which the decoder passes over.
    return _lines.decode_lines(data[:end]), data[end:]


def _cut_frames(data: bytes) -> tuple[Sequence[Delivery], bytes]:
    found: list[Delivery] = []
    start = 0
    while len(data) >= start + _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data, start)
        end = start + _LENGTH.size + length
        if len(data) < end:
            break
        if length:
            found.append(_frames.decode(data[start + _LENGTH.size : end]))
        start = end
    return found, data[start:]


def _pack(value: Any) -> bytes:
    # MessagePack's own types for times and bytes have no place in a job: the server refuses them.
    return _packer.encode(msgspec.to_builtins(value, str_keys=True, enc_hook=plain))


_lines = msgspec.json.Decoder(Delivery)
_frames = msgspec.msgpack.Decoder(Delivery)
_packer = msgspec.msgpack.Encoder()

JSON = Codec(
    "application/json",
    "application/x-ndjson",
    msgspec.json.Encoder(enc_hook=plain).encode,
    msgspec.json.decode,
    _cut_lines,
)
MSGPACK = Codec(
    "application/msgpack",
    "application/vnd.zizq.msgpack-stream",
    _pack,
    msgspec.msgpack.decode,
    _cut_frames,
)
CODECS = {codec.content_type: codec for codec in (JSON, MSGPACK)}
