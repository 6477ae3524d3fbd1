"""Ranges of a server's history as Arrow batches: what batch and stream reads have in common."""

import io
from collections.abc import Iterator

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from zq.client.errors import Unavailable, ZqError
from zq.client.history import HistoryGone, HistoryPage, HistoryReader
from zq.model.history import HistoryRecord
from zq.spark.options import Options, SourceError

_ARROW = pa.schema(
    [
        pa.field(
            field.name,
            pa.int64() if field.type in (int, int | None) else pa.string(),
            not field.required,
        )
        for field in msgspec.structs.fields(HistoryRecord)
    ]
)

TASK_TRIES = 12
"""How often a task asks a server that does not answer: about half a minute."""


class Range(InputPartition):
    """Records ``after < seq <= until`` of the database `epoch` on one server."""

    def __init__(self, url: str, epoch: str, after: int, until: int) -> None:
        self.url = url
        self.epoch = epoch
        self.after = after
        self.until = until


def split(url: str, epoch: str, after: int, until: int, most: int) -> list[Range]:
    """A range in parts of at most `most` records."""
    return [
        Range(url, epoch, start, min(start + most, until)) for start in range(after, until, most)
    ]


def look(url: str, options: Options, tries: int) -> HistoryPage:
    """What there is to read on a server.

    Raises `Unavailable`, or `SourceError` where it refuses or has never kept a history.
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


def fetch(part: Range, options: Options, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The records of a range that the options select, in the columns of `schema`."""
    reader = HistoryReader(part.url, options.token, TASK_TRIES)
    wanted = arrow_schema(schema)
    after = part.after
    try:
        while after < part.until:
            page = reader.page(after, until=part.until)
            last = page.last
            if page.epoch != part.epoch or last is None:
                raise other_database(part.url, part.epoch, page.epoch)
            table = _selected(_table(page.lines), options)
            for batch in table.select(wanted.names).to_batches():
                yield pa.RecordBatch.from_arrays(batch.columns, schema=wanted)
            after = last.seq
    except HistoryGone as gone:
        raise SourceError(f"{part.url}: {gone}") from None
    except ZqError as error:
        raise SourceError(str(error)) from None
    finally:
        reader.close()


def other_database(url: str, before: str, now: str) -> SourceError:
    """What to tell when the epoch of a server has changed."""
    return SourceError(
        f"{url} has another database than before (epoch {now}, was {before}), whose history begins"
        " anew: read it by a new query with a checkpoint of its own"
    )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow form of the history's columns that are asked for. Raises `SourceError`."""
    strangers = [name for name in schema.names if name not in _ARROW.names]
    if strangers:
        raise SourceError(f"the history has no columns {', '.join(strangers)}")
    return pa.schema(
        [_ARROW.field(each.name).with_nullable(each.nullable) for each in schema.fields]
    )


def _selected(table: pa.Table, options: Options) -> pa.Table:
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
        # One block: a line must not straddle two.
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=_ARROW, unexpected_field_behavior="ignore"
        ),
    )
