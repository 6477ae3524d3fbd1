"""Bodies from people and forms as payloads: JSON, forms, text and bytes.

https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#form-submission
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from zq.model.errors import InvalidRequest, TooManyValues
from zq.wire.codecs import JSON, MSGPACK
from zq.wire.weight import LIGHT_BYTES, check_json, is_light, json_of_msgpack

TEXT = "text/plain"
BYTES = "application/octet-stream"
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

LIGHT_FORM = 16 * 1024
"""The size in bytes up to which a form is read on the loop."""

_CODECS = {codec.content_type: codec for codec in (JSON, MSGPACK)}

MEDIA_TYPES = (JSON.content_type, MSGPACK.content_type, URLENCODED, MULTIPART, TEXT, BYTES)


class Pushed(NamedTuple):
    """A payload as JSON text, and its original type. Bytes are base64 in it."""

    text: bytes
    content_type: str | None = None
    known_key: str | None = None
    """The name that equal payloads share, if it was computed aside."""

    @property
    def raw(self) -> msgspec.Raw:
        """The text, ready to be put into a document."""
        return msgspec.Raw(self.text)

    def value(self) -> Any:
        """The payload as a program sees it."""
        value = msgspec.json.decode(self.text)
        return base64.b64decode(value) if self.content_type == BYTES else value

    def key(self) -> str:
        """A name that equal payloads share: see `digest_of`."""
        return self.known_key or digest_of(_canonical.encode(msgspec.json.decode(self.text)))


_canonical = msgspec.json.Encoder(order="sorted")


def digest_of(canonical: bytes) -> str:
    """The name of equal payloads: 16 hex digits of SHA-256 of the JSON with sorted keys.

    Spaces and the order of an object's fields do not matter.
    """
    return hashlib.sha256(canonical).hexdigest()[:16]


def read_push(content_type: str | None, body: bytes) -> Pushed | None:
    """The payload for a body; None if its media type is not one of `MEDIA_TYPES`.

    Without a media type the body is read as JSON. A form becomes an object, in which a repeated
    field is a list. Raises `InvalidRequest` if the body is empty or cannot be read.
    """
    kind = _kind(content_type)
    if kind not in MEDIA_TYPES:
        return None
    if not body:
        raise InvalidRequest("the body is empty: there is nothing to push")
    if kind == TEXT:
        return Pushed(msgspec.json.encode(_text(body, "the body")), TEXT)
    if kind == BYTES:
        return Pushed(msgspec.json.encode(base64.b64encode(body).decode()), BYTES)
    if kind == URLENCODED:
        return Pushed(msgspec.json.encode(_urlencoded(body)))
    if kind == MULTIPART:
        return Pushed(msgspec.json.encode(_multipart(content_type or "", body)))
    text = _CODECS[kind].to_json(body)
    if text.strip() in (b"null", b'""'):
        raise InvalidRequest("the payload is empty: there is nothing to push")
    return Pushed(text)


def is_light_push(content_type: str | None, body: bytes) -> bool:
    """True if the event loop may call `read_push`. Forms take it longer than other bodies."""
    kind = _kind(content_type)
    if kind in (URLENCODED, MULTIPART):
        return len(body) <= LIGHT_FORM
    if kind in _CODECS:
        return len(body) <= LIGHT_BYTES and is_light(body, _CODECS[kind].name)
    return len(body) <= LIGHT_BYTES


def heavy_push(body: bytes, content_type: str | None, most: int) -> Iterator[bytes]:
    """The payload of `pushed_aside`: text, type and key. It takes long, and runs aside.

    Raises as `read_push` does, and `TooManyValues` for more than `most` values.
    """
    kind = _kind(content_type)
    if kind == MSGPACK.content_type:
        (body,) = json_of_msgpack(body, most)
        content_type = JSON.content_type
    elif kind == JSON.content_type:
        list(check_json(body, most))
    elif kind == URLENCODED and body.count(b"&") >= most:
        raise TooManyValues(most)
    pushed = read_push(content_type, body)
    if pushed is not None:
        yield from (pushed.text, (pushed.content_type or "").encode(), pushed.key().encode())


def pushed_aside(pieces: Sequence[bytes]) -> Pushed | None:
    """The payload from what `heavy_push` has yielded."""
    if not pieces:
        return None
    text, content_type, key = pieces
    return Pushed(text, content_type.decode() or None, key.decode())


def _kind(content_type: str | None) -> str:
    return (content_type or JSON.content_type).partition(";")[0].strip().lower()


def _urlencoded(body: bytes) -> dict[str, Any]:
    text = _text(body, "the form")
    try:
        fields = parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict")
    except ValueError as error:
        raise InvalidRequest(f"the form cannot be read: {error}") from None
    return _object(fields)


def _multipart(content_type: str, body: bytes) -> dict[str, Any]:
    # It takes 1 MB, and few forms have parts.
    from email.parser import BytesParser
    from email.policy import HTTP

    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    form = BytesParser(policy=HTTP).parsebytes(head + body)
    if not form.is_multipart() or form.defects:
        raise InvalidRequest("the form cannot be read: its parts do not match its boundary")
    fields: list[tuple[str, str]] = []
    for part in form.iter_parts():
        name = part.get_param("name", header="content-disposition")
        if not isinstance(name, str):
            raise InvalidRequest("the form cannot be read: a part has no name")
        if part.get_filename() is not None:
            raise InvalidRequest(
                f"the field {name!r} is a file, which a form cannot push: post it alone, as {BYTES}"
            )
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        fields.append((name, _text(content, f"the field {name!r}")))
    return _object(fields)


def _object(fields: list[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in fields:
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{what} is not UTF-8 text: post bytes as {BYTES}") from None
