"""The next run completes a run that was killed anywhere: nothing is lost or doubled."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tiers import sizes

from spark.expected import facts
from spark.faults import Killed, Point, mortal
from spark.fleet import history, write_segment, write_segments
from zq.features.history.model import HistoryRecord
from zq.spark.errors import LakeChanged, LakeUnknown
from zq.spark.pipeline import lake as lake_module
from zq.spark.pipeline import open_lake, run
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.ledger import SNAPSHOT_EVERY, LakeCommit, Ledger, TableChange
from zq.spark.pipeline.progress import RunProgress
from zq.spark.pipeline.steps import FOLLOWS
from zq.spark.pipeline.tables import (
    ATTEMPTS,
    BRONZE,
    ERRORS,
    FACT_SUMS,
    FACTS,
    HISTOGRAMS,
    HOURLY,
    JOBS,
)


def check(lake: Lake, records: list[HistoryRecord]) -> None:
    """The lake has exactly what follows from these records."""
    names = Counter((record.epoch, record.seq) for record in records)
    for table in (BRONZE, ATTEMPTS):
        found = Counter(tuple(row) for row in lake.read(table).select("epoch", "seq").collect())
        assert found == names, table.name
    jobs = Counter(row["job_id"] for row in lake.read(JOBS).select("job_id").collect())
    assert jobs == Counter({record.job_id for record in records})
    for table in (FACTS, HOURLY):
        rows = lake.read(table).withColumn("hour", F.unix_millis("hour")).collect()
        assert len(rows) == len({(row["hour"], row["queue"], row["type"]) for row in rows})
        assert {
            (row["hour"], row["queue"], row["type"]): +Counter(
                {name: row[name] for name in FACT_SUMS}
            )
            for row in rows
        } == facts(records), table.name
    waits = lake.read(HISTOGRAMS).where("measure = 'wait'").agg(F.sum("count")).collect()[0][0]
    assert (waits or 0) == sum(each["waits"] for each in facts(records).values())
    errors = lake.read(ERRORS).agg(F.sum("count")).collect()[0][0]
    assert (errors or 0) == sum(record.error_type is not None for record in records)


def aside(lake: Lake) -> list[str]:
    return lake.files.folders(f"{lake.path}/_zq/aside")


DEATHS: list[tuple[str, Point]] = [
    ("bronze", "before"),
    ("bronze", "amid"),
    ("attempts", "after"),
    ("jobs", "amid"),
    ("gold", "before"),
    ("gold", "amid"),
    ("summary", "after"),
]


# All steps commit in one way: every run tries three of them, with each point once.
@sizes("every", 3, 1)
def test_a_run_that_dies_over_and_over_ends_with_the_same_lake(
    every: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die() -> None:
        raise Killed

    sources, path = tmp_path / "in", str(tmp_path / "lake")
    records = history("edge-1", 80, seed=5)
    half = len(records) // 2
    write_segments(sources, records[:half], 30)
    run(spark, [str(sources)], path, RunProgress(print))
    write_segments(sources, records[half - 10 :], 30)

    for step, point in DEATHS[::every]:
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(lake_module, "Files", mortal(step, point, die))
            run(spark, [str(sources)], path, RunProgress(print))
    said: list[str] = []
    run(spark, [str(sources)], path, RunProgress(said.append))

    lake = open_lake(spark, path)
    check(lake, records)
    # The last of them had done everything but to put its files in place.
    assert said == ["no new segments; 5 are in the lake already"]
    assert aside(lake) == []


@pytest.mark.long  # Java starts for it, which is then killed
@pytest.mark.parametrize("point", ["before", "after"])
def test_a_driver_that_is_killed_between_sink_and_ledger_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, point: Point
) -> None:
    sources, path = tmp_path / "in", tmp_path / "lake"
    records = history("edge-1", 40, seed=6)
    write_segments(sources, records, 30)
    child = subprocess.run(
        [sys.executable, "-m", "spark.mortal", sources, path, "bronze", point],
        cwd=Path(__file__).parent.parent,
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr

    left = Lake(spark, str(path), FOLLOWS)
    assert len(aside(left)) == 1
    assert left.state.head == (0 if point == "before" else 1)
    assert not (path / "bronze").exists()
    run(spark, [str(sources)], str(path), RunProgress(print))

    lake = open_lake(spark, str(path))
    check(lake, records)
    assert aside(lake) == []


def test_a_lake_of_another_format_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "lake")
    lake = open_lake(spark, path)
    text = msgspec.json.encode(commit(1)).decode().replace('"parquet"', '"delta"')
    lake.files.create(f"{lake.path}/_zq/commits/000000000001.commit.json", text)

    with pytest.raises(
        LakeUnknown, match=r"1\.commit\.json is not a record .* 'delta'.*another lake"
    ):
        open_lake(spark, path)


def commit(number: int, step: str = "bronze") -> LakeCommit:
    change = TableChange({"file": "file"}, (), 0)
    return LakeCommit(number, step, f"{number:012}-0", 0, {"bronze": change})


def test_of_two_runs_at_once_one_is_told_and_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    sources, path = tmp_path / "in", str(tmp_path / "lake")
    write_segment(sources, history("edge-1", 5, seed=1))
    slow = Lake(spark, path, FOLLOWS)
    open_lake(spark, path).ledger.add(commit(1))

    transaction = slow.begin("bronze")
    with pytest.raises(LakeChanged, match="another run has changed"):
        transaction.commit(0)

    assert Lake(spark, path, FOLLOWS).state.head == 1


def test_many_commits_are_kept_as_one_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, str(tmp_path / "lake"), FOLLOWS)
    ledger = lake.ledger
    for number in range(1, 2 * SNAPSHOT_EVERY + 8):
        step = "bronze" if number % 2 else "attempts"
        source = {f"segment-{number}": (1, 2)}
        ledger.add(
            msgspec.structs.replace(commit(number, step), consumed=number - 1, sources=source)
        )
        ledger.tidy()

    again = Ledger(lake.files, f"{lake.path}/_zq/commits", FOLLOWS)

    assert again.state == ledger.state
    assert again.state.head == 2 * SNAPSHOT_EVERY + 7
    assert len(again.state.sources) == again.state.head
    assert [each.id for each in again.state.waiting_for("attempts", "bronze")] == [again.state.head]
    assert len(list(lake.files.walk(f"{lake.path}/_zq/commits"))) == 8
