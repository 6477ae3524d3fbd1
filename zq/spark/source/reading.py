"""Reads of the history: ranges of sequence numbers, which arrive as Arrow batches.

A batch read has the records that exist when it is planned. A streaming read (`streaming`) fetches
its ranges in the same way.
"""

import io
from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType

from zq.client.errors import Unavailable, ZqError
from zq.features.history.client import HistoryGone, HistoryPage, HistoryReader
from zq.features.history.model import HistoryRecord
from zq.spark.errors import SourceError
from zq.spark.source.options import SourceOptions


def history_schema() -> StructType:
    """A record of the server as a row: columns with the names of its fields, integers as BIGINT."""
    return StructType(
        [
            StructField(
                field.name,
                LongType() if field.type in (int, int | None) else StringType(),
                nullable=not field.required,
            )
            for field in msgspec.structs.fields(HistoryRecord)
        ]
    )


HISTORY = history_schema()

_ARROW = pa.schema(
    [
        pa.field(
            field.name,
            pa.int64() if isinstance(field.dataType, LongType) else pa.string(),
            field.nullable,
        )
        for field in HISTORY
    ]
)

PLAN_TRIES = 4
"""How often the driver asks a server that does not answer."""

TASK_TRIES = 12
"""How often a task asks a server that does not answer: for about half a minute."""


class HistoryRange(InputPartition):
    """Records ``after < seq <= until`` of the database `epoch` on one server.

    With `from_oldest` the read was planned from the oldest record on, whichever that is when the
    range is read.
    """

    def __init__(
        self, url: str, epoch: str, after: int, until: int, from_oldest: bool = False
    ) -> None:
        self.url = url
        self.epoch = epoch
        self.after = after
        self.until = until
        self.from_oldest = from_oldest


def split(part: HistoryRange, most: int) -> list[HistoryRange]:
    """A range in parts of at most `most` records."""
    return [
        HistoryRange(part.url, part.epoch, start, min(start + most, part.until), part.from_oldest)
        for start in range(part.after, part.until, most)
    ]


def extent_of(url: str, options: SourceOptions, tries: int) -> HistoryPage:
    """The extent of the history on a server.

    Raises `Unavailable`, or `SourceError` if the server refuses or has never kept a history.
    """
    reader = HistoryReader(url, options.token, tries)
    try:
        found = reader.page(limit=1)
    except Unavailable:
        raise
    except ZqError as error:
        raise SourceError(f"{url}: {error}") from None
    finally:
        reader.close()
    if not found.recording and not found.max_seq:
        raise SourceError(f"{url} keeps no history: start the server with --history 7d")
    return found


def fetch(
    part: HistoryRange, options: SourceOptions, schema: StructType
) -> Iterator[pa.RecordBatch]:
    """The records of a range that the options select, in the columns of `schema`."""
    reader = HistoryReader(part.url, options.token, TASK_TRIES)
    wanted = arrow_schema(schema)
    try:
        for page in _pages(part, options, reader):
            table = _selected(_table(page.lines), options)
            for batch in table.select(wanted.names).to_batches():
                yield pa.RecordBatch.from_arrays(batch.columns, schema=wanted)
    except ZqError as error:
        raise SourceError(str(error)) from None
    finally:
        reader.close()


def _pages(
    part: HistoryRange, options: SourceOptions, reader: HistoryReader
) -> Iterator[HistoryPage]:
    """The pages of a range, without records that are gone. Raises `SourceError` if they matter."""
    after = part.after
    while after < part.until:
        try:
            page = reader.page(after, until=part.until)
        except HistoryGone as gone:
            _may_go_on(part, options, reader, gone)
            after = gone.min_seq - 1
            continue
        if page.epoch != part.epoch:
            raise other_database(part.url, part.epoch, page.epoch)
        last = page.last
        if last is None:
            raise earlier_state(part.url, part.until, page.max_seq)
        yield page
        after = last.seq


def _may_go_on(
    part: HistoryRange, options: SourceOptions, reader: HistoryReader, gone: HistoryGone
) -> None:
    """Raise `SourceError` unless a range may go on without the records that are gone.

    Where retention removes a batch at its age, the record that was the oldest when the read was
    planned is often gone when the first task asks for it. No older record is left behind then.
    """
    now = reader.page(limit=1)
    if now.epoch != part.epoch:
        raise other_database(part.url, part.epoch, now.epoch)
    oldest = now.max_seq + 1 if now.first is None else now.first.seq
    if options.fail_on_data_loss and not (part.from_oldest and oldest >= gone.min_seq):
        raise SourceError(f"{part.url}: {gone} (failOnDataLoss=false does that)")


def earlier_state(url: str, read: int, last: int) -> SourceError:
    """The error for a server that lacks records that it had."""
    return SourceError(
        f"{url} was put back to an earlier state: it had record {read}, and its last is {last}:"
        " begin a new query with a checkpoint of its own"
    )


def other_database(url: str, before: str, now: str) -> SourceError:
    """The error for a server whose epoch has changed."""
    return SourceError(
        f"{url} has another database than before (epoch {now}, was {before}), whose history begins"
        " anew: read it by a new query with a checkpoint of its own"
    )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow form of the requested history columns. Raises `SourceError`."""
    strangers = [name for name in schema.names if name not in _ARROW.names]
    if strangers:
        raise SourceError(f"the history has no columns {', '.join(strangers)}")
    return pa.schema(
        [_ARROW.field(each.name).with_nullable(each.nullable) for each in schema.fields]
    )


def _selected(table: pa.Table, options: SourceOptions) -> pa.Table:
    for column, names in options.filters.items():
        table = table.filter(pc.is_in(table[column], value_set=pa.array(names.split(","))))
    if options.finished_since is not None:
        table = table.filter(pc.greater_equal(table["finished_at"], options.finished_since))
    if options.finished_before is not None:
        table = table.filter(pc.less(table["finished_at"], options.finished_before))
    return table


def _table(lines: bytes) -> pa.Table:
    return arrow_json.read_json(
        io.BytesIO(lines),
        # One block, since a line must not span two.
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=_ARROW, unexpected_field_behavior="ignore"
        ),
    )


class HistoryRead(DataSourceReader):
    """The records that exist when the read is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of about `recordsPerPartition` records, of all servers."""
        found: list[InputPartition] = []
        for url in self._options.urls:
            found += self._ranges(url)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range. Spark gives no range if there is nothing to read."""
        if isinstance(partition, HistoryRange):
            yield from fetch(partition, self._options, self._schema)

    def _ranges(self, url: str) -> list[HistoryRange]:
        options = self._options
        try:
            there = extent_of(url, options, PLAN_TRIES)
        except Unavailable as error:
            if options.skip_unavailable:
                return []
            raise SourceError(f"{error} (onUnavailable=skip leaves a server out)") from None
        after = there.min_seq - 1 if options.after is None else options.after
        if after < there.min_seq - 1 and options.fail_on_data_loss:
            raise SourceError(
                f"{url} has no records {after + 1} to {there.min_seq - 1} any more: read from"
                f" after={there.min_seq - 1} on, or set failOnDataLoss=false"
            )
        after = max(after, there.min_seq - 1)
        until = there.max_seq if options.until is None else min(there.max_seq, options.until)
        whole = HistoryRange(url, there.epoch, after, until, from_oldest=options.after is None)
        return split(whole, options.records_per_partition)
