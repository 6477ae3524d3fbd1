"""What the library needs of a server, whatever lies between: HTTP, or nothing at all.

App, Queue, Task and Worker speak to these protocols only. A refusal is raised as one of
`zq.client.errors` (`refusal` makes one from the server's code).
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, Protocol

from zq.client.values import (
    EVERYTHING,
    Delivery,
    EventQuery,
    Held,
    JobError,
    JobEvent,
    JobOutcome,
    JobPage,
    JobQuery,
    LeasedFailure,
    Notice,
    QueueStats,
    Refused,
    StoredJob,
    Submission,
    Success,
    Wish,
)
from zq.model.settings import QueueSettings, SettingsPatch


class TakeStream(Protocol):
    """Deliveries for as long as it is open. What is not settled when it ends goes back at once."""

    async def deliveries(self) -> Sequence[Delivery | Notice]:
        """Wait for jobs, and for notices, where the server gives any; never empty.

        Raises `Unavailable` once the stream has ended or broken.
        """

    async def close(self) -> None:
        """End it. May be called twice."""


class EventStream(Protocol):
    """What happens to jobs, for as long as it is open."""

    last_id: str | None
    """The place after all that was told: where another stream goes on."""

    async def events(self) -> Sequence[JobEvent]:
        """Wait for events. Perhaps empty: then only the place is another.

        Raises `Unavailable` once the stream has ended or broken.
        """

    async def close(self) -> None:
        """End it. May be called twice."""


class Backend(Protocol):
    """One server. Every verb may raise `Unavailable` or another `BackendError`.

    Verbs connect when they are first called and may be called at the same time.
    """

    @property
    def blocking(self) -> "Backend":
        """The same server, with verbs that block the thread instead of suspending.

        Its coroutines never wait for an event loop, so `zq.client.sync.run` can drive them. It may
        be used in any thread and after a fork. `take` and `events` are not offered.
        """

    # Jobs in

    async def enqueue(self, jobs: Sequence[Submission]) -> list[StoredJob]:
        """Store all or none, in order. `duplicate` marks those that were there already.

        A duplicate that is completed shows its `result`, if there is one.
        """

    def enqueue_each(
        self, batches: Iterable[Sequence[Submission]]
    ) -> AsyncGenerator[list[StoredJob], None]:
        """Store batches in order, each all or none; what has become of the jobs, as it is known.

        What the server finds too large goes in smaller parts. Raises what `enqueue` raises: then
        what was yielded is stored, and nothing after it, unless the outcome is unknown.
        """

    async def enqueue_and_wait(self, job: Submission, wait_ms: int) -> JobOutcome:
        """Store one and wait for its outcome, or its owner's, for so long. It has `job`."""

    # One job

    async def get(self, id: str) -> StoredJob:
        """A job with payload and result. Raises `JobNotFound`."""

    async def by_key(self, key: str) -> StoredJob:
        """The job that owns a unique key. Raises `JobNotFound`."""

    async def result(self, id: str, wait_ms: int) -> JobOutcome:
        """How a job came out, now or within `wait_ms` (30,000 at most). Raises `JobNotFound`."""

    async def errors(self, id: str) -> list[JobError]:
        """The failures of a job, the oldest first, the last 50. Raises `JobNotFound`."""

    async def cancel(self, id: str, *, force: bool = False) -> StoredJob:
        """Cancel a job. Raises `JobNotFound`, or `JobState` where it runs or is finished."""

    async def cancel_by_key(self, key: str, *, force: bool = False) -> StoredJob:
        """Cancel the job that owns a unique key. Raises as `cancel`."""

    async def retain(
        self, id: str, *, completed_ms: int | None = None, dead_ms: int | None = None
    ) -> StoredJob:
        """Keep a finished job for so long from now.

        Raises `JobNotFound`, or `JobState` where it is not finished.
        """

    async def retry(self, id: str) -> StoredJob:
        """Make a dead job ready again. Raises `JobNotFound`, or `JobState` if it is not dead."""

    # Many

    async def jobs(
        self, query: JobQuery = EVERYTHING, *, after: str | None = None, limit: int = 50
    ) -> JobPage:
        """A page of jobs, with payloads, whose ids come after the cursor."""

    async def count(self, query: JobQuery = EVERYTHING) -> int:
        """How many jobs match."""

    async def queues(self) -> list[str]:
        """The names of queues that have jobs."""

    async def redrive(self, query: JobQuery = EVERYTHING, limit: int | None = None) -> int:
        """Bring back the dead jobs that match, at most `limit`; how many it were.

        Where the query names queues, also jobs that wait in these as in dead-letter queues.
        """

    # Queues

    async def stats(self) -> list[QueueStats]:
        """Every queue that has jobs, or had traffic in the last five minutes."""

    async def settings(self, queue: str) -> QueueSettings:
        """What is set for a queue."""

    async def change_settings(self, queue: str, patch: SettingsPatch) -> QueueSettings:
        """Change some of a queue's settings: all of them as they are then."""

    # Work

    async def take(self, wish: Wish) -> TakeStream:
        """Open a stream of deliveries."""

    async def drain(self, worker: str) -> None:
        """Deliver nothing more to the streams of this worker, which stay open."""

    async def succeed(self, items: Sequence[Success]) -> Refused:
        """Acknowledge jobs; the ids that were left alone. May be repeated: no job ends twice."""

    async def fail(self, id: str, failure: LeasedFailure) -> StoredJob:
        """Report a failure: the job as it is then. Raises `StaleLease`."""

    async def extend(self, items: Sequence[Held], lease_ms: int) -> Refused:
        """Hold jobs for so long from now."""

    async def release(self, items: Sequence[Held], delay_ms: int = 0) -> Refused:
        """Give jobs back, without spending an attempt, to be ready in so long."""

    async def progress(self, id: str, data: Any, lease: int | None = None) -> None:
        """Tell whoever listens how far a running job is, in the delivery `lease`."""

    async def events(self, query: EventQuery, since: str | None = None) -> EventStream:
        """Listen to what happens to jobs from now on, or from after the place `since`."""

    async def close(self) -> None:
        """Close what is open. The next verb connects again."""
