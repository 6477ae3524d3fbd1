"""The backend over an engine in this process: verbs as the engine's, in the wire's words.

What goes in is validated as a server would, and what comes out is what a server would show: both
pass through `zq.wire`, so that a program cannot tell the two backends apart.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from zq.client.backend import EventStream, TakeStream
from zq.client.batches import Stored, one_by_one
from zq.client.embedded.deliveries import Deliveries
from zq.client.embedded.home import Home
from zq.client.embedded.listening import listen
from zq.client.embedded.standby import start
from zq.client.embedded.words import enqueued, filter_of, outcome_text, refusal_of
from zq.client.formats import JSON
from zq.client.values import (
    EVERYTHING,
    EventQuery,
    Held,
    JobError,
    JobOutcome,
    JobPage,
    JobQuery,
    LeasedFailure,
    QueueStats,
    Refused,
    StoredJob,
    Submission,
    Success,
    Wish,
)
from zq.engine import players
from zq.engine.engine import Engine
from zq.model import errors
from zq.model.filters import refuse_unrevivable
from zq.model.job import Job, Retention
from zq.model.names import check_name
from zq.model.reach import EVERYWHERE
from zq.model.settings import QueueSettings, SettingsPatch
from zq.wire import bodies, lease_bodies
from zq.wire import codecs as wire
from zq.wire.documents import (
    error_document,
    job_document,
)
from zq.wire.settings import decode_limit, decode_settings_patch

T = TypeVar("T")
Verb = Callable[[Engine], Coroutine[Any, Any, T]]

LIMITS = bodies.Limits(body=2**62, payload=2**31, items=2**31)
"""A program's own memory bounds what it hands over; the engine's bounds hold all the same."""

LAST_ERRORS = 50


class EmbeddedBackend:
    """A `zq.client.backend.Backend` for a `Home`. With `blocks`, verbs hold up the thread."""

    def __init__(self, home: Home, *, blocks: bool = False) -> None:
        self.home = home
        self._blocks = blocks

    @property
    def blocking(self) -> "EmbeddedBackend":
        """The same engine, with verbs that never suspend."""
        return self if self._blocks else EmbeddedBackend(self.home, blocks=True)

    # Jobs in

    async def enqueue(self, jobs: Sequence[Submission]) -> list[StoredJob]:
        """Store all or none, in order."""
        text = JSON.encode({"jobs": jobs})

        async def verb(engine: Engine) -> bytes:
            new = bodies.decode_jobs(text, wire.JSON, LIMITS)
            stored = await engine.enqueue(new, EVERYWHERE)
            return wire.JSON.encode(enqueued(new, stored, engine.ids))

        return JSON.decode(await self._do(verb), list[StoredJob])

    def enqueue_each(self, batches: Iterable[Sequence[Submission]]) -> Stored:
        """Store batches in order, each all or none."""
        return one_by_one(self.enqueue, batches)

    async def enqueue_and_wait(self, job: Submission, wait_ms: int) -> JobOutcome:
        """Store one and wait for its outcome, or its owner's."""
        text = JSON.encode(job)

        async def verb(engine: Engine) -> bytes:
            new = bodies.decode_job(text, wire.JSON, LIMITS)
            stored, outcome = await engine.enqueue_and_wait(new, EVERYWHERE, wait_ms)
            (document,) = enqueued([new], stored, engine.ids)
            return outcome_text(outcome, document)

        return JSON.decode(await self._do(verb), JobOutcome)

    # One job

    async def get(self, id: str) -> StoredJob:
        """A job with payload and result."""
        return await self._job(lambda engine: engine.get(id, EVERYWHERE), whole=True)

    async def by_key(self, key: str) -> StoredJob:
        """The job that owns a unique key."""
        return await self._job(lambda engine: engine.outcomes.by_key(key, EVERYWHERE), whole=True)

    async def result(self, id: str, wait_ms: int) -> JobOutcome:
        """How a job came out, now or within `wait_ms`."""

        async def verb(engine: Engine) -> bytes:
            return outcome_text(await engine.outcomes.result(id, EVERYWHERE, wait_ms), None)

        return JSON.decode(await self._do(verb), JobOutcome)

    async def errors(self, id: str) -> list[JobError]:
        """The last 50 failures of a job, the oldest first."""

        async def verb(engine: Engine) -> bytes:
            records, _ = await engine.list_errors(id, EVERYWHERE, None, True, LAST_ERRORS)
            return wire.JSON.encode([error_document(record) for record in reversed(records)])

        return JSON.decode(await self._do(verb), list[JobError])

    async def cancel(self, id: str, *, force: bool = False) -> StoredJob:
        """Cancel a job."""
        return await self._job(lambda engine: engine.outcomes.cancel(id, force, EVERYWHERE))

    async def cancel_by_key(self, key: str, *, force: bool = False) -> StoredJob:
        """Cancel the job that owns a unique key."""
        return await self._job(lambda engine: engine.outcomes.cancel_by_key(key, force, EVERYWHERE))

    async def retain(
        self, id: str, *, completed_ms: int | None = None, dead_ms: int | None = None
    ) -> StoredJob:
        """Keep a finished job for so long from now."""
        text = JSON.encode({"completed_ms": completed_ms, "dead_ms": dead_ms})

        async def verb(engine: Engine) -> Job:
            retention: Retention = bodies.decode_retention(text, wire.JSON)
            return await engine.outcomes.retain(id, retention, EVERYWHERE)

        return await self._job(verb)

    async def retry(self, id: str) -> StoredJob:
        """Make a dead job ready again."""
        return await self._job(lambda engine: engine.revivals.retry(id, EVERYWHERE))

    # Many

    async def jobs(
        self, query: JobQuery = EVERYTHING, *, after: str | None = None, limit: int = 50
    ) -> JobPage:
        """A page of jobs beyond the cursor."""

        async def verb(engine: Engine) -> tuple[bytes, bool]:
            page = await engine.list_jobs(filter_of(query, engine.ids), after, False, limit)
            shown = [job_document(job, engine.ids, with_payload=True) for job in page.jobs]
            return wire.JSON.encode(shown), page.more

        text, more = await self._do(verb)
        found = JSON.decode(text, list[StoredJob])
        return JobPage(found, found[-1].id if more and found else None)

    async def count(self, query: JobQuery = EVERYTHING) -> int:
        """How many jobs match."""
        return await self._do(lambda engine: engine.count(filter_of(query, engine.ids)))

    async def queues(self) -> list[str]:
        """The names of queues that have jobs."""
        return await self._do(lambda engine: engine.queues(EVERYWHERE))

    async def redrive(self, query: JobQuery = EVERYTHING, limit: int | None = None) -> int:
        """Bring back the dead jobs that match."""
        text = JSON.encode({"limit": limit})

        async def verb(engine: Engine) -> int:
            most = decode_limit(text, wire.JSON)
            filter = filter_of(query, engine.ids)
            refuse_unrevivable(filter)
            return await engine.revivals.redrive(filter, most)

        return await self._do(verb)

    # Queues

    async def stats(self) -> list[QueueStats]:
        """What every queue holds, and what goes through it."""

        async def verb(engine: Engine) -> bytes:
            return wire.JSON.encode(await engine.queue_stats.all(EVERYWHERE))

        return JSON.decode(await self._do(verb), list[QueueStats])

    async def settings(self, queue: str) -> QueueSettings:
        """What is set for a queue."""

        async def verb(engine: Engine) -> QueueSettings:
            return await engine.settings.get(check_name("queue", queue), EVERYWHERE)

        return await self._do(verb)

    async def change_settings(self, queue: str, patch: SettingsPatch) -> QueueSettings:
        """Change some of a queue's settings."""
        text = JSON.encode(patch)

        async def verb(engine: Engine) -> QueueSettings:
            checked = decode_settings_patch(text, wire.JSON)
            name = check_name("queue", queue)
            return await engine.settings.change(name, checked, EVERYWHERE)

        return await self._do(verb)

    # Work

    async def take(self, wish: Wish) -> TakeStream:
        """Open a stream of deliveries."""
        meant = players.Wish(
            wish.prefetch, wish.worker, wish.lease_ms, wish.concurrency, control=True
        )

        async def verb(engine: Engine) -> TakeStream:
            stream = engine.workers.open(wish.queues, EVERYWHERE, meant, lambda: 0)
            return Deliveries(engine, stream, self._do)

        return await self._do(verb)

    async def drain(self, worker: str) -> None:
        """Deliver nothing more to this worker."""

        async def verb(engine: Engine) -> None:
            engine.workers.drain(worker, EVERYWHERE)

        await self._do(verb)

    async def succeed(self, items: Sequence[Success]) -> Refused:
        """Acknowledge jobs; the ids that were left alone."""
        text = JSON.encode({"items": items})

        async def verb(engine: Engine) -> Refused:
            ids, said = bodies.decode_successes(text, wire.JSON, LIMITS)
            return Refused(*await engine.settlements.succeed(ids, EVERYWHERE, said))

        return await self._do(verb)

    async def fail(self, id: str, failure: LeasedFailure) -> StoredJob:
        """Report a failure."""
        text = JSON.encode(failure)

        async def verb(engine: Engine) -> Job:
            report = bodies.decode_failure(text, wire.JSON)
            return await engine.settlements.fail(id, report, EVERYWHERE)

        return await self._job(verb)

    async def extend(self, items: Sequence[Held], lease_ms: int) -> Refused:
        """Hold jobs for so long from now."""
        text = JSON.encode({"items": items, "lease_ms": lease_ms})

        async def verb(engine: Engine) -> Refused:
            named, wanted_ms = lease_bodies.decode_extend_many(text, wire.JSON, LIMITS)
            done = await engine.leases.extend(named, wanted_ms, EVERYWHERE)
            return Refused(*done.refused)

        return await self._do(verb)

    async def release(self, items: Sequence[Held], delay_ms: int = 0) -> Refused:
        """Give jobs back."""
        text = JSON.encode({"items": items, "delay_ms": delay_ms})

        async def verb(engine: Engine) -> Refused:
            named, wanted_ms = lease_bodies.decode_release_many(text, wire.JSON, LIMITS)
            return Refused(*await engine.leases.release(named, wanted_ms, EVERYWHERE))

        return await self._do(verb)

    async def progress(self, id: str, data: Any, lease: int | None = None) -> None:
        """Tell whoever listens how far a running job is."""
        text = JSON.encode({"data": data, "lease": lease})

        async def verb(engine: Engine) -> None:
            told, meant = bodies.decode_progress(text, wire.JSON)
            await engine.progress.report(id, told, meant, EVERYWHERE)

        await self._do(verb)

    async def events(self, query: EventQuery, since: str | None = None) -> EventStream:
        """Listen to what happens to jobs."""

        async def verb(engine: Engine) -> EventStream:
            return await listen(engine, query, since, self._do)

        return await self._do(verb)

    async def close(self) -> None:
        """Commit and let go of the data. The next verb starts the engine again."""
        if self._blocks:
            self.home.close()
        else:
            await asyncio.to_thread(self.home.close)

    # The crossing

    async def _job(self, verb: Verb[Job], *, whole: bool = False) -> StoredJob:
        """What a verb answers, as a server would show it."""

        async def shown(engine: Engine) -> bytes:
            job = await verb(engine)
            return wire.JSON.encode(job_document(job, engine.ids, with_payload=whole))

        return JSON.decode(await self._do(shown), StoredJob)

    async def _do(self, verb: Verb[T]) -> T:
        """Run a verb in the engine's thread; its errors are those of the library."""
        if not self.home.is_running:
            await start(self.home, blocks=self._blocks)
        future = self.home.submit(verb(self.home.engine()))
        try:
            return future.result() if self._blocks else await asyncio.wrap_future(future)
        except errors.ZqError as error:
            raise refusal_of(error) from error
