"""The verb about failures and their causes."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from zq.features.failures.model import BARS, RULE, FailureGroup, FailureOrder, FailureRange
from zq.features.trends.model import TimeMark
from zq.model.ids import IdCodec
from zq.model.keys import KeyScope
from zq.verbs import Parameter, Verb, choices, names


class CauseDocument(msgspec.Struct, kw_only=True):
    """One cause over a range of time. `message` has signs in place of what differs.

    `count` is how often it has come in the range, `bars` in each bar of it, and `before` in as long
    a time before the range. `times` says how many times as often it comes as before, for equal
    parts of time. It is missing if the cause did not come then. `is_new` means that it came for
    the first time within the range, and `mark` is the last named moment before that. It has come in
    `queues`, most often in the first one. `types` has the types of jobs that have failed so, up to
    eight a queue. `total` counts since the first time, `since`. `sample` is the job that has failed
    last, at `latest`. So many jobs are `dead` of it; with `more_dead`, perhaps more.
    """

    id: str
    error_type: str | UnsetType = UNSET
    message: str
    count: int
    bars: list[int]
    before: int
    times: float | UnsetType = UNSET
    is_new: bool
    queues: list[str]
    types: list[str]
    total: int
    since: int
    latest: int
    mark: TimeMark | UnsetType = UNSET
    sample: str
    dead: int
    more_dead: bool | UnsetType = UNSET


class FailuresDocument(msgspec.Struct, kw_only=True):
    """The causes of a range of time, and the number of the rule that finds them.

    The bars begin at `since`, have `step_ms` each, and `open_ms` of the last one have passed.
    `known` is how many causes there are. `failed` counts the failures of all of them, and
    `failed_before` those in as long a time before the range.
    """

    rule: int
    range: str
    since: int
    step_ms: int
    open_ms: int
    known: int
    failed: int
    failed_before: int
    causes: list[CauseDocument]


def failures_document(
    range: FailureRange, groups: Sequence[FailureGroup], ids: IdCodec, **figures: int
) -> FailuresDocument:
    """The document of these groups. `figures` are its other fields."""
    causes = [cause_document(group, ids) for group in groups]
    return FailuresDocument(
        rule=RULE, range=range, step_ms=BARS[range].width, causes=causes, **figures
    )


def cause_document(group: FailureGroup, ids: IdCodec) -> CauseDocument:
    return CauseDocument(
        id=group.signature,
        error_type=UNSET if group.error_type is None else group.error_type,
        message=group.message,
        count=group.count,
        bars=group.bars,
        before=group.before,
        times=UNSET if group.times is None else round(group.times, 2),
        is_new=group.is_new,
        queues=group.queues,
        types=group.types,
        total=group.total,
        since=group.first_seen,
        latest=group.last_seen,
        mark=UNSET if group.mark is None else group.mark,
        sample=ids.text(group.sample),
        dead=group.dead,
        more_dead=group.more_dead or UNSET,
    )


LIST = Verb(
    "GET",
    "/failures",
    KeyScope.READ,
    FailuresDocument,
    query=(
        Parameter("queue", names(), "Of these queues only."),
        Parameter("range", choices(FailureRange), "How far back."),
        Parameter("order", choices(FailureOrder), "Which come first."),
    ),
)
