"""Reading a server's history without Spark's engine: ranges, streams, and errors."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conformance.keyed import secret, write_keys
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader

from bench.ports import free_port
from zq.spark.errors import SourceError
from zq.spark.source.options import parse
from zq.spark.source.reading import HISTORY, HistoryRange, HistoryRead
from zq.spark.source.streaming import AdmittingStream, CappedStream, HistoryStream

from .served import Served, past, served

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a hundred records."""
    root = tmp_path_factory.mktemp("lab") / "data"
    past(root, 10, 10)
    with served(root) as server:
        yield server


def rows(reader: DataSourceReader | HistoryStream, parts: Any) -> list[dict[str, Any]]:
    """What the parts hold, read by copies of the reader, as executors do."""
    copy = cloudpickle.loads(cloudpickle.dumps(reader))  # type: ignore[no-untyped-call]
    batches: list[pa.RecordBatch] = [batch for part in parts for batch in copy.read(part)]
    return [row for batch in batches for row in batch.to_pylist()]


def seqs(found: list[dict[str, Any]]) -> list[int]:
    return [row["seq"] for row in found]


def batch(server: Served, **given: str) -> HistoryRead:
    return HistoryRead(parse({"url": server.url, **given}), HISTORY)


# Batches


def test_a_range_is_split_into_partitions_that_have_each_record_once(lab: Served) -> None:
    reader = batch(lab, recordsPerPartition="30")
    parts = reader.partitions()
    assert len(parts) == 4
    found = rows(reader, parts)
    assert seqs(found) == list(range(1, 101))
    assert found == lab.call("GET", "/history?limit=100")["records"]


def test_options_bound_the_range(lab: Served) -> None:
    reader = batch(lab, after="20", until="25")
    assert seqs(rows(reader, reader.partitions())) == [21, 22, 23, 24, 25]


def test_only_the_columns_that_are_asked_for_come(lab: Served) -> None:
    schema = type(HISTORY)([HISTORY["queue"], HISTORY["seq"]])
    reader = HistoryRead(parse({"url": lab.url, "until": "1"}), schema)
    assert rows(reader, reader.partitions()) == [{"queue": "q1", "seq": 1}]


def test_options_select_records(lab: Served) -> None:
    every = lab.call("GET", "/history?limit=100")["records"]
    since, before = every[20]["finished_at"], every[70]["finished_at"]
    reader = batch(
        lab,
        queue="q0,q2",
        outcome="dead",
        finishedSince=str(since),
        finishedBefore=str(before),
    )
    found = rows(reader, reader.partitions())
    assert found == [
        record
        for record in every
        if record["queue"] in ("q0", "q2")
        and record["outcome"] == "dead"
        and since <= record["finished_at"] < before
    ]
    assert found


def test_a_server_without_a_history_is_named(tmp_path: Path) -> None:
    with (
        served(tmp_path / "data", history=0) as server,
        pytest.raises(SourceError, match="keeps no history: start the server with --history 7d"),
    ):
        batch(server).partitions()


def test_a_server_that_is_away_fails_the_read_or_is_left_out(lab: Served) -> None:
    given = {"urls": f"{NOWHERE},{lab.url}"}
    with pytest.raises(SourceError, match=f"no zq server answers at {NOWHERE}"):
        HistoryRead(parse(given), HISTORY).partitions()
    reader = HistoryRead(parse({**given, "onUnavailable": "skip"}), HISTORY)
    assert len(rows(reader, reader.partitions())) == 100


def test_a_secret_goes_to_executors_and_nowhere_else(tmp_path: Path) -> None:
    past(tmp_path / "data", 1, 3)
    with served(tmp_path / "data", keys=write_keys(tmp_path / "keys")) as server:
        with pytest.raises(SourceError, match="does not have the scope history"):
            batch(server, token=secret("only-read")).partitions()
        reader = batch(server, token=secret("only-history"))
        assert len(rows(reader, reader.partitions())) == 3


# Streams


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    past(tmp_path / "a", 1, 10, device="a")
    past(tmp_path / "b", 1, 4, device="b")
    with served(tmp_path / "a") as one, served(tmp_path / "b") as other:
        yield one, other


def streaming(fleet: tuple[Served, ...], **given: str) -> AdmittingStream:
    urls = ",".join(server.url for server in fleet)
    return AdmittingStream(parse({"urls": urls, **given}), HISTORY)


def at(offset: Any) -> list[int]:
    return [position["seq"] for position in offset["servers"].values()]


def test_each_server_has_an_offset_of_its_own(fleet: tuple[Served, Served]) -> None:
    stream = streaming(fleet)
    start = stream.initialOffset()
    assert at(start) == [0, 0]
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert at(end) == [10, 4]
    found = rows(stream, stream.partitions(start, end))
    assert [(row["device"], row["seq"]) for row in found] == [
        *[("a", n) for n in range(1, 11)],
        *[("b", n) for n in range(1, 5)],
    ]
    assert stream.latestOffset(end, stream.getDefaultReadLimit()) == end
    fleet[1].cancel(2)
    again = stream.latestOffset(end, stream.getDefaultReadLimit())
    assert at(again) == [10, 6]
    assert seqs(rows(stream, stream.partitions(end, again))) == [5, 6]


def test_the_status_of_a_query_tells_what_is_still_to_come(
    fleet: tuple[Served, Served], tmp_path: Path
) -> None:
    stream = streaming(fleet, maxRecordsPerBatch="3")
    start = stream.initialOffset()
    assert sum(at(stream.latestOffset(start, stream.getDefaultReadLimit()))) == 3
    assert at(stream.reportLatestOffset()) == [10, 4]
    fleet[1].cancel(2)
    assert at(stream.reportLatestOffset()) == [10, 6]

    # A server that is away is none of this status, and stops no query.
    past(tmp_path / "c", 1, 2, device="c")
    with served(tmp_path / "c") as brief:
        alone = streaming((brief,))
        assert at(alone.reportLatestOffset()) == [2]
    assert alone.reportLatestOffset() is None


def test_options_select_records_of_a_stream_too(fleet: tuple[Served, Served]) -> None:
    stream = streaming(fleet, type="t1", outcome="completed")
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    found = rows(stream, stream.partitions(start, end))
    assert {(row["type"], row["outcome"]) for row in found} == {("t1", "completed")}
    every = [server.call("GET", "/history?limit=100")["records"] for server in fleet]
    kept = [r for each in every for r in each if (r["type"], r["outcome"]) == ("t1", "completed")]
    assert found == kept


def test_a_limit_holds_over_all_servers(fleet: tuple[Served, Served]) -> None:
    stream = streaming(fleet, maxRecordsPerBatch="6")
    offset = stream.initialOffset()
    steps = []
    for _ in range(4):
        offset = stream.latestOffset(offset, stream.getDefaultReadLimit())
        steps.append(at(offset))
    assert steps == [[3, 3], [8, 4], [10, 4], [10, 4]]


def test_it_may_begin_behind_what_there_is(fleet: tuple[Served, Served]) -> None:
    stream = streaming(fleet, startingFrom="latest")
    assert at(stream.initialOffset()) == [10, 4]


def test_all_that_was_there_is_read_when_it_is_to_stop_then(fleet: tuple[Served, Served]) -> None:
    stream = streaming(fleet)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    fleet[0].cancel(3)
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert at(end) == [10, 4]


def test_a_server_that_is_down_delays_its_own_data_only(tmp_path: Path) -> None:
    port = free_port()
    past(tmp_path / "a", 1, 3, device="a")
    past(tmp_path / "b", 1, 3, device="b")
    with served(tmp_path / "a") as one:
        with served(tmp_path / "b", port=port) as other:
            stream = streaming((one, other), onUnavailable="skip")
            start = stream.initialOffset()
            first = stream.latestOffset(start, stream.getDefaultReadLimit())
        one.cancel(2)
        with pytest.raises(SourceError, match="onUnavailable=skip goes on"):
            streaming((one, other)).latestOffset(first, stream.getDefaultReadLimit())
        second = stream.latestOffset(first, stream.getDefaultReadLimit())
        assert (at(first), at(second)) == ([3, 3], [5, 3])
        with served(tmp_path / "b", port=port) as other:
            other.cancel(1)
            third = stream.latestOffset(second, stream.getDefaultReadLimit())
            assert at(third) == [5, 4]
            assert seqs(rows(stream, stream.partitions(second, third))) == [4]


def test_a_server_that_comes_later_begins_where_the_offset_says(tmp_path: Path) -> None:
    port = free_port()
    past(tmp_path / "a", 1, 3, device="a")
    past(tmp_path / "b", 1, 3, device="b")
    with served(tmp_path / "a") as one:
        with served(tmp_path / "b", port=port) as other:
            pass
        stream = streaming((one, other), onUnavailable="skip")
        start = stream.initialOffset()
        assert list(start["servers"]) == [one.url]
        with served(tmp_path / "b", port=port) as other:
            end = stream.latestOffset(start, stream.getDefaultReadLimit())
            parts = stream.partitions(start, end)
            # The same when the batch is planned again, by a reader that knows nothing.
            again = streaming((one, other)).partitions(start, end)
            assert [vars(part) for part in parts] == [vars(part) for part in again]
            assert [r["device"] for r in rows(stream, parts)] == ["a"] * 3 + ["b"] * 3
            third = stream.latestOffset(end, stream.getDefaultReadLimit())
            assert stream.partitions(end, third) == []


def test_another_database_at_the_address_stops_the_stream(tmp_path: Path) -> None:
    past(tmp_path / "a", 1, 3)
    past(tmp_path / "b", 1, 3)
    port = free_port()
    with served(tmp_path / "a", port=port) as one:
        stream = streaming((one,))
        start = stream.initialOffset()
        end = stream.latestOffset(start, stream.getDefaultReadLimit())
    with served(tmp_path / "b", port=port):
        with pytest.raises(SourceError, match="has another database than before"):
            stream.latestOffset(end, stream.getDefaultReadLimit())
        with pytest.raises(SourceError, match="has another database than before"):
            rows(stream, stream.partitions(start, end))


def test_records_that_were_lost_stop_the_stream_unless_that_is_permitted(tmp_path: Path) -> None:
    past(tmp_path / "a", 4, 5)
    with served(tmp_path / "a", history_max_records=10) as one:
        stream = streaming((one,), maxRecordsPerBatch="5")
        start = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
        one.cancel(1)  # with which the oldest records go
        with pytest.raises(SourceError, match=r"has no records 6 to 1\d any more"):
            stream.latestOffset(start, stream.getDefaultReadLimit())
        lenient = streaming((one,), failOnDataLoss="false")
        end = lenient.latestOffset(start, lenient.getDefaultReadLimit())
        found = seqs(rows(lenient, lenient.partitions(start, end)))
        assert found == list(range(found[0], 22))
        assert found[0] == one.call("GET", "/history")["min_seq"] > 10


def test_records_that_go_between_the_plan_of_a_batch_and_its_read_are_lost_too(
    tmp_path: Path,
) -> None:
    """As when a query is started again that was killed within a batch, after the retention."""
    past(tmp_path / "a", 4, 5)
    with served(tmp_path / "a", history_max_records=10) as one:
        stream = streaming((one,), maxRecordsPerBatch="5", recordsPerPartition="6")
        start = stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())
        end = streaming((one,)).latestOffset(start, None)
        asked = batch(one, after="0")
        planned = asked.partitions()
        one.cancel(1)
        oldest = one.call("GET", "/history")["min_seq"]
        assert oldest > 10
        remedy = rf"after={oldest - 1}, and count .* lost \(failOnDataLoss=false does that\)"
        with pytest.raises(SourceError, match=remedy):
            rows(stream, stream.partitions(start, end))
        with pytest.raises(SourceError, match=remedy):
            rows(asked, planned)
        lenient = streaming((one,), failOnDataLoss="false", recordsPerPartition="6")
        found = rows(lenient, lenient.partitions(start, end))
        assert seqs(found) == list(range(oldest, 21))


def test_a_read_from_the_oldest_record_on_begins_with_the_one_that_is_there(
    tmp_path: Path,
) -> None:
    """Retention goes on while a read is planned, so the oldest record goes at any time."""
    past(tmp_path / "a", 4, 5)
    with served(tmp_path / "a", history_max_records=10) as one:
        alone, stream = batch(one, recordsPerPartition="6"), streaming((one,))
        start = stream.initialOffset()
        end = stream.latestOffset(start, stream.getDefaultReadLimit())
        nothing: Any = {"servers": {}}
        joining = stream.latestOffset(nothing, stream.getDefaultReadLimit())
        planned = alone.partitions()
        one.cancel(1)
        oldest = one.call("GET", "/history")["min_seq"]
        assert oldest > 10
        assert seqs(rows(alone, planned)) == list(range(oldest, 21))
        for first, last in ((start, end), (nothing, joining)):
            found = rows(stream, stream.partitions(first, last))
            assert seqs(found) == list(range(oldest, 21))
        later = stream.latestOffset(start, stream.getDefaultReadLimit())
        assert seqs(rows(stream, stream.partitions(start, later))) == list(range(oldest, 22))


def test_a_gap_amid_the_history_stops_a_read_unless_that_is_permitted(tmp_path: Path) -> None:
    past(tmp_path / "a", 4, 5)
    with closing(sqlite3.connect(tmp_path / "a" / "zq.db")) as store, store:
        # As where a batch was unreadable, and was set aside.
        store.execute("DELETE FROM log_batches WHERE last_seq = 10")
    with served(tmp_path / "a") as one:
        strict = batch(one, recordsPerPartition="7")
        with pytest.raises(SourceError, match=r"the record 10 is damaged, .* the next one is 11"):
            rows(strict, strict.partitions())
        lenient = streaming((one,), failOnDataLoss="false", recordsPerPartition="7")
        start = lenient.initialOffset()
        end = lenient.latestOffset(start, lenient.getDefaultReadLimit())
        found = rows(lenient, lenient.partitions(start, end))
        assert seqs(found) == [*range(1, 10), *range(11, 21)]


def test_a_server_that_lacks_records_which_it_had_is_told_from_another_database(
    lab: Served,
) -> None:
    reader = batch(lab)
    (part,) = reader.partitions()
    assert isinstance(part, HistoryRange)
    part.until = 200
    with pytest.raises(SourceError, match="it had record 200, and its last is 100"):
        rows(reader, [part])


def test_an_older_spark_gets_batches_of_a_size_too(fleet: tuple[Served, Served]) -> None:
    urls = ",".join(server.url for server in fleet)
    stream = CappedStream(parse({"urls": urls, "maxRecordsPerBatch": "6"}), HISTORY)
    start = stream.initialOffset()
    end = stream.latestOffset()
    assert at(end) == [3, 3]
    # After a restart Spark shows the reader where the stream is.
    fresh = CappedStream(parse({"urls": urls, "maxRecordsPerBatch": "6"}), HISTORY)
    assert fresh.partitions(end, end) == []
    rest = fresh.latestOffset()
    found = rows(fresh, fresh.partitions(end, rest))
    assert [(row["device"], row["seq"]) for row in found] == [
        *[("a", n) for n in range(4, 9)],
        ("b", 4),
    ]
    assert len(rows(stream, stream.partitions(start, end))) == 6
