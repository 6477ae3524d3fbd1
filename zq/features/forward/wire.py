"""Lanes in requests and answers."""

from collections.abc import Sequence

import msgspec

from zq.features.forward.model import Backlog, Compression, LaneRule, WhenFull, check_rule
from zq.wire.codecs import BodyCodec, decode


class LaneBody(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The rule of a lane as a request gives it: files are named at the start of the server only."""

    queues: list[str]
    url: str
    token: str | None = None
    batch: int = 500
    rate: float | None = None
    backlog: Backlog = "in_order"
    backlog_rate: float | None = None
    compression: Compression = "gzip"
    buffered: bool = False
    max_bytes: int | None = None
    max_age_ms: int | None = None
    when_full: WhenFull = "refuse"
    history: bool = True


class ResumeBody(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """With `take_over`, the lane takes the place of another server of its name at the hub, once."""

    take_over: bool = False


class LaneDocument(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A lane. Times are in milliseconds since the epoch.

    `state` is `starting`, `sending`, `idle`, `waiting` (after an error), `paused`, `pulled`, or
    `elsewhere` if another of the servers that share the store carries the lane.
    `waiting` jobs are here, `under_way` of them have numbers. `bytes` are those of their payloads,
    as they were counted last, and `lag_ms` is the age of the oldest job, from `oldest_at` on.
    `arrived`, `refused`, `dropped` and `sent_bytes` count since the start of the server. `failure`
    is the last error, of `failed_at`, and `error` is one that lasts: the lane tries again at
    `retry_at`.
    """

    name: str
    queues: Sequence[str]
    url: str | None = None
    state: str
    declared: bool
    waiting: int
    under_way: int
    bytes: int
    lag_ms: int | None = None
    oldest_at: int | None = None
    arrived: int
    refused: int
    dropped: int
    sent_bytes: int
    succeeded_at: int | None = None
    failure: str | None = None
    failed_at: int | None = None
    retry_at: int | None = None
    error: str | None = None
    error_code: str | None = None
    epoch: str
    next: int


class HubDocument(msgspec.Struct, omit_defaults=True):
    """What comes back from a hub, and what has gone there besides jobs, since the start.

    `state` is `starting`, `listening`, or `waiting` after an `error`. `fetched` jobs were for this
    server, which has `refused` some. `records` of its history were sent.
    """

    url: str
    state: str
    fetched: int
    refused: int
    records: int
    succeeded_at: int | None = None
    failed_at: int | None = None
    error: str | None = None
    error_code: str | None = None


class LaneHealth(msgspec.Struct, omit_defaults=True):
    """How a lane goes, with the fields of `GET /forward`."""

    name: str
    state: str
    waiting: int
    bytes: int
    lag_ms: int | None = None
    oldest_at: int | None = None
    succeeded_at: int | None = None
    error: str | None = None
    failed_at: int | None = None
    failure: str | None = None


class LanesDocument(msgspec.Struct):
    """All lanes by name, and the hubs that they lead to."""

    lanes: list[LaneDocument]
    hubs: list[HubDocument]


_lane = msgspec.json.Decoder(LaneBody)
_resume = msgspec.json.Decoder(ResumeBody)


def decode_lane(body: bytes, codec: BodyCodec) -> LaneRule:
    """The body that makes or changes a lane. Raises `InvalidRequest`."""
    sent = msgspec.structs.asdict(decode(body, codec, _lane))
    return check_rule(LaneRule(**{**sent, "queues": tuple(sent["queues"])}))


def decode_resume(body: bytes, codec: BodyCodec) -> ResumeBody:
    """The body that lets a lane go on. Raises `InvalidRequest`."""
    return decode(body, codec, _resume)
