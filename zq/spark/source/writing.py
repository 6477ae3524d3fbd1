"""Writes: rows become jobs, in bulk, and only once even if a task or a batch runs again.

The name of a row is its write (or its streaming query and batch), its partition, what it holds, and
its number among equal rows there. If a row is sent again under its name, the server finds the
existing job.
"""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from zq.client.backend import run
from zq.client.http.address import Address
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import Reply, Request, Unreachable, jittered
from zq.spark.errors import SourceError
from zq.spark.source.options import SourceOptions
from zq.spark.source.rows import BadRow, BadRows, RowNames, body_of, check_columns, job_of

TIMEOUT_S = 60.0

DAY_S = 86_400

TASKS_REPEAT_S = 7 * DAY_S
"""For so long a row is recognised in a write that nobody can run again: Spark tries its tasks again
as long as the program runs."""

WRITES_REPEAT_S = 49 * DAY_S
"""A write with a `writeId` may be run again, and a micro-batch is after any stop of its query: for
as long as the server can recognise a row."""

WAITS = (408, 429, 500, 502, 503, 504, 507)
"""Statuses after which the same jobs are sent again. Their names make that harmless."""


@dataclass
class Written(WriterCommitMessage):
    """The result of one task."""

    jobs: int
    bad: int


class JobsWriter(DataSourceWriter):
    """Batch writes. `writeId` names the write, so that it may be run again after a failure."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_columns(schema, options)
        self._options = options
        # The name is made once, when the write is planned. All tries of its tasks share it.
        self._write = options.write_id or uuid4().hex

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Store the rows of a partition. Raises `SourceError` for bad rows without a table."""
        context = TaskContext.get()
        assert context is not None
        window_s = WRITES_REPEAT_S if self._options.write_id else TASKS_REPEAT_S
        return _Task(self._options, f"{self._write},{context.partitionId()}", window_s).store(
            iterator
        )


class JobsStreamWriter(DataSourceStreamWriter):
    """Streaming writes. A micro-batch that runs again, also after a restart, adds nothing."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_columns(schema, options)
        self._options = options

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Store the rows of a partition of a micro-batch."""
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise SourceError("this version of Spark does not say which micro-batch a task is of")
        name = f"{query},{batch},{context.partitionId()}"
        return _Task(self._options, name).store(iterator)


class _Task:
    """One partition, in requests of `batchSize` rows."""

    def __init__(self, options: SourceOptions, name: str, window_s: int = WRITES_REPEAT_S) -> None:
        self._options = options
        self._names = RowNames(name, options.dedupe_for_s or window_s)
        self._transport = BlockingTransport(Address(options.url, options.token))
        self._bad = BadRows(options.bad_rows, name)

    def store(self, rows: Iterator[Row]) -> Written:
        """Store all rows that are jobs."""
        stored = 0
        numbered = enumerate(rows)
        try:
            while chunk := list(itertools.islice(numbered, self._options.batch_size)):
                stored += self._store(chunk)
        finally:
            run(self._transport.close())
        self._bad.close()
        return Written(stored, self._bad.count)

    def _store(self, chunk: list[tuple[int, Row]]) -> int:
        jobs: dict[int, bytes] = {}
        for number, row in chunk:
            fields = row.asDict(recursive=True)
            try:
                jobs[number] = self._names.named(job_of(fields, self._options))
            except BadRow as error:
                self._bad.add(number, fields, str(error))
        by_number = dict(chunk)
        while jobs:
            reply = self._send(body_of(jobs.values()))
            if reply.status < 300:
                break
            # The server names the first bad job. The others are sent again without it.
            number, reason = self._refused(reply, jobs)
            self._bad.add(number, by_number[number].asDict(recursive=True), reason)
            del jobs[number]
        return len(jobs)

    def _refused(self, reply: Reply, jobs: dict[int, bytes]) -> tuple[int, str]:
        error = reply.error()
        message, index = error.message, error.index
        if index is not None:
            return list(jobs)[index], message.replace(f"jobs[{index}]: ", "")
        if len(jobs) == 1 and reply.status in (400, 413, 422):
            return next(iter(jobs)), message
        raise SourceError(f"{self._options.url} refuses the jobs ({reply.status}): {message}")

    def _send(self, body: bytes) -> Reply:
        """Send until there is a final answer, with the pauses that the server asks for."""
        request = Request("POST", "/jobs/bulk", body, TIMEOUT_S, safe=True)
        deadline = time.monotonic() + self._options.retry_for_s
        for attempt in itertools.count():
            least = 0.1
            try:
                reply = run(self._transport.send(request))
                if reply.status not in WAITS:
                    return reply
                trouble = f"({reply.status}) {reply.error().message}"
                least = max(least, reply.retry_after)
            except Unreachable as error:
                trouble = error.message
            pause = jittered(attempt, least)
            if time.monotonic() + pause > deadline:
                raise SourceError(
                    f"{self._options.url} has taken no jobs for"
                    f" {self._options.retry_for_s:g} s (retryFor): {trouble}"
                )
            time.sleep(pause)
        raise AssertionError("unreachable")
