"""Streaming reads of the history, of one server or a fleet.

An offset is ``{"servers": {address: {"epoch": …, "seq": …}}}``: the last record that has been read
of each. Where a server comes into a stream that goes on already, or has lost records, `from` beside
tells where its first batch begins, so that the batch is the same when it is read again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from zq.client.errors import Unavailable
from zq.client.history import HistoryPage
from zq.spark.fetch import Range, fetch, look, other_database, split
from zq.spark.options import Options, SourceError

Position = dict[str, Any]
Offset = dict[str, dict[str, Position]]

TRIES = 2
"""How often the driver asks each server: a batch must not wait for one that is down."""


class HistoryStream(DataSourceStreamReader):
    """What both kinds of stream readers have in common: see `StreamReader`."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._target: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Before the first record, or behind the last one (`startingFrom`)."""
        return _offset({url: self._begin(page) for url, page in self._look().items()})

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Ranges of about `recordsPerPartition` records."""
        found: list[InputPartition] = []
        for url, last in end["servers"].items():
            known = start["servers"].get(url)
            if known is not None and known["epoch"] != last["epoch"]:
                raise other_database(url, known["epoch"], last["epoch"])
            first = max(known["seq"] if known else -1, last.get("from", -1))
            if first >= 0:
                most = self._options.records_per_partition
                found += split(url, last["epoch"], first, last["seq"], most)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range."""
        assert isinstance(partition, Range)
        yield from fetch(partition, self._options, self._schema)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Go as far as there is now, and no further."""
        self._target = _offset({url: _position(p, p.max_seq) for url, p in self._look().items()})

    def latest(self, start: Offset, limit: int | None) -> Offset:
        """How far a batch after `start` goes: `limit` records at most, over all servers."""
        before = start["servers"]
        begins: dict[str, Position] = {}
        ends: dict[str, int] = {}
        for url, page in self._look().items():
            known = before.get(url)
            begins[url] = self._begin(page) if known is None else self._go_on(url, known, page)
            ends[url] = max(self._end(url, page), begins[url]["seq"])
        waiting = {url: ends[url] - begin["seq"] for url, begin in begins.items()}
        shares = admit(waiting, limit)
        # A server that does not answer stays where it is, and so does one that is named no more.
        after = {url: dict(position) for url, position in before.items()}
        for url, begin in begins.items():
            end = {"epoch": begin["epoch"], "seq": begin["seq"] + shares[url]}
            if url not in before or begin["seq"] != before[url]["seq"]:
                end["from"] = begin["seq"]
            elif not shares[url]:
                # The very offset that Spark knows, so that it sees that nothing is new.
                end = after[url]
            after[url] = end
        return _offset(after)

    def _look(self) -> dict[str, HistoryPage]:
        """What the servers have, of those that answer."""
        found: dict[str, HistoryPage] = {}
        for url in self._options.urls:
            try:
                found[url] = look(url, self._options, TRIES)
            except Unavailable as error:
                if not self._options.skip_unavailable:
                    raise SourceError(
                        f"{error} (onUnavailable=skip goes on with the other servers)"
                    ) from None
        return found

    def _begin(self, page: HistoryPage) -> Position:
        return _position(page, page.max_seq if self._options.from_latest else page.min_seq - 1)

    def _go_on(self, url: str, known: Position, page: HistoryPage) -> Position:
        if page.epoch != known["epoch"]:
            raise other_database(url, known["epoch"], page.epoch)
        if known["seq"] > page.max_seq:
            raise SourceError(
                f"{url} was put back to an earlier state: record {known['seq']} was read, and its"
                f" last is {page.max_seq}: begin a new query with a checkpoint of its own"
            )
        if known["seq"] >= page.min_seq - 1:
            return known
        if self._options.fail_on_data_loss:
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
    """For PySpark before 4.2, which neither tells where a batch begins nor sets a limit.

    The reader remembers where it is. Right after a restart, before it has been told of any batch,
    it takes all there is, and what Spark knows decides where that begins.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self._at: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """As any; and from there on the batches are capped."""
        self._at = super().initialOffset()
        return self._at

    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802 - Spark's name
        """How far the next batch goes."""
        if self._at is None:
            there = self._look().items()
            return _offset(
                {url: {**_position(p, p.max_seq), "from": p.min_seq - 1} for url, p in there}
            )
        self._at = self.latest(self._at, self._options.max_records_per_batch)
        return self._at

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """As any; it also tells where the stream is."""
        self._at = end
        return super().partitions(start, end)


def admit(waiting: Mapping[str, int], limit: int | None) -> dict[str, int]:
    """How many records a batch takes of each server: an even share, and what others leave of it."""
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
