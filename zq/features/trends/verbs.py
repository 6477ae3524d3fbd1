"""The verbs about what happened over time, and of the marks in the charts."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import UNSET, UnsetType

from zq.features.trends.model import (
    TimeMark,
    Trend,
    TrendAt,
    TrendRange,
    TypeRange,
    TypeSort,
    quantiles,
)
from zq.model.keys import KeyScope
from zq.verbs import TEXT, Parameter, Verb, choices
from zq.wire.codecs import BodyCodec, decode


class TimesDocument(msgspec.Struct):
    """Times in milliseconds. `powers` counts them: under `n`, those below 2 to the power of `n`."""

    count: int
    p50_ms: float | UnsetType = UNSET
    p95_ms: float | UnsetType = UNSET
    p99_ms: float | UnsetType = UNSET
    powers: dict[str, int] | UnsetType = UNSET


class PercentilesDocument(msgspec.Struct):
    """Times in milliseconds that 50, 95 and 99 % of the times do not exceed."""

    p50: float
    p95: float
    p99: float


class TrendPointDocument(msgspec.Struct):
    """One step of a trend, which begins at `at`. Times are missing where there are none."""

    at: int
    enqueued: int
    delivered: int
    completed: int
    failed: int
    died: int
    expired: int
    wait: PercentilesDocument | UnsetType = UNSET
    run: PercentilesDocument | UnsetType = UNSET


class TrendsDocument(msgspec.Struct, kw_only=True):
    """A range of time in steps, how long jobs waited and ran in it, and the rates of five minutes.

    Of the last step's time `open_ms` have passed. `drained_ms` is missing if the queue is never
    drained at this rate. `marks` are the moments in it that operators have named.
    """

    queue: str | UnsetType = UNSET
    range: str
    step_ms: int
    open_ms: int
    points: list[TrendPointDocument]
    wait: TimesDocument
    run: TimesDocument
    waiting: int
    arrivals_per_second: float
    ends_per_second: float
    drained_ms: int | UnsetType = UNSET
    marks: list[TimeMark]


class NewMark(msgspec.Struct, forbid_unknown_fields=True):
    """A mark to set now: a name for this moment."""

    text: str


_new_mark = msgspec.json.Decoder(NewMark)


def decode_mark(body: bytes, codec: BodyCodec) -> str:
    """The body that marks a moment, as its text."""
    return decode(body, codec, _new_mark).text


def point_document(point: TrendAt) -> TrendPointDocument:
    trend = point.trend
    return TrendPointDocument(
        point.at,
        trend.enqueued,
        trend.delivered,
        trend.completed,
        trend.failed,
        trend.died,
        trend.expired,
        percentiles(trend.wait),
        percentiles(trend.run),
    )


def wait_and_run(trend: Trend) -> tuple[TimesDocument, TimesDocument]:
    """How long jobs waited, and how long they ran."""
    return _times(trend.wait), _times(trend.run)


def percentiles(times: Mapping[int, int]) -> PercentilesDocument | UnsetType:
    found = quantiles(times, (0.5, 0.95, 0.99))
    return percentiles_document(found) if found else UNSET


def percentiles_document(found: Iterable[float]) -> PercentilesDocument:
    return PercentilesDocument(*[round(ms, 1) for ms in found])


def _times(times: Mapping[int, int]) -> TimesDocument:
    found = percentiles(times)
    if found is UNSET:
        return TimesDocument(0)
    powers = {str(power): n for power, n in sorted(times.items())}
    return TimesDocument(sum(times.values()), found.p50, found.p95, found.p99, powers)


class TypeDocument(msgspec.Struct, kw_only=True):
    """How jobs of a type of a queue ended in a range of time. `rate` is how many did a second.

    `failed` counts failed attempts, and `failed_share` is their share of all that ended. `run` is
    missing if none has run to its end. The queue `*` with the type `*` stands for the rest.
    """

    queue: str
    type: str
    rate: float
    done: int
    failed: int
    failed_share: float
    run: PercentilesDocument | UnsetType = UNSET


class TypePointDocument(msgspec.Struct, kw_only=True):
    """One step of a type's trend, which begins at `at`."""

    at: int
    done: int
    failed: int
    run: PercentilesDocument | UnsetType = UNSET


class TypesDocument(msgspec.Struct, kw_only=True):
    """The types of a range of time, and how many there are. One type may have its `points`.

    These are steps of `step_ms` each. Of the last one's time `open_ms` have passed.
    """

    range: str
    queue: str | UnsetType = UNSET
    known: int
    types: list[TypeDocument]
    step_ms: int | UnsetType = UNSET
    open_ms: int | UnsetType = UNSET
    points: list[TypePointDocument] | UnsetType = UNSET


READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

HISTORY = Verb(
    "GET",
    "/stats/history",
    READ,
    TrendsDocument,
    query=(
        Parameter("queue", TEXT, "Of this queue alone; otherwise of all together."),
        Parameter("range", choices(TrendRange), "How far back."),
    ),
)
TYPES = Verb(
    "GET",
    "/stats/types",
    READ,
    TypesDocument,
    query=(
        Parameter("queue", TEXT, "Of this queue alone; otherwise of all."),
        Parameter("type", TEXT, "Of this type alone, with its `points`."),
        Parameter("range", choices(TypeRange), "How far back."),
        Parameter("sort", choices(TypeSort), "Which come first."),
    ),
)
MARK = Verb("POST", "/marks", MANAGE, TimeMark, NewMark, whole=True, created=True)
