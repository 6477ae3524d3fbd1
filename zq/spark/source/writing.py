"""Writes: rows become jobs, in bulk, and only once even if a task or a batch runs again.

A partition of a write, or of a streaming query, is a producer, whose jobs are numbered. A task
writes its rows down and sends them in an order that depends on nothing but what they hold
(`zq.spark.source.spool`), so a task that runs again sends the same jobs under the same numbers,
also beside a copy of itself. The epoch names the micro-batch and all rows of the task: a task with
other rows than the first time is refused, and stores nothing.
"""

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from zq.client.backend import run
from zq.client.errors import PASSING, BackendError, ZqError, cut_of
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import Reply, Request, Unreachable, jittered
from zq.model.errors import QueueFull
from zq.spark.errors import SourceError
from zq.spark.source.forgetting import forget_old, name_for_once
from zq.spark.source.options import SourceOptions
from zq.spark.source.rows import (
    BadRow,
    BadRows,
    body_of,
    check_columns,
    job_of,
    key_of,
    text_of,
)
from zq.spark.source.spool import Spool, SpooledJob

TIMEOUT_S = 60.0

PROBE = 2**53 - 1
"""A number that is a gap: jobs that come with it are checked, and stored nowhere."""

OF_THE_ROW = (400, 413, 422)
"""Statuses by which the server refuses a row that it gets alone."""

_PLAIN = re.compile(r"[A-Za-z0-9._:@/-]{1,128}")
"""What can name a producer."""


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
        self._write = f"spark-write-{options.write_id}" if options.write_id else name_for_once()

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Store the rows of a partition. Raises `SourceError` for bad rows without a table."""
        context = TaskContext.get()
        assert context is not None
        return _Task(self._options, f"{self._write}-{context.partitionId()}").store(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Forget the producers of writes without a `writeId` that nobody repeats any more."""
        if self._options.write_id is None:
            forget_old(self._options)


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
        name = f"spark-query-{query}-{context.partitionId()}"
        return _Task(self._options, name, int(batch)).store(iterator)


class _Task:
    """One partition, in requests of `batchSize` rows. A write is the micro-batch 0."""

    def __init__(self, options: SourceOptions, producer: str, batch: int = 0) -> None:
        self._options = options
        self._producer = _name(producer)
        self._batch = batch
        self._epoch = ""
        self._transport = BlockingTransport(options.address)
        self._bad = BadRows(options.bad_rows, f"{producer}-{batch}")

    def store(self, rows: Iterator[Row]) -> Written:
        """Store all rows that are jobs."""
        spool = Spool()
        stored = 0
        try:
            self._write_down(rows, spool)
            if len(spool):
                stored = self._store_all(spool)
        finally:
            spool.close()
            run(self._transport.close())
        self._bad.write()
        return Written(stored, self._bad.count)

    def _write_down(self, rows: Iterator[Row], spool: Spool) -> None:
        for number, row in enumerate(rows):
            fields = row.asDict(recursive=True)
            try:
                content = text_of(job_of(fields, self._options))
            except BadRow as error:
                text = msgspec.json.encode(fields, enc_hook=str).decode()
                self._bad.add(number, text, str(error))
            else:
                spool.add(number, content, key_of(fields, self._options.order_by))

    def _store_all(self, spool: Spool) -> int:
        self._epoch = f"{self._batch}.{spool.name()}"
        jobs = (job for job in spool.in_order() if not self._bad.knows(job.digest))
        # An earlier run of this task may have stored the first ones.
        stored = sum(1 for _ in itertools.islice(jobs, self._enter()))
        while chunk := list(itertools.islice(jobs, self._options.batch_size)):
            stored += self._store(chunk, stored + 1)
        return stored

    def _enter(self) -> int:
        """Begin the epoch of this task, or go on with it. Return how many jobs it has stored."""
        while True:
            error = self._send(PROBE, ()).error()
            if error.code == "sequence_gap":
                return _whole(error, "expected") - 1
            if error.code != "producer_fenced":
                raise self._refused(error)
            epoch, last = str(error.details.get("epoch")), _whole(error, "last")
            said = epoch.partition(".")[0]
            batch = int(said) if said.isdecimal() else self._batch
            if batch > self._batch or (batch == self._batch and last):
                raise self._other_rows(batch, last)
            # Another run of this task may be faster; then there is another end.
            taken = self._send(1, (), f"{epoch}:{last}")
            if taken.status >= 300 and taken.error().code != "producer_fenced":
                raise self._refused(taken.error())

    def _store(self, chunk: list[SpooledJob], number: int) -> int:
        """Store jobs, the first under this number. Return how many the server has not refused.

        The server names the first bad job of a request. All bad ones are found before any of the
        chunk is stored, and are on record by then: so numbers are spent on the others alone. A
        queue that is full gets as many of the jobs as it has room for.
        """
        is_probe = self._bad.is_fatal
        while chunk:
            reply = self._send(PROBE if is_probe else number, [job.content for job in chunk])
            if reply.status < 300:
                return len(chunk)
            error = reply.error()
            if is_probe and error.code == "sequence_gap":
                if self._bad.is_fatal:
                    return len(chunk)
                self._bad.write()
                is_probe = False
                continue
            if error.code == QueueFull.code:
                cut = cut_of(error, len(chunk))
                stored = self._store(chunk[:cut], number)
                return stored + self._store(chunk[cut:], number + stored)
            at, reason = self._at_fault(error, len(chunk))
            job = chunk.pop(at)
            self._bad.add(job.number, job.content.decode(), reason, job.digest)
            is_probe = True
        return 0

    def _at_fault(self, error: ZqError, jobs: int) -> tuple[int, str]:
        """Which of the jobs is bad, and why."""
        if error.index is not None:
            return error.index, error.message.replace(f"jobs[{error.index}]: ", "")
        if jobs == 1 and _status(error) in OF_THE_ROW and error.code != "too_many_producers":
            return 0, error.message
        raise self._refused(error)

    def _refused(self, error: ZqError) -> SourceError:
        return SourceError(
            f"{self._options.url} refuses the jobs ({_status(error)}): {error.message}"
        )

    def _other_rows(self, batch: int, last: int) -> SourceError:
        if batch > self._batch:
            return SourceError(
                f"the micro-batch {batch} was written already, and this is {self._batch}: a query"
                " whose checkpoint was set back needs a new one"
            )
        return SourceError(
            f"{last} jobs of this partition are stored, and now it has other rows: what is written"
            " must be the same when it is computed again. Write after a checkpoint, or give other"
            " rows another writeId"
        )

    def _send(self, number: int, jobs: Sequence[bytes], after: str | None = None) -> Reply:
        """Send until there is a final answer. The numbers of the jobs make that harmless.

        That a queue is full is the final answer for several jobs: it may have room for some.
        """
        producer: dict[str, Any] = {"name": self._producer, "epoch": self._epoch, "seq": number}
        if after is not None:
            producer["after"] = after
        request = Request("POST", "/jobs/bulk", body_of(producer, jobs), TIMEOUT_S, safe=True)
        deadline = time.monotonic() + self._options.retry_for_s
        for attempt in itertools.count():
            least = 0.1
            try:
                reply = run(self._transport.send(request))
                if reply.status not in PASSING:
                    return reply
                error = reply.error()
                if error.code == QueueFull.code and len(jobs) > 1:
                    return reply
                trouble = f"({reply.status}) {error.message}"
                least = max(least, reply.retry_after)
            except Unreachable as unreachable:
                trouble = unreachable.message
            pause = jittered(attempt, least)
            if time.monotonic() + pause > deadline:
                raise SourceError(
                    f"{self._options.url} has taken no jobs for"
                    f" {self._options.retry_for_s:g} s (retryFor): {trouble}"
                )
            time.sleep(pause)
        raise AssertionError("unreachable")


def _name(task: str) -> str:
    """The producer of a task: the task's name, or a digest of one that names no producer."""
    if _PLAIN.fullmatch(task):
        return task
    return f"spark-{blake2b(task.encode(), digest_size=16).hexdigest()}"


def _status(error: ZqError) -> int | None:
    return error.status if isinstance(error, BackendError) else None


def _whole(error: ZqError, name: str) -> int:
    value = error.details.get(name)
    if not isinstance(value, int):
        raise SourceError(f"the server does not say {name}: {error.message}")
    return value
