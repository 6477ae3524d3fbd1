"""The backend over an engine in this process: the verbs of its services, for the library.

`zq.wire` validates all input, as a server would. All output is as a server would show it. So a
program cannot tell the two backends apart.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar, cast

from zq.answers import Asked, Rows, answering_of
from zq.client.asking import NO_QUERY
from zq.client.backend import Backend, EventStream, TakeStream
from zq.client.embedded.deliveries import Deliveries, RunVerb, listen
from zq.client.embedded.engine import EmbeddedEngine, start
from zq.client.embedded.words import (
    enqueued,
    error_of,
    filter_of,
    job_outcome,
    refusal_of,
    stored_job,
)
from zq.client.formats import JSON
from zq.client.http.gathering import Stored, one_by_one
from zq.client.job_error import JobError
from zq.client.values import (
    EVERYTHING,
    EventQuery,
    Held,
    JobListing,
    JobOutcome,
    JobQuery,
    LeasedFailure,
    RefusedItems,
    StoredJob,
    Submission,
    Success,
    TakeRequest,
)
from zq.engine.delivery.takers import Subscription
from zq.model import errors
from zq.model.ids import IdCodec
from zq.model.job import JobRecord
from zq.model.names import check_name
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE
from zq.model.settings import QueueSettings, SettingsPatch
from zq.service.admin import OpenStream
from zq.service.services import Services
from zq.terms import EnqueueTerms
from zq.verbs import Verb
from zq.wire import bodies, bulk, lease_bodies
from zq.wire import codecs as wire
from zq.wire.bodies import decode_patch
from zq.wire.documents import OpenWorker, job_document
from zq.wire.ids import NamedKeys, held_key, key_of, place_of
from zq.wire.settings import decode_settings_patch

JobVerb = Callable[[Services], Coroutine[Any, Any, JobRecord]]
NamedVerb = Callable[[Services, int], Coroutine[Any, Any, JobRecord]]


async def shown(do: RunVerb, verb: JobVerb, *, whole: bool = False) -> StoredJob:
    """The result of a verb. With `whole`, it has its payload."""

    async def show(services: Services) -> StoredJob:
        job = await verb(services)
        return stored_job(job_document(job, services.ids, with_payload=whole))

    return await do(show)


async def named(do: RunVerb, id: str, verb: NamedVerb, *, whole: bool = False) -> StoredJob:
    """The result of a verb about the job with this id. Raises `JobNotFound`."""
    return await shown(do, lambda services: verb(services, key_of(id, services.ids)), whole=whole)


class EmbeddedOperations:
    """A `zq.client.backend.Operations`, through the services."""

    def __init__(self, do: RunVerb) -> None:
        self._do = do

    async def delete(self, id: str) -> None:
        """Delete a job in any status."""

        async def verb(services: Services) -> None:
            await services.jobs.delete(key_of(id, services.ids), EVERYWHERE)

        await self._do(verb)

    async def change(self, id: str, patch: Patch) -> StoredJob:
        """Change a job that has not finished."""
        text = JSON.encode(patch)

        async def verb(services: Services, key: int) -> JobRecord:
            return await services.jobs.patch(key, decode_patch(text, wire.JSON), EVERYWHERE)

        return await named(self._do, id, verb)

    async def workers(self) -> list[OpenWorker]:
        """The open streams, the oldest first."""

        async def verb(services: Services) -> list[OpenWorker]:
            return _open(services.admin.workers(EVERYWHERE), services.ids)

        return await self._do(verb)

    async def drop(self, worker: str) -> list[OpenWorker]:
        """Close the streams of a worker. Return what they were."""

        async def verb(services: Services) -> list[OpenWorker]:
            return _open(services.admin.drop(worker, EVERYWHERE), services.ids)

        return await self._do(verb)


def _open(streams: Sequence[OpenStream], ids: IdCodec) -> list[OpenWorker]:
    return [
        OpenWorker(
            *(stream.id, list(stream.queues), stream.prefetch, stream.concurrency, stream.busy),
            *(ids.texts(stream.held), stream.since, stream.draining, stream.address),
            *(stream.client, stream.unsent_bytes, stream.delivered, stream.failed),
            *(stream.seen_at, stream.silent),
        )
        for stream in streams
    ]


T = TypeVar("T")
Act = Callable[[Services], Coroutine[Any, Any, T]]

TERMS = EnqueueTerms()

LIMITS = bodies.Limits(body=2**62, payload=2**31, items=2**31)
"""A program's own memory limits its input. The engine's limits apply anyway."""

LAST_ERRORS = 50


class EmbeddedBackend(Backend):
    """An engine in this process. With `blocks`, verbs block the thread.

    `zq.client.backend.Backend` describes the verbs.
    """

    def __init__(self, home: EmbeddedEngine, *, blocks: bool = False) -> None:
        self.home = home
        self._blocks = blocks

    @property
    def blocking(self) -> "EmbeddedBackend":
        """This engine, with verbs that never suspend."""
        return self if self._blocks else EmbeddedBackend(self.home, blocks=True)

    @property
    def url(self) -> str:
        """``sqlite://`` and the data directory."""
        return self.home.url

    @property
    def operations(self) -> EmbeddedOperations:
        return EmbeddedOperations(self._do)

    # Jobs in

    async def enqueue(self, jobs: Sequence[Submission]) -> list[StoredJob]:
        return await self.enqueue_on({}, jobs)

    async def enqueue_on(
        self, terms: Mapping[str, object], jobs: Sequence[Submission]
    ) -> list[StoredJob]:
        text = JSON.encode({**terms, "jobs": jobs})

        async def verb(services: Services) -> list[StoredJob]:
            body = bulk.decode_bulk(text, wire.JSON, TERMS.bulk, LIMITS)
            through = TERMS.of({}, None, body)
            slices = bulk.new_jobs(body, len(text), wire.JSON, LIMITS)
            new = [job for some in slices for job in some]
            stored = await services.jobs.enqueue(new, EVERYWHERE, through=through)
            return enqueued(new, stored, services.ids)

        return await self._do(verb)

    def enqueue_each(self, batches: Iterable[Sequence[Submission]]) -> Stored:
        return one_by_one(self.enqueue, batches)

    async def enqueue_and_wait(self, job: Submission, wait_ms: int) -> JobOutcome:
        text = JSON.encode(job)

        async def verb(services: Services) -> JobOutcome:
            new = bodies.decode_job(text, wire.JSON, LIMITS)
            stored, ending = await services.jobs.enqueue_and_wait(new, EVERYWHERE, wait_ms)
            (job,) = enqueued([new], stored, services.ids)
            return job_outcome(ending, job)

        return await self._do(verb)

    # One job

    async def get(self, id: str) -> StoredJob:
        return await named(
            self._do, id, lambda services, key: services.jobs.get(key, EVERYWHERE), whole=True
        )

    async def by_key(self, key: str) -> StoredJob:
        return await shown(
            self._do, lambda services: services.jobs.owner(key, None, EVERYWHERE), whole=True
        )

    async def result(self, id: str, wait_ms: int) -> JobOutcome:

        async def verb(services: Services) -> JobOutcome:
            key = key_of(id, services.ids)
            return job_outcome(await services.jobs.ending(key, EVERYWHERE, wait_ms))

        return await self._do(verb)

    async def errors(self, id: str) -> list[JobError]:

        async def verb(services: Services) -> list[JobError]:
            key = key_of(id, services.ids)
            records, _ = await services.jobs.errors(key, EVERYWHERE, None, True, LAST_ERRORS)
            return [error_of(record) for record in reversed(records)]

        return await self._do(verb)

    async def cancel_by_key(self, key: str, *, force: bool = False) -> StoredJob:
        return await shown(
            self._do, lambda services: services.jobs.cancel_owner(key, None, force, EVERYWHERE)
        )

    async def retain(
        self, id: str, *, completed_ms: int | None = None, dead_ms: int | None = None
    ) -> StoredJob:
        text = JSON.encode({"completed_ms": completed_ms, "dead_ms": dead_ms})

        async def verb(services: Services, key: int) -> JobRecord:
            retention = bodies.decode_retention(text, wire.JSON)
            return await services.jobs.retain(key, retention, EVERYWHERE)

        return await named(self._do, id, verb)

    async def requeue(self, id: str) -> StoredJob:
        return await named(
            self._do, id, lambda services, key: services.jobs.requeue(key, EVERYWHERE)
        )

    # Many

    async def jobs(
        self,
        query: JobQuery = EVERYTHING,
        *,
        after: str | None = None,
        limit: int = 50,
        newest: bool = False,
    ) -> JobListing:
        async def verb(services: Services) -> JobListing:
            ids = services.ids
            beyond = place_of(after, newest, ids)
            page = await services.listing.page(filter_of(query, ids), beyond, newest, limit)
            found = [stored_job(job_document(job, ids, with_payload=True)) for job in page.jobs]
            return JobListing(found, found[-1].id if page.more and found else None)

        return await self._do(verb)

    async def count(self, query: JobQuery = EVERYTHING) -> int:
        return await self._do(
            lambda services: services.listing.count(filter_of(query, services.ids))
        )

    async def queues(self) -> list[str]:
        return await self._do(lambda services: services.queues.names(EVERYWHERE))

    # Queues

    async def settings(self, queue: str) -> QueueSettings:

        async def verb(services: Services) -> QueueSettings:
            return await services.queues.settings(check_name("queue", queue), EVERYWHERE)

        return await self._do(verb)

    async def change_settings(self, queue: str, patch: SettingsPatch) -> QueueSettings:
        text = JSON.encode(patch)

        async def verb(services: Services) -> QueueSettings:
            checked = decode_settings_patch(text, wire.JSON)
            name = check_name("queue", queue)
            return await services.queues.set(name, checked, EVERYWHERE)

        return await self._do(verb)

    # Work

    async def take(self, wanted: TakeRequest) -> TakeStream:
        meant = Subscription(
            wanted.prefetch,
            wanted.worker,
            wanted.lease_ms,
            wanted.concurrency,
            control=True,
            stall_limit=wanted.stall_limit,
            resident=True,
        )

        async def verb(services: Services) -> TakeStream:
            stream = services.work.open(wanted.queues, EVERYWHERE, meant, lambda: 0)
            return Deliveries(services, stream, self._do)

        return await self._do(verb)

    async def drain(self, worker: str) -> None:
        async def verb(services: Services) -> None:
            services.admin.drain(worker, EVERYWHERE)

        await self._do(verb)

    async def succeed(self, items: Sequence[Success]) -> RefusedItems:
        text = JSON.encode({"items": items})

        async def verb(services: Services) -> RefusedItems:
            named, said = bodies.decode_successes(text, wire.JSON, LIMITS)
            keys = NamedKeys(named, services.ids)
            settled = await services.work.succeed(keys.known, EVERYWHERE, keys.with_what(said))
            return RefusedItems(*keys.refused(settled))

        return await self._do(verb)

    async def fail(self, id: str, failure: LeasedFailure) -> StoredJob:
        text = JSON.encode(failure)

        async def verb(services: Services) -> JobRecord:
            report = bodies.decode_failure(text, wire.JSON)
            return await services.work.fail(held_key(id, services.ids), report, EVERYWHERE)

        return await shown(self._do, verb)

    async def extend(
        self, items: Sequence[Held], lease_ms: int, *, resumed: bool = False
    ) -> RefusedItems:
        text = JSON.encode({"items": items, "lease_ms": lease_ms, "resumed": resumed})

        async def verb(services: Services) -> RefusedItems:
            named, wanted_ms, _ = lease_bodies.decode_extend_many(text, wire.JSON, LIMITS)
            keys = NamedKeys(named, services.ids)
            leases = keys.with_what(named)
            done = await services.work.extend(
                keys.known, leases, wanted_ms, EVERYWHERE, resumed=resumed
            )
            return RefusedItems(*keys.refused(done.refused))

        return await self._do(verb)

    async def release(self, items: Sequence[Held], delay_ms: int = 0) -> RefusedItems:
        text = JSON.encode({"items": items, "delay_ms": delay_ms})

        async def verb(services: Services) -> RefusedItems:
            named, wanted_ms = lease_bodies.decode_release_many(text, wire.JSON, LIMITS)
            keys = NamedKeys(named, services.ids)
            leases = keys.with_what(named)
            settled = await services.work.release(keys.known, leases, wanted_ms, EVERYWHERE)
            return RefusedItems(*keys.refused(settled))

        return await self._do(verb)

    async def progress(self, id: str, data: Any, lease: int | None = None) -> None:
        text = JSON.encode({"data": data, "lease": lease})

        async def verb(services: Services) -> None:
            told, meant = bodies.decode_progress(text, wire.JSON)
            key = held_key(id, services.ids)
            await services.work.progress(key, told, meant, EVERYWHERE)

        await self._do(verb)

    async def events(self, query: EventQuery, since: str | None = None) -> EventStream:

        async def verb(services: Services) -> EventStream:
            return await listen(services, query, since, self._do)

        return await self._do(verb)

    async def close(self) -> None:
        """Stop the engine and release the data. The next verb starts the engine again."""
        if self._blocks:
            self.home.close()
        else:
            await asyncio.to_thread(self.home.close)

    # Between the caller and the engine

    async def ask(
        self,
        verb: Verb[T],
        body: object = None,
        query: Mapping[str, str] = NO_QUERY,
        *,
        wait_ms: int = 0,
        **path: str,
    ) -> T:
        """Ask for a verb of a room: its answer is made as for a request with these texts."""
        text = b"" if body is None else JSON.encode(body)
        answering = answering_of(verb)

        async def done(services: Services) -> bytes:
            asked = Asked(services, path, query, text, wire.JSON, LIMITS, EVERYWHERE)
            document = await answering(asked)
            return wire.JSON.encode(document.whole() if isinstance(document, Rows) else document)

        document = await self._do(done)
        return JSON.decode(document, verb.answer) if verb.answer is not NoneType else cast(T, None)

    async def _do(self, verb: Act[T]) -> T:
        """Run a verb in the engine's thread. Its errors become those of the library."""
        if not self.home.is_running:
            await start(self.home, blocks=self._blocks)
        future = self.home.submit(verb(self.home.services()))
        try:
            return future.result() if self._blocks else await asyncio.wrap_future(future)
        except errors.ZqError as error:
            raise refusal_of(error) from error
