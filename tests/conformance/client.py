"""A client of the API for one wire: a body format over an HTTP version."""

import asyncio
import gzip
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

import httpx
import msgpack

from .http1 import Http1Pool
from .http2 import Broken, Http2Pool
from .site import Site
from .streams import PATIENCE_S, EventStream, Exchange, FrameStream, TakeStream, pause

Doc = dict[str, Any]

Kind = TypeVar("Kind", bound=FrameStream)

KERNEL_HOLDS = Path("/proc/sys/net/ipv4/tcp_wmem")
"""The last of its numbers is the most that the kernel takes of what nobody reads, in bytes."""


def to_json(doc: Any) -> bytes:
    return json.dumps(doc, ensure_ascii=False, separators=(",", ":")).encode()


def from_json(body: bytes) -> Any:
    return json.loads(body.decode())


def to_msgpack(doc: Any) -> bytes:
    # MessagePack has no integers beyond 64 bits: a float of that size stands in for one.
    packed: bytes = msgpack.packb(doc, default=float)
    return packed


def from_msgpack(body: bytes) -> Any:
    return msgpack.unpackb(body, strict_map_key=True)


@dataclass(frozen=True)
class Wire:
    """How requests and answers are written."""

    name: str
    media_type: str
    stream_type: str
    events_type: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    http2: bool = False
    http2_engine: str = "h2"
    """The library that serves it."""

    def __str__(self) -> str:
        return self.name


JSON = Wire(
    "json", "application/json", "application/x-ndjson", "text/event-stream", to_json, from_json
)
MSGPACK = Wire(
    "msgpack",
    "application/msgpack",
    "application/vnd.zizq.msgpack-stream",
    "application/vnd.zizq.msgpack-stream",
    to_msgpack,
    from_msgpack,
)
JSON_HTTP2 = replace(JSON, name="json-http2", http2=True)
MSGPACK_HTTP2 = replace(MSGPACK, name="msgpack-http2", http2=True)
JSON_ZTTP = replace(JSON_HTTP2, name="json-zttp", http2_engine="zttp")
PLAIN_TEXT = "text/plain; charset=utf-8"
WIRES = {wire.media_type: wire for wire in (JSON, MSGPACK)}


@dataclass(frozen=True)
class Reply:
    """An answer, read to its end."""

    status: int
    headers: dict[str, str]
    """Their names are in lower case."""
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def doc(self) -> Any:
        """The document in the body, by its content type, which must be exactly one of the two."""
        return WIRES[self.media_type].decode(self.body)

    @property
    def error(self) -> str:
        """The message of an error answer: a document with that alone, or text where Zizq has it."""
        if self.media_type == PLAIN_TEXT:
            assert self.body
            return self.body.decode()
        doc = self.doc
        assert list(doc) == ["error"], doc
        assert isinstance(doc["error"], str)
        assert doc["error"]
        return doc["error"]


class Client:
    """Requests in one wire, and shorthands for what most tests begin with.

    It adds no headers of its own but Host and Content-Length. A client for all purposes, such as
    httpx, would take longer for a request than the server takes to answer it.
    """

    def __init__(self, site: Site, wire: Wire, secret: str | None = None) -> None:
        self.site = site
        self.always = {} if secret is None else {"authorization": f"Bearer {secret}"}
        self.wire = wire
        self._pool: Http1Pool | Http2Pool = Http2Pool() if wire.http2 else Http1Pool()
        self._streams: list[FrameStream] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for stream in self._streams:
            await stream.close()
        await self._pool.close()

    # Requests

    def _headers(self, changes: Mapping[str, str | None] | None) -> dict[str, str]:
        headers = {"accept": self.wire.media_type} | self.always | dict(changes or {})
        return {name: value for name, value in headers.items() if value is not None}

    async def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Reply:
        """One request with raw bytes as its body. A header of None is left out."""
        exchange = await self._begin(method, target, body, self._headers(headers))
        try:
            async with asyncio.timeout(PATIENCE_S):
                status, told = await exchange.head()
                answer = await exchange.body()
        finally:
            await exchange.leave()
        if told.get("content-encoding") == "gzip":
            answer = gzip.decompress(answer)
        return Reply(status, told, answer)

    async def _begin(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Exchange:
        fields = {name.lower(): value for name, value in headers.items()}
        if body or method in ("POST", "PUT", "PATCH"):
            fields["content-length"] = str(len(body or b""))
        host, _, port = self.site.url.removeprefix("http://").rpartition(":")
        try:
            return await self._pool.ask((host, int(port)), method, quoted(target), fields, body)
        except Broken:
            raise
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error

    async def open(
        self, kind: type[Kind], target: str, headers: Mapping[str, str], *more: Any
    ) -> Kind:
        """Open a stream, and wait for its headers. It is closed with the client at the latest."""
        exchange = await self._begin("GET", target, None, self.always | dict(headers))
        try:
            stream = kind(*await exchange.head(), exchange, *more)
        except BaseException:
            await exchange.leave()
            raise
        self._streams.append(stream)
        return stream

    async def call(self, method: str, target: str, doc: Any) -> Reply:
        """One request with a document as its body."""
        headers = {"content-type": self.wire.media_type}
        return await self.send(method, target, self.wire.encode(doc), headers)

    async def get(self, target: str, **params: Any) -> Reply:
        return await self.send("GET", with_query(target, params))

    async def delete(self, target: str, **params: Any) -> Reply:
        return await self.send("DELETE", with_query(target, params))

    async def post(self, target: str, doc: Any) -> Reply:
        return await self.call("POST", target, doc)

    async def patch(self, target: str, doc: Any, **params: Any) -> Reply:
        return await self.call("PATCH", with_query(target, params), doc)

    async def take(
        self,
        *,
        prefetch: int | None = None,
        queue: str | None = None,
        accept: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> TakeStream:
        """Open a take stream. `more` has further parameters."""
        params = {"prefetch": prefetch, "queue": queue, **(more or {})}
        given = {name: value for name, value in params.items() if value is not None}
        told = {"accept": accept or self.wire.stream_type} | dict(headers or {})
        stream = await self.open(TakeStream, with_query("/jobs/take", given), told)
        assert stream.status == 200
        return stream

    async def listen(
        self, *, last_id: str | None = None, accept: str | None = None, **params: Any
    ) -> EventStream:
        """Open a stream of events."""
        told = {"accept": accept or self.wire.events_type}
        if last_id is not None:
            told["last-event-id"] = last_id
        stream = await self.open(EventStream, with_query("/events", params), told)
        assert stream.status == 200
        return stream

    # Shorthands: each asserts the status that it relies on

    async def enqueue(self, **fields: Any) -> Doc:
        reply = await self.post("/jobs", new_job(**fields))
        assert reply.status == 201, reply.doc
        job: Doc = reply.doc
        return job

    async def enqueue_many(self, count: int, **fields: Any) -> list[str]:
        """Ids of `count` jobs alike, stored by one request."""
        reply = await self.post("/jobs/bulk", {"jobs": [new_job(**fields)] * count})
        assert reply.status == 201, reply.doc
        return ids(reply.doc["jobs"])

    async def job(self, job_id: str) -> Doc:
        reply = await self.get(f"/jobs/{job_id}")
        assert reply.status == 200, reply.doc
        job: Doc = reply.doc
        return job

    async def exists(self, job_id: str) -> bool:
        reply = await self.get(f"/jobs/{job_id}")
        assert reply.status in (200, 404)
        return reply.status == 200

    async def jobs(self, **params: Any) -> list[Doc]:
        reply = await self.get("/jobs", **params)
        assert reply.status == 200, reply.doc
        jobs: list[Doc] = reply.doc["jobs"]
        return jobs

    async def count(self, **params: Any) -> int:
        reply = await self.get("/jobs/count", **params)
        assert reply.status == 200, reply.doc
        count: int = reply.doc["count"]
        return count

    async def succeed(self, *job_ids: str) -> None:
        reply = await self.post("/jobs/success", {"ids": list(job_ids)})
        assert reply.status == 204, reply.doc

    async def fail(self, job_id: str, **fields: Any) -> Doc:
        reply = await self.post(f"/jobs/{job_id}/failure", {"message": "failed", **fields})
        assert reply.status == 200, reply.doc
        job: Doc = reply.doc
        return job

    async def change(self, job_id: str, **fields: Any) -> Doc:
        reply = await self.patch(f"/jobs/{job_id}", fields)
        assert reply.status == 200, reply.doc
        job: Doc = reply.doc
        return job

    # Jobs in a given state

    async def in_flight(self, **fields: Any) -> Doc:
        """A job that a stream of prefetch 1 holds until the test ends."""
        job = await self.enqueue(**fields)
        stream = await self.take(prefetch=1, queue=job["queue"])
        taken = await stream.job()
        assert taken["id"] == job["id"], "another job was waiting in this queue"
        return taken

    async def make(self, status: str, **fields: Any) -> str:
        """The id of a new job in that state. Finished ones are kept for a minute."""
        kept = {"retention": {"completed_ms": 60_000, "dead_ms": 60_000}} | fields
        if status == "scheduled":
            kept["ready_at"] = self.site.now + 60_000
        job_id: str = (await self.enqueue(**kept))["id"]
        if status in ("scheduled", "ready"):
            return job_id
        if status == "cancelled":
            assert (await self.send("POST", f"/jobs/{job_id}/cancel")).status == 200
            return job_id
        stream = await self.take(prefetch=1, queue=kept.get("queue", "default"))
        assert (await stream.job())["id"] == job_id
        if status == "in_flight":
            return job_id
        if status == "completed":
            await self.succeed(job_id)
        else:
            assert status == "dead"
            await self.fail(job_id, kill=True)
        await stream.close()
        return job_id

    async def tire_the_reaper(self) -> None:
        """Let a purge happen, so that the next one is a whole `reaper_check_interval` away."""
        await self.make("dead", retention={"dead_ms": 1})
        self.site.clock.advance(1)
        assert (await self.delete("/jobs")).status == 200

    def overflow(self) -> str:
        """A payload of more than both kernels' buffers hold, or a stream's small window."""
        held = 0 if self.wire.http2 else int(KERNEL_HOLDS.read_text().split()[-1])
        return "x" * (held + 2**20)

    # Waiting

    async def until(self, job_id: str, **expected: Any) -> Doc:
        """Read the job until these fields have these values."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                job = await self.job(job_id)
                if all(job.get(field) == value for field, value in expected.items()):
                    return job
                await pause()

    async def until_gone(self, job_id: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while await self.exists(job_id):
                await pause()

    async def until_count(self, expected: int, **params: Any) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while await self.count(**params) != expected:
                await pause()

    async def heartbeat(self, stream: FrameStream) -> None:
        """Let time pass until the stream beats. Its next frame must be a heartbeat, no job."""
        for _ in range(100):
            self.site.clock.advance(HEARTBEAT_MS)
            if await stream.has_frame():
                frame = await stream.frame()
                assert frame is None, f"unexpected delivery: {frame}"
                return
        raise AssertionError("no heartbeat")


HEARTBEAT_MS = 3_000
"""The server's default."""


def new_job(**fields: Any) -> Doc:
    """An enqueue body; `...` leaves a field out."""
    fields = {"queue": "default", "type": "test", "payload": None} | fields
    return {name: value for name, value in fields.items() if value is not ...}


def ids(jobs: list[Doc]) -> list[str]:
    return [job["id"] for job in jobs]


def as_read(taken: Doc) -> Doc:
    """A delivered job as reads show it: the name of the delivery is only for whoever has it."""
    assert taken["lease"] >= 1
    return {name: value for name, value in taken.items() if name != "lease"}


def without_body(read: Doc) -> Doc:
    """A job as changes of it are answered, which leave out what only reads show."""
    return {name: value for name, value in read.items() if name not in ("payload", "created_at")}


PLAIN = re.compile(r"/(?:[A-Za-z0-9_~!$&'()*+,;=:@?/-]|(?<![/.])\.|%[0-9A-F]{2})*")
"""Targets that need no more quoting."""


def quoted(target: str) -> str:
    """A target as clients write it, who quote what must be quoted."""
    if PLAIN.fullmatch(target):
        return target
    return httpx.URL(f"http://q{target}").raw_path.decode()


def with_query(target: str, params: Mapping[str, Any]) -> str:
    return f"{target}?{urlencode(params)}" if params else target
