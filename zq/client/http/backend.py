"""The backend over HTTP: verbs become requests, and answers become values.

The same class uses both transports. Over the blocking one, its coroutines never suspend.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from zq.client.asking import NO_QUERY, filters
from zq.client.backend import Backend, EventStream, TakeStream
from zq.client.errors import BackendError, Unavailable, ZqError, again
from zq.client.formats import Codec
from zq.client.http.address import Address
from zq.client.http.aio import AioTransport
from zq.client.http.blocking import BlockingTransport
from zq.client.http.gathering import Encoded, Fate, Gatherer, Stored, one_by_one, overlapped
from zq.client.http.in_turn import InTurn
from zq.client.http.transport import (
    LONGEST_DELAY_S,
    Bytes,
    Reply,
    Request,
    Transport,
    Unreachable,
    persist,
)
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
    RefusedItems,
    StoredJob,
    Submission,
    Success,
    TakeRequest,
)
from zq.model.job import DedupeRule
from zq.model.patching import Patch
from zq.model.settings import QueueSettings, SettingsPatch
from zq.verbs import Verb
from zq.wire.documents import OpenWorker, WorkersDocument

_event = msgspec.json.Decoder(JobEvent)


class HttpTakeStream:
    """The take stream over HTTP."""

    def __init__(self, body: Bytes, codec: Codec, url: str) -> None:
        self._body = body
        self._codec = codec
        self._url = url
        self._rest = b""

    async def deliveries(self) -> Sequence[Delivery | Notice]:
        """Wait for jobs."""
        while True:
            chunk = await self._body.read()
            if not chunk:
                raise Unavailable(f"{self._url} ended the stream")
            try:
                found, self._rest = self._codec.cut(self._rest + chunk)
            except msgspec.MsgspecError as error:
                raise Unavailable(
                    f"{self._url} sends something other than jobs: {error}"
                ) from error
            if found:
                return found

    async def close(self) -> None:
        """Close the connection. Its unsettled jobs are returned."""
        await self._body.close()


class HttpEventStream:
    """Server-sent events, as in https://html.spec.whatwg.org/multipage/server-sent-events.html, in
    the form that a zq server sends: the fields `id`, `event` and `data` have one line each.
    """

    def __init__(self, body: Bytes, url: str, last_id: str | None) -> None:
        self.last_id = last_id
        self._body = body
        self._url = url
        self._rest = b""

    async def events(self) -> Sequence[JobEvent]:
        """Wait for events, or for a heartbeat, which brings a new place."""
        chunk = await self._body.read()
        if not chunk:
            raise Unavailable(f"{self._url} ended the stream")
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        found: list[JobEvent] = []
        try:
            for block in blocks:
                fields = dict(line.split(b": ", 1) for line in block.split(b"\n"))
                self.last_id = fields[b"id"].decode()
                if b"data" in fields:
                    event = _event.decode(fields[b"data"])
                    found.append(msgspec.structs.replace(event, event_id=self.last_id))
        except (ValueError, KeyError, msgspec.MsgspecError) as error:
            raise Unavailable(f"{self._url} sends something other than events: {error}") from error
        return found

    async def close(self) -> None:
        """Close the connection."""
        await self._body.close()


T = TypeVar("T")

TIMEOUT_S = 30.0
TRIES = 5
WAIT_SLACK_S = 10.0
USUAL_WINDOW_MS = DedupeRule("").window_ms


class _Jobs(msgspec.Struct):
    jobs: list[StoredJob]


class _Page(msgspec.Struct):
    jobs: list[StoredJob]
    pages: dict[str, str | None]


class _Errors(msgspec.Struct):
    errors: list[JobError]


class _Count(msgspec.Struct):
    count: int


class _Queues(msgspec.Struct):
    queues: list[str]


def _reaching(address: Address, kind: Callable[[Address], Transport]) -> Transport:
    """The transport to a server, or to one of several."""
    transports = list(map(kind, address.each()))
    return InTurn(transports) if address.others else transports[0]


class HttpBackend(Backend):
    """A server at an address. `zq.client.backend.Backend` describes the verbs."""

    def __init__(self, address: Address, transport: Transport | None = None) -> None:
        """The default transport is the asynchronous one."""
        self._address = address
        self._codec = address.codec
        self._transport = _reaching(address, AioTransport) if transport is None else transport
        self._blocking: HttpBackend | None = None
        blocks = self._transport.blocks
        self._store_one = self._alone if blocks else Gatherer(self._alone, self._together).store

    @property
    def blocking(self) -> "HttpBackend":
        """This server over the blocking transport."""
        if self._transport.blocks:
            return self
        if self._blocking is None:
            self._blocking = HttpBackend(self._address, _reaching(self._address, BlockingTransport))
        return self._blocking

    @property
    def url(self) -> str:
        """The address of the server, or those of several."""
        return ",".join(self._address.all_urls)

    @property
    def operations(self) -> "HttpOperations":
        return HttpOperations(self)

    # Jobs in

    async def enqueue(self, jobs: Sequence[Submission]) -> list[StoredJob]:
        if len(jobs) == 1:
            job = Encoded(self._codec.encode(jobs[0]), _is_repeatable(jobs[0]))
            return [await self._store_one(job)]
        return self._stored(await self._exchange(self._bulk(jobs)))

    async def enqueue_on(
        self, terms: Mapping[str, object], jobs: Sequence[Submission]
    ) -> list[StoredJob]:
        body = self._codec.encode({**terms, "jobs": jobs})
        return self._stored(
            await self._exchange(Request("POST", "/jobs/bulk", body, TIMEOUT_S, safe=True))
        )

    def enqueue_each(self, batches: Iterable[Sequence[Submission]]) -> Stored:
        """Store batches in order. The next one is prepared while the server works on one."""
        if self.blocking is self:
            return one_by_one(self.enqueue, batches)
        return overlapped(self.enqueue, batches, self._bulk, self._exchange, self._stored)

    async def enqueue_and_wait(self, job: Submission, wait_ms: int) -> JobOutcome:
        path, between_s = f"/jobs?wait_ms={wait_ms}", _timeout_s(wait_ms) + LONGEST_DELAY_S
        safe = _is_repeatable(job, (TRIES - 1) * between_s)
        reply = await self._call("POST", path, job, safe=safe, wait_ms=wait_ms, also=(410,))
        return self._read(reply, JobOutcome)

    # One job

    async def get(self, id: str) -> StoredJob:
        return self._read(await self._call("GET", _job_path(id)), StoredJob)

    async def by_key(self, key: str) -> StoredJob:
        return self._read(await self._call("GET", _key(key)), StoredJob)

    async def result(self, id: str, wait_ms: int) -> JobOutcome:
        path = f"{_job_path(id)}/result?wait_ms={wait_ms}"
        reply = await self._call("GET", path, wait_ms=wait_ms, also=(410,))
        return self._read(reply, JobOutcome)

    async def errors(self, id: str) -> list[JobError]:
        reply = await self._call("GET", f"{_job_path(id)}/errors?order=desc&limit=50")
        return self._read(reply, _Errors).errors[::-1]

    async def cancel_by_key(self, key: str, *, force: bool = False) -> StoredJob:
        reply = await self._call("POST", _key(key, "/cancel"), {"force": force})
        return self._read(reply, StoredJob)

    async def retain(
        self, id: str, *, completed_ms: int | None = None, dead_ms: int | None = None
    ) -> StoredJob:
        kept = {"completed_ms": completed_ms, "dead_ms": dead_ms}
        body = {name: ms for name, ms in kept.items() if ms is not None}
        reply = await self._call("PATCH", f"{_job_path(id)}/retention", body, safe=True)
        return self._read(reply, StoredJob)

    async def requeue(self, id: str) -> StoredJob:
        return self._read(await self._call("POST", f"{_job_path(id)}/requeue"), StoredJob)

    # Many

    async def jobs(
        self,
        query: JobQuery = EVERYTHING,
        *,
        after: str | None = None,
        limit: int = 50,
        newest: bool = False,
    ) -> JobListing:
        place = {} if after is None else {"from": after}
        if newest:
            place["order"] = "desc"
        path = _filtered("/jobs", query, limit=str(limit), **place)
        page = self._read(await self._call("GET", path), _Page)
        return JobListing(page.jobs, page.jobs[-1].id if page.pages.get("next") else None)

    async def count(self, query: JobQuery = EVERYTHING) -> int:
        return self._read(await self._call("GET", _filtered("/jobs/count", query)), _Count).count

    async def queues(self) -> list[str]:
        return self._read(await self._call("GET", "/queues"), _Queues).queues

    # Queues

    async def settings(self, queue: str) -> QueueSettings:
        return self._read(await self._call("GET", _settings(queue)), QueueSettings)

    async def change_settings(self, queue: str, patch: SettingsPatch) -> QueueSettings:
        reply = await self._call("PATCH", _settings(queue), patch, safe=True)
        return self._read(reply, QueueSettings)

    # Work

    async def take(self, wanted: TakeRequest) -> TakeStream:
        parameters: dict[str, object] = {
            "prefetch": wanted.prefetch,
            "concurrency": wanted.concurrency,
            "control": 1,
        }
        if wanted.queues:
            parameters["queue"] = ",".join(wanted.queues)
        if wanted.lease_ms is not None:
            parameters["lease_ms"] = wanted.lease_ms
        if wanted.stall_limit is not None:
            parameters["stall_limit"] = wanted.stall_limit
        headers = {"Accept": self._codec.stream_type, "Worker-Id": wanted.worker}
        path = f"/jobs/take?{urlencode(parameters)}"
        body = await self._transport.open(path, headers)
        return HttpTakeStream(body, self._codec, self._transport.url)

    async def drain(self, worker: str) -> None:
        await self._call("POST", f"/workers/{quote(worker, safe='')}/drain", safe=True)

    async def succeed(self, items: Sequence[Success]) -> RefusedItems:
        # Whoever repeats it has to know whether an earlier try is in doubt.
        return await self._settle("/jobs/success", {"items": items}, safe=False)

    async def fail(self, id: str, failure: LeasedFailure) -> StoredJob:
        reply = await self._call("POST", f"{_job_path(id)}/failure", failure)
        return self._read(reply, StoredJob)

    async def extend(
        self, items: Sequence[Held], lease_ms: int, *, resumed: bool = False
    ) -> RefusedItems:
        body: dict[str, object] = {"items": items, "lease_ms": lease_ms}
        if resumed:
            body["resumed"] = True
        return await self._settle("/jobs/extend", body)

    async def release(self, items: Sequence[Held], delay_ms: int = 0) -> RefusedItems:
        return await self._settle("/jobs/release", {"items": items, "delay_ms": delay_ms})

    async def progress(self, id: str, data: Any, lease: int | None = None) -> None:
        body = {"data": data} if lease is None else {"data": data, "lease": lease}
        await self._call("POST", f"{_job_path(id)}/progress", body)

    async def events(self, query: EventQuery, since: str | None = None) -> EventStream:
        lists = {"queue": query.queues, "job": query.jobs, "types": query.types}
        parameters = {name: ",".join(said) for name, said in lists.items() if said}
        path = f"/events?{urlencode(parameters)}"
        headers = {"Accept": "text/event-stream"}
        if since is not None:
            headers["Last-Event-ID"] = since
        body = await self._transport.open(path, headers)
        return HttpEventStream(body, self._transport.url, since)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    # Requests and answers

    async def ask(
        self,
        verb: Verb[T],
        body: object = None,
        query: Mapping[str, str] = NO_QUERY,
        *,
        wait_ms: int = 0,
        **path: str,
    ) -> T:
        place = _with_query(verb.at(path), query)
        safe = verb.is_repeatable
        reply = await self._call(verb.method, place, body, safe=safe, wait_ms=wait_ms)
        return self._read(reply, verb.answer) if verb.answer is not NoneType else cast(T, None)

    async def _settle(self, path: str, body: object, *, safe: bool = True) -> RefusedItems:
        reply = await self._call("POST", path, body, safe=safe, also=(422,))
        if reply.status == 422 and "zq-error" in reply.headers:
            raise reply.error()
        return RefusedItems() if reply.status == 204 else self._read(reply, RefusedItems)

    async def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        safe: bool = False,
        wait_ms: int = 0,
        also: tuple[int, ...] = (),
    ) -> Reply:
        """The answer. A status that is neither a success nor in `also` raises an error."""
        request = Request(
            method,
            path,
            None if body is None else self._codec.encode(body),
            _timeout_s(wait_ms),
            safe or method == "GET",
        )
        return await self._exchange(request, also)

    async def _exchange(self, request: Request, also: tuple[int, ...] = ()) -> Reply:
        reply = await persist(self._transport.send, self._transport.sleep, request, TRIES)
        if reply.status >= 300 and reply.status not in also:
            path = urlsplit(self._transport.url).path if reply.status == 404 else ""
            raise reply.error(f" (the address ends in {path}: is that meant?)" if path else "")
        return reply

    async def _alone(self, job: Encoded) -> StoredJob:
        request = Request("POST", "/jobs", job.text, TIMEOUT_S, job.safe)
        return self._read(await self._exchange(request), StoredJob)

    async def _together(self, jobs: Sequence[Encoded]) -> Sequence[Fate]:
        """Try once to store the jobs of several callers. Each caller gets its own error."""
        if len(jobs) == 1:
            return [None]
        body = self._codec.gather([job.text for job in jobs])
        try:
            reply = await self._transport.send(Request("POST", "/jobs/bulk", body, TIMEOUT_S))
            if reply.status >= 300:
                return [None if job.safe or reply.is_decided else reply.error() for job in jobs]
            stored = self._stored(reply)
            if len(stored) != len(jobs):
                raise BackendError(
                    f"{self._transport.url} answers for {len(stored)} of {len(jobs)} jobs"
                )
        except ZqError as error:
            never_sent = isinstance(error, Unreachable) and not error.sent
            return [None if job.safe or never_sent else again(error) for job in jobs]
        return stored

    def _bulk(self, jobs: Sequence[Submission]) -> Request:
        safe = all(_is_repeatable(job) for job in jobs)
        return Request("POST", "/jobs/bulk", self._codec.encode({"jobs": jobs}), TIMEOUT_S, safe)

    def _stored(self, reply: Reply) -> list[StoredJob]:
        return self._read(reply, _Jobs).jobs

    def _read(self, reply: Reply, type: type[T]) -> T:
        try:
            return self._codec.decode(reply.body, type)
        except msgspec.MsgspecError as error:
            raise BackendError(
                f"{self._transport.url} does not answer like a zq server: {error}",
                reply.status,
            ) from error


class HttpOperations:
    """The `zq.client.backend.Operations` of a server at an address."""

    def __init__(self, backend: "HttpBackend") -> None:
        self._call = backend._call
        self._read = backend._read

    async def delete(self, id: str) -> None:
        """Delete a job in any status."""
        await self._call("DELETE", _job_path(id))

    async def change(self, id: str, patch: Patch) -> StoredJob:
        """Change a job that has not finished."""
        return self._read(await self._call("PATCH", _job_path(id), patch), StoredJob)

    async def workers(self) -> list[OpenWorker]:
        """The open streams, the oldest first."""
        return self._read(await self._call("GET", "/workers"), WorkersDocument).workers

    async def drop(self, worker: str) -> list[OpenWorker]:
        """Close the streams of a worker. Return what they were."""
        reply = await self._call("DELETE", f"/workers/{quote(worker, safe='')}")
        return self._read(reply, WorkersDocument).workers


def _job_path(id: str) -> str:
    """The path of one job."""
    return f"/jobs/{quote(id, safe='')}"


def _with_query(path: str, parameters: Mapping[str, object]) -> str:
    """The path with parameters, if there are any."""
    return f"{path}?{urlencode(parameters)}" if parameters else path


def _filtered(path: str, query: JobQuery, **more: str) -> str:
    """The path with a filter of jobs, and with `more` parameters."""
    return _with_query(path, filters(query) | more)


def _timeout_s(wait_ms: int) -> float:
    """How long one try may take of a request that may wait for a job."""
    return TIMEOUT_S + WAIT_SLACK_S + wait_ms / 1000 if wait_ms else TIMEOUT_S


# A job is tried alone after a try together with others.
def _is_repeatable(job: Submission, tried_s: float = TRIES * (TIMEOUT_S + LONGEST_DELAY_S)) -> bool:
    """True if the server would recognise the job and not store it twice, even if it has ended by
    then. The last try begins at most `tried_s` after the first."""
    tried_ms, kept = tried_s * 1000, job.retention
    if job.dedupe is not None and (job.dedupe.window_ms or USUAL_WINDOW_MS) >= tried_ms:
        return True
    if job.unique_while != "exists" or job.on_conflict == "replace_dead" or kept is None:
        return False
    # The server usually keeps dead jobs for days, and completed ones not at all.
    dead_ms = tried_ms if kept.dead_ms is None else kept.dead_ms
    return min(kept.completed_ms or 0, dead_ms) >= tried_ms


def _settings(queue: str) -> str:
    return f"/queues/{quote(queue, safe='')}/settings"


def _key(key: str, verb: str = "") -> str:
    return f"/jobs/by-key{verb}?{urlencode({'key': key})}"
