"""The verbs about the fair keys of a queue."""

from types import NoneType

import msgspec

from zq.features.fair.model import (
    DEFAULT_WEIGHT,
    FairKeyState,
    FairLimit,
    FairOrder,
    check_limit,
)
from zq.model.keys import KeyScope
from zq.verbs import FIFTY, WHOLE, Parameter, Verb, choices
from zq.wire.codecs import BodyCodec, decode


class FairKeyDocument(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A fair key of a queue.

    `behind_ms` says how far its next job stands behind that of the key whose turn it is, in
    milliseconds of a worker's time by weight: 0 is next. `share` is its part of the queue while all
    keys that have waiting jobs keep having some. `mean_ms` is the smoothed running time of its
    jobs, `oldest_ready` when its first waiting job became ready. `limit` is what is set for it.
    """

    key: str
    weight: float
    waiting: int
    in_flight: int
    share: float | None = None
    behind_ms: float | None = None
    mean_ms: float | None = None
    oldest_ready: int | None = None
    limit: FairLimit | None = None


class FairKeysDocument(msgspec.Struct, omit_defaults=True):
    """Keys of a queue with unfinished jobs, and how many there are. `next` begins the next page."""

    keys: list[FairKeyDocument]
    total: int
    waiting: int
    in_flight: int
    next: int | None = None


_limit = msgspec.json.Decoder(FairLimit)


def decode_limit(body: bytes, codec: BodyCodec) -> FairLimit:
    """The body that sets the weight and the limits of a key. Raises `InvalidRequest`."""
    return check_limit(decode(body, codec, _limit))


def key_document(
    state: FairKeyState, limit: FairLimit | None, weights: float = 0.0
) -> FairKeyDocument:
    """A key with unfinished jobs. `weights` is the sum of those of all keys that wait."""
    return FairKeyDocument(
        key=state.key,
        weight=state.weight,
        share=round(state.weight / weights, 6) if state.waiting and weights else None,
        behind_ms=round(state.start, 3),
        waiting=state.waiting,
        in_flight=state.in_flight,
        mean_ms=round(state.mean_ms, 3),
        oldest_ready=state.oldest_ready,
        limit=limit,
    )


def idle_document(key: str, limit: FairLimit) -> FairKeyDocument:
    """A key without unfinished jobs for which something is set."""
    weight = DEFAULT_WEIGHT if limit.weight is None else limit.weight
    return FairKeyDocument(key=key, weight=weight, waiting=0, in_flight=0, limit=limit)


READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

USUAL, MOST = 50, 500
"""How many keys a page has, and how many it may have."""

MOST_SKIPPED = 1_000_000

_KEY = "/queues/{queue}/fair/{key}"

_ORDER = Parameter(
    "order",
    choices(FairOrder),
    "`share`: the next ones first, as they are furthest behind their share. `wait`: those whose"
    " first job waits for the longest time. `depth`: those with most waiting jobs.",
)
_FROM = Parameter("from", WHOLE, "The `next` of the page before: leave out so many keys.")

LIST = Verb("GET", "/queues/{queue}/fair", READ, FairKeysDocument, query=(_ORDER, _FROM, FIFTY))
GET = Verb(
    "GET",
    _KEY,
    READ,
    FairKeyDocument,
    refusals={404: "The key has no unfinished jobs, and nothing is set for it."},
)
PUT = Verb("PUT", _KEY, MANAGE, FairLimit, FairLimit)
DELETE = Verb("DELETE", _KEY, MANAGE, NoneType, refusals={404: "Nothing is set for the key."})
