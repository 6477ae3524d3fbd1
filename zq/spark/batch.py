"""Batch reads of the history: a range of numbers a server, split into partitions."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from zq.client.errors import Unavailable
from zq.spark.fetch import Range, fetch, look, split
from zq.spark.options import Options, SourceError

TRIES = 4


class HistoryRead(DataSourceReader):
    """The records that are there when the read is planned."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of about `recordsPerPartition` records, of all servers."""
        found: list[InputPartition] = []
        for url in self._options.urls:
            found += self._ranges(url)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range; of none, where there is nothing to read."""
        if isinstance(partition, Range):
            yield from fetch(partition, self._options, self._schema)

    def _ranges(self, url: str) -> list[Range]:
        options = self._options
        try:
            there = look(url, options, TRIES)
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
        return split(url, there.epoch, after, until, options.records_per_partition)
