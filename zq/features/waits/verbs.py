"""The verbs about what jobs and queues wait for."""

import msgspec
from msgspec import UNSET, UnsetType

from zq.features.waits.model import OpenGroup, QueueWhy, WaitReason
from zq.model.ids import IdCodec
from zq.model.job import JobRecord
from zq.model.keys import KeyScope
from zq.model.lifecycle import NAMES
from zq.verbs import FIFTY, NO_JOB, TEXT, Parameter, Verb


class WaitDocument(msgspec.Struct):
    """A job and its status, and why it does not run: the strongest reason first."""

    id: str
    status: str
    reasons: list[WaitReason]


class OpenJobDocument(msgspec.Struct):
    """The job of a group that has to end before the others come."""

    id: str
    type: str
    status: str
    attempts: int
    ready_at: int
    dequeued_at: int | UnsetType = UNSET


class OpenGroupDocument(msgspec.Struct):
    """A group with unfinished jobs. `behind` is how many wait for `open`, counted up to 1,000."""

    group: str
    open: OpenJobDocument
    behind: int


class OpenGroupsDocument(msgspec.Struct):
    """Groups of one queue, by name."""

    groups: list[OpenGroupDocument]


class ScheduledJobDocument(msgspec.Struct):
    """A scheduled job. `attempts` are more than 0 if it has failed and comes again."""

    id: str
    queue: str
    type: str
    priority: int
    ready_at: int
    attempts: int


class ScheduledJobsDocument(msgspec.Struct):
    """Scheduled jobs, those that are ready first. `next` is the place after which more follow."""

    jobs: list[ScheduledJobDocument]
    next: str | UnsetType = UNSET


class StuckJobDocument(msgspec.Struct, kw_only=True):
    """A job that is in flight for long, and the `worker` that has it, if that has a name.

    99 % of the runs of its type took at most `p99_ms`.
    """

    id: str
    queue: str
    type: str
    attempts: int
    deliveries: int
    dequeued_at: int
    worker: str | UnsetType = UNSET
    p99_ms: float | UnsetType = UNSET


class StuckJobsDocument(msgspec.Struct):
    """Jobs that seem stuck, those that run for the longest time first."""

    jobs: list[StuckJobDocument]


def stuck_document(
    job: JobRecord, worker: str | None, p99_ms: float | None, ids: IdCodec
) -> StuckJobDocument:
    return StuckJobDocument(
        id=ids.text(job.key),
        queue=job.queue,
        type=job.type,
        attempts=job.attempts,
        deliveries=job.deliveries,
        dequeued_at=job.dequeued_at or 0,
        worker=UNSET if worker is None else worker,
        p99_ms=UNSET if p99_ms is None else round(p99_ms, 1),
    )


def scheduled_document(job: JobRecord, ids: IdCodec) -> ScheduledJobDocument:
    id = ids.text(job.key)
    return ScheduledJobDocument(id, job.queue, job.type, job.priority, job.ready_at, job.attempts)


def group_document(group: OpenGroup, ids: IdCodec) -> OpenGroupDocument:
    open = OpenJobDocument(
        ids.text(group.key), group.type, NAMES[group.status], group.attempts, group.ready_at
    )
    if group.dequeued_at is not None:
        open.dequeued_at = group.dequeued_at
    return OpenGroupDocument(group.name, open, group.behind)


READ = KeyScope.READ

_AFTER_PAGE = Parameter("after", TEXT, "The `next` of the page before.")
_AFTER_NAME = Parameter("after", TEXT, "Only groups after this name.")

WHY = Verb("GET", "/jobs/{id}/why", READ, WaitDocument, refusals=NO_JOB)
WHY_QUEUE = Verb("GET", "/queues/{queue}/why", READ, QueueWhy)
SCHEDULED = Verb("GET", "/scheduled", READ, ScheduledJobsDocument, query=(_AFTER_PAGE, FIFTY))
GROUPS = Verb("GET", "/queues/{queue}/groups", READ, OpenGroupsDocument, query=(_AFTER_NAME, FIFTY))
STUCK = Verb("GET", "/stuck", READ, StuckJobsDocument, query=(FIFTY,))
