"""The library's interface to a server, either over HTTP or in this process.

App, Queue, Task and Worker use these protocols only. A refusal is raised as one of
`zq.client.errors` (`refusal` makes one from the server's code).
"""

from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from zq.client.asking import NO_QUERY
from zq.client.job_error import JobError
from zq.client.values import (
    EVERYTHING,
    Delivery,
    EventQuery,
    Held,
    JobEvent,
    JobListing,
    JobOutcome,
    JobQuery,
    LeasedFailure,
    Notice,
    QueueStats,
    RefusedItems,
    StoredJob,
    Submission,
    Success,
    TakeRequest,
)
from zq.model.patching import Patch
from zq.model.settings import QueueSettings, SettingsPatch
from zq.verbs import Verb
from zq.wire.documents import OpenWorker

if TYPE_CHECKING:
    # A program that enqueues and works does without the rooms. They are imported when asked for.
    from zq.features.budgets.client import ServerBudgets
    from zq.features.crons.client import Schedules
    from zq.features.sweeps.client import ServerSweeps
    from zq.features.waits.model import WaitReason

T = TypeVar("T")


class _Stats(msgspec.Struct):
    queues: list[QueueStats]


class TakeStream(Protocol):
    """Deliveries while it is open. When it ends, its unsettled jobs are returned at once."""

    async def deliveries(self) -> Sequence[Delivery | Notice]:
        """Wait for jobs, and for notices if the server sends any. The list is never empty.

        Raises `Unavailable` once the stream has ended or broken.
        """

    async def close(self) -> None:
        """End it. It may be called twice."""


class EventStream(Protocol):
    """The events of jobs, for as long as it is open."""

    last_id: str | None
    """The place after the last event, at which another stream can continue."""

    async def events(self) -> Sequence[JobEvent]:
        """Wait for events. The list may be empty: then only the place has changed.

        Raises `Unavailable` once the stream has ended or broken.
        """

    async def close(self) -> None:
        """End it. It may be called twice."""


class Operations(Protocol):
    """The operations of one server. They raise what verbs of `zq.client.backend.Backend` raise."""

    async def delete(self, id: str) -> None:
        """Delete a job in any status. Raises `JobNotFound`."""

    async def change(self, id: str, patch: Patch) -> StoredJob:
        """Change a job that has not finished. Raises `JobNotFound`."""

    async def workers(self) -> list[OpenWorker]:
        """The open streams, the oldest first."""

    async def drop(self, worker: str) -> list[OpenWorker]:
        """Close the streams of a worker. Return what they were."""


class Backend(Protocol):
    """One server. Every verb may raise `Unavailable` or another `BackendError`.

    Verbs connect when they are first called and may be called at the same time.
    """

    @property
    def blocking(self) -> "Backend":
        """This server, with verbs that block the thread instead of suspending.

        Its coroutines never wait for an event loop, so `run` can drive them. It may
        be used in any thread and after a fork. `take` and `events` are not offered. It is its own
        `blocking`.
        """

    @property
    def url(self) -> str:
        """The address of the server, or ``sqlite://`` and the directory of an engine in here."""

    @property
    def schedules(self) -> "Schedules":
        """The cron entries of the server."""
        from zq.features.crons.client import Schedules

        return Schedules(self.ask)

    @property
    def budgets(self) -> "ServerBudgets":
        """The budgets of the server."""
        from zq.features.budgets.client import ServerBudgets

        return ServerBudgets(self.ask)

    @property
    def sweeps(self) -> "ServerSweeps":
        """The changes of many jobs."""
        from zq.features.sweeps.client import ServerSweeps

        return ServerSweeps(self.ask)

    @property
    def operations(self) -> Operations:
        """Operators' requests about one job and about workers."""

    # Jobs in

    async def enqueue(self, jobs: Sequence[Submission]) -> list[StoredJob]:
        """Store all jobs or none, in order. `duplicate` marks jobs that existed already.

        A duplicate that is completed has its `result`, if there is one.
        """

    async def enqueue_on(
        self, terms: Mapping[str, object], jobs: Sequence[Submission]
    ) -> list[StoredJob]:
        """Store all jobs or none by terms that make a repetition harmless: fields of a bulk.

        See `zq.features.producers.client` for those who number their jobs.
        """

    def enqueue_each(
        self, batches: Iterable[Sequence[Submission]]
    ) -> AsyncGenerator[list[StoredJob], None]:
        """Store batches in order, each all or none. Yield the jobs of a batch once they are stored.

        A batch that the server finds too large is sent in parts. Raises the errors of `enqueue`.
        Then the yielded jobs are stored, and none after them, unless the outcome is unknown.
        """

    async def enqueue_and_wait(self, job: Submission, wait_ms: int) -> JobOutcome:
        """Store one job and wait this long for its outcome, or its owner's. It has `job`."""

    # One job

    async def get(self, id: str) -> StoredJob:
        """A job with payload and result. Raises `JobNotFound`."""

    async def by_key(self, key: str) -> StoredJob:
        """The job that owns a unique key. Raises `JobNotFound`."""

    async def result(self, id: str, wait_ms: int) -> JobOutcome:
        """The outcome of a job, now or within `wait_ms` (at most 30,000). Raises `JobNotFound`."""

    async def why(self, id: str) -> "list[WaitReason]":
        """Why a job does not run now, the strongest reason first. Raises `JobNotFound`."""
        from zq.features.waits.verbs import WHY

        return (await self.ask(WHY, id=id)).reasons

    async def errors(self, id: str) -> list[JobError]:
        """The last 50 failures of a job, the oldest first. Raises `JobNotFound`."""

    async def cancel(self, id: str, *, force: bool = False, undo: bool = False) -> StoredJob:
        """Cancel a job. Raises `JobNotFound`, or `JobState` if it runs or is finished.

        With `undo`, the job has the id of a sweep that takes it back, if it is retained.
        """
        return await self.sweeps.cancel_one(id, force=force, undo=undo)

    async def cancel_by_key(self, key: str, *, force: bool = False) -> StoredJob:
        """Cancel the job that owns a unique key. Raises the errors of `cancel`."""

    async def retain(
        self, id: str, *, completed_ms: int | None = None, dead_ms: int | None = None
    ) -> StoredJob:
        """Begin the retention of a finished job now.

        Raises `JobNotFound`, or `JobState` if it is not finished.
        """

    async def requeue(self, id: str) -> StoredJob:
        """Make a dead job ready again. Raises `JobNotFound`, or `JobState` if it is not dead."""

    # Many

    async def jobs(
        self,
        query: JobQuery = EVERYTHING,
        *,
        after: str | None = None,
        limit: int = 50,
        newest: bool = False,
    ) -> JobListing:
        """A page of jobs, with payloads, beyond the cursor: the oldest first, or the newest."""

    async def count(self, query: JobQuery = EVERYTHING) -> int:
        """How many jobs match."""

    async def queues(self) -> list[str]:
        """The names of queues that have jobs."""

    async def requeue_many(
        self,
        query: JobQuery = EVERYTHING,
        limit: int | None = None,
        *,
        reason: str | None = None,
    ) -> int:
        """Bring back at most `limit` matching dead jobs. Return their number.

        If the query names queues, this includes jobs that wait in them as in dead-letter queues.
        """
        return (await self.sweeps.requeue(query, limit, reason=reason)).requeued

    # Queues

    async def stats(self) -> list[QueueStats]:
        """Every queue that has jobs, or had traffic in the last five minutes."""
        from zq.operators.ops.verbs import STATS

        return (await self.ask(STATS.read_as(_Stats))).queues

    async def settings(self, queue: str) -> QueueSettings:
        """The settings of a queue."""

    async def change_settings(self, queue: str, patch: SettingsPatch) -> QueueSettings:
        """Change some of a queue's settings. Return all settings after the change."""

    # Work

    async def take(self, wanted: TakeRequest) -> TakeStream:
        """Open a stream of deliveries."""

    async def drain(self, worker: str) -> None:
        """Deliver no more jobs to the streams of this worker. They stay open."""

    async def succeed(self, items: Sequence[Success]) -> RefusedItems:
        """Acknowledge jobs. Return the ids of jobs that were left unchanged.

        It may be repeated, because no job ends twice.
        """

    async def fail(self, id: str, failure: LeasedFailure) -> StoredJob:
        """Report a failure. Return the job after it. Raises `StaleLease`."""

    async def extend(
        self, items: Sequence[Held], lease_ms: int, *, resumed: bool = False
    ) -> RefusedItems:
        """Set the deadlines of jobs to this long from now.

        With `resumed` they have only lost a connection: a stall of each is taken back.
        """

    async def release(self, items: Sequence[Held], delay_ms: int = 0) -> RefusedItems:
        """Return jobs without spending an attempt. They are ready again after the delay."""

    async def progress(self, id: str, data: Any, lease: int | None = None) -> None:
        """Tell listeners the progress of a running job, in the delivery `lease`."""

    async def events(self, query: EventQuery, since: str | None = None) -> EventStream:
        """Listen to the events of jobs from now on, or after the place `since`."""

    # What rooms offer

    async def ask(
        self,
        verb: Verb[T],
        body: object = None,
        query: Mapping[str, str] = NO_QUERY,
        *,
        wait_ms: int = 0,
        **path: str,
    ) -> T:
        """Ask for a verb of a room: see `zq.client.asking.Ask`."""

    async def close(self) -> None:
        """Close what is open. The next verb connects again."""


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits only for a blocking backend."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    coroutine.close()
    raise RuntimeError("the backend is not a blocking one: its coroutine needs an event loop")
