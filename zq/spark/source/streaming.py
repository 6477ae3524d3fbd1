"""Streaming reads of the history, of one server or a fleet.

An offset is ``{"servers": {address: {"epoch": …, "seq": …}}}``: the last record that was read from
each server. A server may join a running stream, or may have lost records. Then `from` beside `seq`
tells where its first batch begins, so that the batch has the same records when it is read again.
`oldest` beside `seq` tells that nothing was read yet, and that the first batch begins with the
oldest record, whichever that is by then.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from zq.client.errors import Unavailable
from zq.features.history.client import HistoryPage
from zq.spark.errors import SourceError
from zq.spark.source.options import SourceOptions
from zq.spark.source.reading import (
    HistoryRange,
    earlier_state,
    extent_of,
    fetch,
    other_database,
    split,
)

Position = dict[str, Any]
Offset = dict[str, dict[str, Position]]

TRIES = 2
"""How often the driver asks a server: a batch must not wait for a server that is down."""


class HistoryStream(DataSourceStreamReader):
    """The part of a stream reader that all versions of PySpark share."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._target: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """The place before the first record, or after the last one (`startingFrom`)."""
        return _offset({url: self._begin(page) for url, page in self._extents().items()})

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Ranges of about `recordsPerPartition` records."""
        found: list[InputPartition] = []
        for url, last in end["servers"].items():
            known = start["servers"].get(url)
            if known is not None and known["epoch"] != last["epoch"]:
                raise other_database(url, known["epoch"], last["epoch"])
            first = max(known["seq"] if known else -1, last.get("from", -1))
            if first >= 0:
                from_oldest = known is None or "oldest" in known
                whole = HistoryRange(url, last["epoch"], first, last["seq"], from_oldest)
                found += split(whole, self._options.records_per_partition)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range."""
        assert isinstance(partition, HistoryRange)
        yield from fetch(partition, self._options, self._schema)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Set the end of the stream to the records that there are now."""
        self._target = _offset({url: _position(p, p.max_seq) for url, p in self._extents().items()})

    def latest(self, start: Offset, limit: int | None) -> Offset:
        """The end of a batch after `start`: at most `limit` records, over all servers."""
        before = start["servers"]
        begins: dict[str, Position] = {}
        ends: dict[str, int] = {}
        for url, page in self._extents().items():
            known = before.get(url)
            begins[url] = self._begin(page) if known is None else self._go_on(url, known, page)
            ends[url] = max(self._end(url, page), begins[url]["seq"])
        waiting = {url: ends[url] - begin["seq"] for url, begin in begins.items()}
        shares = admit(waiting, limit)
        # A server that does not answer keeps its position. So does one that is no longer listed.
        after = {url: dict(position) for url, position in before.items()}
        for url, begin in begins.items():
            end = {"epoch": begin["epoch"], "seq": begin["seq"] + shares[url]}
            if url not in before or begin["seq"] != before[url]["seq"]:
                end["from"] = begin["seq"]
            elif not shares[url]:
                # Spark recognises that nothing is new only by an offset that equals the last one.
                end = after[url]
            after[url] = end
        return _offset(after)

    def _extents(self) -> dict[str, HistoryPage]:
        """The extents of the histories of the servers that answer."""
        found: dict[str, HistoryPage] = {}
        for url in self._options.urls:
            try:
                found[url] = extent_of(url, self._options, TRIES)
            except Unavailable as error:
                if not self._options.skip_unavailable:
                    raise SourceError(
                        f"{error} (onUnavailable=skip goes on with the other servers)"
                    ) from None
        return found

    def _begin(self, page: HistoryPage) -> Position:
        if self._options.from_latest:
            return _position(page, page.max_seq)
        begin = _position(page, page.min_seq - 1)
        # An empty history has no record that could go before it is read.
        return begin if page.min_seq > page.max_seq else {**begin, "oldest": True}

    def _go_on(self, url: str, known: Position, page: HistoryPage) -> Position:
        if page.epoch != known["epoch"]:
            raise other_database(url, known["epoch"], page.epoch)
        if known["seq"] > page.max_seq:
            raise earlier_state(url, known["seq"], page.max_seq)
        if known["seq"] >= page.min_seq - 1:
            return known
        if self._options.fail_on_data_loss and "oldest" not in known:
            raise SourceError(
                f"{url} has no records {known['seq'] + 1} to {page.min_seq - 1} any more: they were"
                " past their retention before they were read. failOnDataLoss=false goes on without"
            )
        return _position(page, page.min_seq - 1)

    def _end(self, url: str, page: HistoryPage) -> int:
        if self._target is None:
            return page.max_seq
        target = self._target["servers"].get(url)
        return min(page.max_seq, target["seq"]) if target else 0


class CappedStream(HistoryStream):
    """The reader for PySpark before 4.2, which gives no start of a batch and sets no limit.

    The reader remembers its position. The first batch of a query takes all records, for Spark asks
    for its end before its start. When a query is started again, Spark first plans an empty batch at
    the last offset, which shows the reader where the stream is.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._at: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """As in every stream. Batches from there on are limited."""
        self._at = super().initialOffset()
        return self._at

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802 - Spark's name
        """The end of the next batch."""
        if self._at is None:
            there = self._extents().items()
            return _offset(
                {url: {**_position(p, p.max_seq), "from": p.min_seq - 1} for url, p in there}
            )
        self._at = self.latest(self._at, self._options.max_records_per_batch)
        return self._at

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """As in every stream. It also shows the position of the stream."""
        self._at = end
        return super().partitions(start, end)


try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ModuleNotFoundError:
    # PySpark before 4.2 has no such module.
    StreamReader: type[HistoryStream] = CappedStream
else:

    class AdmittingStream(HistoryStream, SupportsTriggerAvailableNow):
        """The reader for PySpark from 4.2 on, which says where a batch begins and where it may end.

        It respects the limit of the trigger, and stops where `availableNow` began.
        """

        def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
            """`maxRecordsPerBatch`, if it is set."""
            most = self._options.max_records_per_batch
            return ReadAllAvailable() if most is None else ReadMaxRows(most)

        def latestOffset(self, start: Offset, limit: Any) -> Offset:  # noqa: N802 - Spark's name
            """The end of a batch after `start`."""
            return self.latest(start, getattr(limit, "max_rows", None))

        def reportLatestOffset(self) -> Offset | None:  # noqa: N802 - Spark's name
            """The ends of the histories now, for the status of the query: what is still to come.

            A server that does not answer is none of this status, which stops no query.
            """
            try:
                return _offset({url: _position(p, p.max_seq) for url, p in self._extents().items()})
            except SourceError:
                return None

    StreamReader = AdmittingStream


def admit(waiting: Mapping[str, int], limit: int | None) -> dict[str, int]:
    """The records that a batch takes of each server: an even share, and what the others leave."""
    if limit is None:
        return dict(waiting)
    shares: dict[str, int] = {}
    left = limit
    smallest_first = sorted(waiting, key=lambda url: waiting[url])
    for done, url in enumerate(smallest_first):
        shares[url] = min(waiting[url], -(-left // (len(smallest_first) - done)))
        left -= shares[url]
    return {url: shares[url] for url in waiting}


def _offset(servers: dict[str, Position]) -> Offset:
    return {"servers": servers}


def _position(page: HistoryPage, seq: int) -> Position:
    return {"epoch": page.epoch, "seq": seq}
