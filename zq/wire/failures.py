"""Groups of failures as the documents that clients read."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from zq.model.failures import RULE, ErrorGroup
from zq.model.ids import IdCodec


class QueueFailuresDocument(msgspec.Struct):
    """How often a cause has come in one queue. `sample` is the job that has failed last."""

    queue: str
    count: int
    first_seen: int
    last_seen: int
    sample: str


class ErrorGroupDocument(msgspec.Struct, kw_only=True):
    """One cause. `message` has signs in place of what differs from one failure to the next.

    The hours are those of the clock, in UTC: the present one, and the one before it.
    """

    signature: str
    error_type: str | UnsetType = UNSET
    message: str
    count: int
    this_hour: int
    hour_before: int
    first_seen: int
    last_seen: int
    sample: str
    queues: list[QueueFailuresDocument]


class ErrorGroupsDocument(msgspec.Struct):
    """The causes, the latest one first, and the number of the rule that finds them."""

    rule: int
    groups: list[ErrorGroupDocument]


def groups_document(groups: Sequence[ErrorGroup], ids: IdCodec, now: int) -> ErrorGroupsDocument:
    """The document of these groups at a time, in milliseconds."""
    return ErrorGroupsDocument(RULE, [_document(group, ids, now) for group in groups])


def _document(group: ErrorGroup, ids: IdCodec, now: int) -> ErrorGroupDocument:
    this_hour, hour_before = group.lately(now)
    return ErrorGroupDocument(
        signature=group.signature,
        error_type=UNSET if group.error_type is None else group.error_type,
        message=group.message,
        count=group.total,
        this_hour=this_hour,
        hour_before=hour_before,
        first_seen=group.first_seen,
        last_seen=group.last_seen,
        sample=ids.text(group.queues[0].sample),
        queues=[
            QueueFailuresDocument(
                row.queue, row.count, row.first_seen, row.last_seen, ids.text(row.sample)
            )
            for row in group.queues
        ],
    )
