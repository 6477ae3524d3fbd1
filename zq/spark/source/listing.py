"""Batch reads of stored jobs: the server's listing, split by the times of jobs."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

import msgspec
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType

from zq.client.backend import run
from zq.client.errors import ZqError
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import Request, persist
from zq.model.ids import ALPHABET, timestamp_ms
from zq.spark.errors import SourceError
from zq.spark.source.options import SourceOptions

PAGE = 2_000
TRIES = 6
TIMEOUT_S = 60.0


class ListedJob(msgspec.Struct):
    """A job in the listing: `payload` and `result` are JSON text, times are Unix ms."""

    id: str
    queue: str
    type: str
    status: str
    priority: int
    attempts: int
    ready_at: int
    dequeued_at: int | None = None
    failed_at: int | None = None
    completed_at: int | None = None
    cancelled_at: int | None = None
    purge_at: int | None = None
    unique_key: str | None = None
    payload: msgspec.Raw = msgspec.Raw(b"null")
    result: msgspec.Raw | None = None


class _Page(msgspec.Struct):
    jobs: list[ListedJob]
    pages: dict[str, str | None]


SCHEMA = StructType(
    [
        StructField(
            field.name,
            LongType() if field.type in (int, int | None) else StringType(),
            nullable=not field.required,
        )
        for field in msgspec.structs.fields(ListedJob)
    ]
)

_decoder = msgspec.json.Decoder(_Page)


class IdSpan(InputPartition):
    """Jobs with ``after < id <= until`` in text order."""

    def __init__(self, after: str, until: str) -> None:
        self.after = after
        self.until = until


class JobsRead(DataSourceReader):
    """The jobs that exist while the read runs, in `partitions` spans of ids."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._url = options.url
        self._count = options.partitions
        self._names = schema.names
        self._filters = dict(options.filters)
        if options.table == "dead":
            self._filters["status"] = "dead"
        strangers = [name for name in schema.names if name not in SCHEMA.names]
        if strangers:
            raise SourceError(f"jobs have no columns {', '.join(strangers)}")

    def partitions(self) -> Sequence[InputPartition]:
        """Spans of equal time between the first job and the last."""
        transport = self._connect()
        try:
            ends = [self._page(transport, order=order, limit="1").jobs for order in ("asc", "desc")]
        finally:
            run(transport.close())
        if not all(ends):
            return [IdSpan("", "~")]
        first, last = (timestamp_ms(jobs[0].id) for jobs in ends)
        step = -(-(last - first + 1) // self._count)
        cuts = [_prefix(first + step * n) for n in range(1, self._count)]
        return [
            IdSpan(after, until) for after, until in zip(["", *cuts], [*cuts, "~"], strict=True)
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """The jobs of one span."""
        assert isinstance(partition, IdSpan)
        transport = self._connect()
        cursor = partition.after
        try:
            while True:
                found = self._page(transport, limit=str(PAGE), **_from(cursor))
                for job in found.jobs:
                    if job.id > partition.until:
                        return
                    yield tuple(_plain(getattr(job, name)) for name in self._names)
                if not found.pages.get("next"):
                    return
                cursor = found.jobs[-1].id
        finally:
            run(transport.close())

    def _connect(self) -> BlockingTransport:
        return BlockingTransport(self._options.address)

    def _page(self, transport: BlockingTransport, **more: str) -> _Page:
        query = urlencode(self._filters | more)
        request = Request("GET", f"/jobs?{query}", timeout=TIMEOUT_S, safe=True)
        try:
            reply = run(persist(transport.send, transport.sleep, request, TRIES))
            if reply.status != 200:
                raise reply.error()
        except ZqError as error:
            raise SourceError(f"{self._url}: {error}") from None
        return _decoder.decode(reply.body)


def _from(cursor: str) -> Mapping[str, str]:
    return {"from": cursor} if cursor else {}


def _plain(value: object) -> object:
    return bytes(value).decode() if isinstance(value, msgspec.Raw) else value


def _prefix(time: int) -> str:
    """The first characters of ids from that moment. No earlier id has them."""
    return "".join(ALPHABET[time >> 5 * n & 31] for n in reversed(range(10)))
