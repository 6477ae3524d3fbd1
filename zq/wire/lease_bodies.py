"""Request bodies about leases: claims, extensions, releases."""

from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from zq.model.errors import InvalidRequest
from zq.model.job import LeaseMillis, Millis, UInt32
from zq.model.leasing import MOST_CLAIMED, Terms
from zq.model.settling import MOST_WAIT_MS
from zq.wire.bodies import Limits, check_items
from zq.wire.codecs import BodyCodec, decode

Claimant = Annotated[str, Meta(min_length=1, max_length=256)]


class _Claim(msgspec.Struct, forbid_unknown_fields=True):
    holder: Claimant
    max: Annotated[int, Meta(ge=1, le=MOST_CLAIMED)] = 1
    lease_ms: LeaseMillis | None = None
    wait_ms: Annotated[int, Meta(ge=0, le=MOST_WAIT_MS)] = 0


class _Named(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    lease: UInt32 | None = None


class _Extend(msgspec.Struct, forbid_unknown_fields=True):
    lease_ms: LeaseMillis
    lease: UInt32 | None = None


class _ExtendMany(msgspec.Struct, forbid_unknown_fields=True):
    items: list[_Named]
    lease_ms: LeaseMillis
    resumed: bool = False


class _Release(msgspec.Struct, forbid_unknown_fields=True):
    lease: UInt32 | None = None
    delay_ms: Millis = 0


class _ReleaseMany(msgspec.Struct, forbid_unknown_fields=True):
    items: list[_Named]
    delay_ms: Millis = 0


_claim = msgspec.json.Decoder(_Claim)
_extend = msgspec.json.Decoder(_Extend)
_extend_many = msgspec.json.Decoder(_ExtendMany)
_release = msgspec.json.Decoder(_Release)
_release_many = msgspec.json.Decoder(_ReleaseMany)


class ExtendRequest(NamedTuple):
    """By id the deliveries that are named, the new time, and whether stalls are taken back."""

    named: dict[str, int | None]
    lease_ms: int
    resumed: bool


class ClaimRequest(NamedTuple):
    """The number of jobs, the terms, and how long to wait for the first job."""

    most: int
    terms: Terms
    wait_ms: int


def decode_claim(body: bytes, codec: BodyCodec) -> ClaimRequest:
    sent = decode(body, codec, _claim)
    if not sent.holder.isprintable():
        raise InvalidRequest("holder must hold printable characters only")
    return ClaimRequest(sent.max, Terms(sent.lease_ms, sent.holder), sent.wait_ms)


def decode_extend(body: bytes, codec: BodyCodec) -> tuple[int | None, int]:
    """The body of a single extension: the new time, and the delivery if it is named."""
    sent = decode(body, codec, _extend)
    return sent.lease, sent.lease_ms


def decode_extend_many(body: bytes, codec: BodyCodec, limits: Limits) -> ExtendRequest:
    """The body of a bulk extension."""
    sent = decode(body, codec, _extend_many)
    return ExtendRequest(_deliveries(sent.items, limits), sent.lease_ms, sent.resumed)


def decode_release(body: bytes, codec: BodyCodec) -> tuple[int | None, int]:
    """The body of a single release: the delay, and the delivery. It may be missing."""
    sent = decode(body, codec, _release) if body else _Release()
    return sent.lease, sent.delay_ms


def decode_release_many(
    body: bytes, codec: BodyCodec, limits: Limits
) -> tuple[dict[str, int | None], int]:
    """The body of a bulk release: the delay, and by id the deliveries that are named."""
    sent = decode(body, codec, _release_many)
    return _deliveries(sent.items, limits), sent.delay_ms


def _deliveries(items: list[_Named], limits: Limits) -> dict[str, int | None]:
    check_items(len(items), limits, "items")
    if not items:
        raise InvalidRequest("items must not be empty")
    found: dict[str, int | None] = {}
    for index, item in enumerate(items):
        if item.id in found:
            raise InvalidRequest(f"items[{index}].id: {item.id[:64]!r} is named twice")
        found[item.id] = item.lease
    return found


# The names of these shapes in the description of the API.
ClaimBody, ExtendBody, ExtendManyBody = _Claim, _Extend, _ExtendMany
ReleaseBody, ReleaseManyBody = _Release, _ReleaseMany
