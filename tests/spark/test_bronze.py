"""Odd segments: broken lines, half copied files, strange names and clocks."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark.fleet import HOUR, MONDAY, history, write_segment
from spark.test_crash import check
from zq.features.history.model import OUTCOMES, AttemptOutcome, HistoryRecord
from zq.spark.errors import PipelineError
from zq.spark.pipeline import PipelineOptions, open_lake, run
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


def test_what_is_no_record_is_put_aside_and_the_rest_is_taken(
    spark: SparkSession, tmp_path: Path
) -> None:
    said: list[str] = []
    more = {**GOOD, "seq": 9, "a field of tomorrow": 1}
    write_lines(tmp_path / "in" / "x.ndjson.gz", [*BAD, json.dumps(GOOD), json.dumps(more)])

    run(spark, [str(tmp_path / "in")], str(tmp_path / "lake"), RunProgress(said.append))

    lake = open_lake(spark, str(tmp_path / "lake"))
    rejected = lake.read(REJECTED).collect()
    assert [row["seq"] for row in lake.read(BRONZE).orderBy("seq").collect()] == [GOOD["seq"], 9]
    assert {row["source"] for row in rejected} == {"x.ndjson.gz"}
    assert len(rejected) == len(BAD)
    assert {"not JSON", BAD[1], BAD[2]} < {row["line"] for row in rejected}
    assert "7 lines are not records: see rejected in the lake" in said[0]


def test_a_segment_that_is_being_copied_waits_for_the_next_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    said: list[str] = []
    sources, path = tmp_path / "in", str(tmp_path / "lake")
    segment = write_segment(sources, history("edge-1", 20, seed=1))
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-100])

    run(spark, [str(sources)], path, RunProgress(said.append))
    assert said[0].endswith(
        "does not have the size that its manifest says: it is left for the next run"
    )
    assert segment.name in said[0]
    segment.write_bytes(whole)
    run(spark, [str(sources)], path, RunProgress(said.append))

    check(open_lake(spark, path), history("edge-1", 20, seed=1))


def test_another_target_changes_the_workers_needed_of_every_hour_and_no_sum(
    spark: SparkSession, tmp_path: Path
) -> None:
    said: list[str] = []
    sources, path = tmp_path / "in", str(tmp_path / "lake")
    records = history("edge-1", 20, seed=1)
    write_segment(sources, records)
    run(spark, [str(sources)], path, RunProgress(print))
    run(spark, [str(sources)], path, RunProgress(said.append), PipelineOptions(target_ms=0))

    lake = open_lake(spark, path)
    check(lake, records)
    for table in (HOURLY, QUEUES):
        assert {row["target_ms"] for row in lake.read(table).collect()} == {0}
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


DEVICES = ("007", "a/b", "x=[1]%2F", "été #1", "__HIVE_DEFAULT")
TIMES = st.one_of(
    st.integers(MONDAY, MONDAY + 30 * HOUR),
    st.sampled_from([0, 1, MONDAY - 1, 4_102_444_800_000]),
)


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
            "enqueued_at": draw(TIMES),
            "ready_at": draw(TIMES),
            "dequeued_at": draw(TIMES) if ran else None,
            "finished_at": draw(TIMES),
            "error_message": draw(st.one_of(st.none(), st.text(max_size=5))),
            "payload_bytes": draw(st.integers(0, 2**40)),
            "priority": 0,
        }
        records.append(HistoryRecord(**{**record, "outcome": AttemptOutcome(record["outcome"])}))
    parts = draw(st.lists(st.lists(st.sampled_from(records), min_size=1), max_size=3))
    return [*parts, records]


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(history=batches())
def test_sums_of_gold_equal_counts_of_bronze(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    history: list[list[HistoryRecord]],
) -> None:
    folder = tmp_path_factory.mktemp("property")
    for number, part in enumerate(history):
        write_lines(
            folder / "in" / f"{number}.ndjson.gz",
            [msgspec.json.encode(record).decode() for record in part],
        )
        if number in (0, len(history) - 1):
            run(spark, [str(folder / "in")], str(folder / "lake"), RunProgress(print))

    lake = open_lake(spark, str(folder / "lake"))
    bronze = lake.read(BRONZE).collect()
    outcomes = Counter(row["outcome"] for row in bronze)
    names = ("attempts", "arrivals", "waits", *OUTCOMES)
    sums = lake.read(FACTS).agg(*(F.sum(name).alias(name) for name in names)).collect()[0]
    measured = lake.read(HISTOGRAMS).groupBy("measure").agg(F.sum("count").alias("n"))
    assert {(row["device"], row["seq"]) for row in bronze} == {
        (record.device, record.seq) for record in history[-1]
    }
    assert len(bronze) == len(history[-1]) == sums["attempts"]
    assert {name: sums[name] for name in OUTCOMES if sums[name]} == outcomes
    assert {row["n"] for row in measured.collect()} <= {sums["waits"]}
    assert lake.read(JOBS).agg(F.sum("attempts")).collect()[0][0] == len(bronze)
    told = sum(row["error_message"] is not None for row in bronze)
    assert (lake.read(ERRORS).agg(F.sum("count")).collect()[0][0] or 0) == told
