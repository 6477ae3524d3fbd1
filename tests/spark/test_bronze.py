"""Odd segments: broken lines, half copied files, strange names and clocks."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark.fleet import HOUR, MONDAY, history, write_segment
from zq.features.history.model import OUTCOMES, AttemptOutcome, HistoryRecord
from zq.spark.errors import PipelineError
from zq.spark.pipeline import PipelineOptions, open_lake, run
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.progress import RunProgress
from zq.spark.pipeline.tables import (
    BRONZE,
    ERRORS,
    FACTS,
    HISTOGRAMS,
    HOURLY,
    JOBS,
    QUEUES,
    REJECTED,
    Table,
)

GOOD = msgspec.to_builtins(history("edge-1", 1, seed=1)[0])
BAD: list[str] = [
    "not JSON",
    json.dumps(GOOD)[:-9],
    json.dumps({**GOOD, "seq": "three"}),
    json.dumps({**GOOD, "seq": 2, "outcome": "vanished"}),
    json.dumps({**GOOD, "seq": 3, "finished_at": -5}),
    json.dumps({**GOOD, "seq": 4, "dequeued_at": 10**17}),
    json.dumps({name: value for name, value in GOOD.items() if name != "epoch"}),
]


def write_lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))


MORE = {**GOOD, "seq": 9, "a field of tomorrow": 1}

DEVICES = ("007", "a/b", "x=[1]%2F", "été #1", "__HIVE_DEFAULT")

TIMES = (0, 1, MONDAY - 1, MONDAY, MONDAY + 30 * HOUR, 4_102_444_800_000)


def odd_records() -> Iterator[HistoryRecord]:
    """Devices, times and outcomes of all kinds, with clocks that disagree."""
    for seq, device, time in zip(range(1, 8), cycle(DEVICES), cycle(TIMES), strict=False):
        yield HistoryRecord(
            seq=seq,
            device=device,
            epoch=f"epoch of {device}",
            job_id=str(seq % 5),
            queue=("q", "q/2", "ü")[seq % 3],
            type=("t", "u")[seq % 2],
            attempt=1,
            outcome=AttemptOutcome(OUTCOMES[seq % len(OUTCOMES)]),
            enqueued_at=TIMES[seq % 5],
            ready_at=TIMES[seq % 4],
            dequeued_at=TIMES[seq % 6] if seq % 7 else None,
            finished_at=time,
            error_message="" if seq % 3 else None,
            payload_bytes=2**40,
            priority=0,
        )


ODD = [*odd_records()]


DAY = [each for each in history("edge-2", 20, seed=2) if each.finished_at < MONDAY + 24 * HOUR]
"""A device's records of one day, whose files are few."""


@dataclass(frozen=True)
class Taken:
    """A lake of two runs, its sources, what the runs have said, and a segment copied meanwhile."""

    lake: Lake
    sources: Path
    said: list[str]
    segment: str


@pytest.fixture(scope="module")
def taken(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Taken:
    """The first run gets lines of all kinds, and a part of a segment; the second the whole of it,
    and odd records."""
    said: list[str] = []
    folder = tmp_path_factory.mktemp("odd")
    sources, path = folder / "in", str(folder / "lake")
    segment = write_segment(sources / "copied", DAY)
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-100])
    first = [*BAD, json.dumps(GOOD), json.dumps(MORE)]
    write_lines(sources / "x.ndjson.gz", [*first, *map(line_of, ODD[:5])])
    run(spark, [str(sources)], path, RunProgress(said.append))
    segment.write_bytes(whole)
    write_lines(sources / "y.ndjson.gz", [*map(line_of, ODD[4:]), *map(line_of, ODD[:2])])
    run(spark, [str(sources)], path, RunProgress(said.append))
    return Taken(open_lake(spark, path), sources, said, segment.name)


def line_of(record: HistoryRecord) -> str:
    return msgspec.json.encode(record).decode()


def test_what_is_no_record_is_put_aside_and_the_rest_is_taken(taken: Taken) -> None:
    rejected = taken.lake.read(REJECTED).collect()
    good = taken.lake.read(BRONZE).where(F.col("epoch") == GOOD["epoch"]).orderBy("seq").collect()
    assert [row["seq"] for row in good] == [GOOD["seq"], 9]
    assert {row["source"] for row in rejected} == {"x.ndjson.gz"}
    assert len(rejected) == len(BAD)
    assert {"not JSON", BAD[1], BAD[2]} < {row["line"] for row in rejected}
    assert "7 lines are not records: see rejected in the lake" in taken.said[1]


def test_sums_of_odd_records_are_those_of_bronze(taken: Taken) -> None:
    good = msgspec.convert(GOOD, HistoryRecord)
    judge_sums(taken.lake, [*ODD, *DAY, good, msgspec.structs.replace(good, seq=9)])


def test_a_segment_that_is_being_copied_waits_for_the_next_run(taken: Taken) -> None:
    assert taken.segment in taken.said[0]
    assert taken.said[0].endswith(
        "does not have the size that its manifest says: it is left for the next run"
    )
    first, second = (line for line in taken.said if line.startswith("bronze"))
    assert "7 new records of 1 segments" in first
    assert f"{len(DAY) + 2} new records of 2 segments" in second


def test_another_target_changes_the_workers_needed_of_every_hour_and_no_sum(
    spark: SparkSession, taken: Taken
) -> None:
    said: list[str] = []
    path = taken.lake.path

    def sums(table: Table) -> list[Row]:
        return sorted(open_lake(spark, path).read(table).select(*names_of_sums(table)).collect())

    def names_of_sums(table: Table) -> list[str]:
        return [name for name in table.schema.names if name not in ("workers_needed", "target_ms")]

    before = {table: sums(table) for table in (HOURLY, QUEUES)}
    run(spark, [str(taken.sources)], path, RunProgress(said.append), PipelineOptions(target_ms=0))

    for table in (HOURLY, QUEUES):
        assert sums(table) == before[table]
        rows = open_lake(spark, path).read(table).select("target_ms").collect()
        assert {row["target_ms"] for row in rows} == {0}
    assert [line.split()[0] for line in said] == ["no", "summary"]


def test_a_broken_segment_is_named_and_nothing_is_taken(
    spark: SparkSession, tmp_path: Path
) -> None:
    sources, path = tmp_path / "in", str(tmp_path / "lake")
    segment = write_segment(sources, history("edge-1", 200, seed=1))
    (sources / "manifest.json").unlink()
    segment.write_bytes(segment.read_bytes()[:-500])

    with pytest.raises(PipelineError, match=segment.name):
        run(spark, [str(sources)], path, RunProgress(print))

    assert open_lake(spark, path).state.head == 0


DRAWN_TIMES = st.one_of(st.integers(MONDAY, MONDAY + 30 * HOUR), st.sampled_from(TIMES))


@st.composite
def batches(draw: st.DrawFn) -> list[list[HistoryRecord]]:
    """Segments of whatever may have happened, in any order and some of it twice."""
    records = []
    for number in range(draw(st.integers(1, 25))):
        ran = draw(st.booleans())
        record: dict[str, Any] = {
            "seq": number + 1,
            "device": (device := draw(st.sampled_from(DEVICES))),
            "epoch": f"epoch of {device}",
            "job_id": str(draw(st.integers(0, 9))),
            "queue": draw(st.sampled_from(["q", "q/2", "ü"])),
            "type": draw(st.sampled_from(["t", "u"])),
            "attempt": 1,
            "outcome": draw(st.sampled_from(OUTCOMES)),
            "enqueued_at": draw(DRAWN_TIMES),
            "ready_at": draw(DRAWN_TIMES),
            "dequeued_at": draw(DRAWN_TIMES) if ran else None,
            "finished_at": draw(DRAWN_TIMES),
            "error_message": draw(st.one_of(st.none(), st.text(max_size=5))),
            "payload_bytes": draw(st.integers(0, 2**40)),
            "priority": 0,
        }
        records.append(HistoryRecord(**{**record, "outcome": AttemptOutcome(record["outcome"])}))
    parts = draw(st.lists(st.lists(st.sampled_from(records), min_size=1), max_size=3))
    return [*parts, records]


@pytest.mark.long
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(history=batches())
def test_sums_of_gold_equal_counts_of_bronze(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    history: list[list[HistoryRecord]],
) -> None:
    folder = tmp_path_factory.mktemp("property")
    for number, part in enumerate(history):
        write_lines(folder / "in" / f"{number}.ndjson.gz", [*map(line_of, part)])
        if number in (0, len(history) - 1):
            run(spark, [str(folder / "in")], str(folder / "lake"), RunProgress(print))

    judge_sums(open_lake(spark, str(folder / "lake")), history[-1])


def judge_sums(lake: Lake, records: list[HistoryRecord]) -> None:
    """Bronze has these records, and gold counts each of them once."""
    bronze = lake.read(BRONZE).collect()
    outcomes = Counter(row["outcome"] for row in bronze)
    names = ("attempts", "arrivals", "waits", *OUTCOMES)
    sums = lake.read(FACTS).agg(*(F.sum(name).alias(name) for name in names)).collect()[0]
    measured = lake.read(HISTOGRAMS).groupBy("measure").agg(F.sum("count").alias("n"))
    assert {(row["device"], row["seq"]) for row in bronze} == {
        (record.device, record.seq) for record in records
    }
    assert len(bronze) == len(records) == sums["attempts"]
    assert {name: sums[name] for name in OUTCOMES if sums[name]} == outcomes
    assert {row["n"] for row in measured.collect()} <= {sums["waits"]}
    assert lake.read(JOBS).agg(F.sum("attempts")).collect()[0][0] == len(bronze)
    told = sum(row["error_message"] is not None for row in bronze)
    assert (lake.read(ERRORS).agg(F.sum("count")).collect()[0][0] or 0) == told
