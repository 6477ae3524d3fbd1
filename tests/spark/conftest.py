"""One Spark session for all tests of a process, and the lake that most of them read."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.fleet import HOUR, MONDAY, history, write_segment, write_segments
from spark.sessions import quick_session
from zq.features.history.model import HistoryRecord
from zq.spark.pipeline import open_lake, run
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.progress import RunProgress
from zq.spark.pipeline.tables import Table

AHEAD = MONDAY + 99 * 24 * HOUR
"""Where the clock is that is far ahead. One event of a thousand is few enough to lie outside."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = quick_session(tmp_path_factory.mktemp("spark") / "home")
    yield session
    session.stop()


@dataclass(frozen=True)
class Golden:
    """A lake that two runs have made of a fleet's history, and what it was made of."""

    records: list[HistoryRecord]
    sources: Path
    lake: Lake
    said: list[str]
    first: dict[str, set[str]]
    """Table → its files after the first run."""

    def read(self, table: Table) -> DataFrame:
        return self.lake.read(table)


@pytest.fixture(scope="session")
def golden(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Golden:
    """A thousand events of four devices: a device as it should be, one whose clock is three days
    behind, one whose clock is set back by an hour amid a job, and one, called 007, that comes late.
    One event more is of a device whose clock is months ahead.

    The first run gets the early segments in the wrong order and some twice; the second gets the
    rest, the late device and everything of the first again.
    """
    records = {
        "plain": history("edge-1", 300, seed=1)[:300],
        "behind": history("edge-2", 300, seed=2, start=MONDAY - 72 * HOUR)[:300],
        "stepped": history("edge-3", 250, seed=3, step_back_after=20)[:250],
        "late": history("007", 200, seed=4)[:150],
        "ahead": history("edge-5", 1, seed=5, start=AHEAD)[:1],
    }
    place = tmp_path_factory.mktemp("golden")
    said, first = _run_twice(spark, place, records)
    every = [record for each in records.values() for record in each]
    assert len(every) == 1_001
    return Golden(every, place / "in", open_lake(spark, str(place / "lake")), said, first)


def _run_twice(
    spark: SparkSession, place: Path, records: dict[str, list[HistoryRecord]]
) -> tuple[list[str], dict[str, set[str]]]:
    """Make the lake. Returns what the runs have said, and the files after the first."""
    sources, path = place / "in", place / "lake"
    plain, behind = records["plain"], records["behind"]
    said: list[str] = []

    write_segments(sources / "a" / "edge-1", plain[150:], 60)
    write_segments(sources / "b" / "edge-1", plain[100:200], 100)
    write_segments(sources / "a" / "edge-2", behind, 120)
    write_segment(sources / "copy", behind[:120])
    run(spark, [str(sources / "a"), str(sources / "b")], str(path), RunProgress(said.append))
    first = files_of(path)

    write_segments(sources / "a" / "edge-1", plain[:150], 50)
    write_segments(sources / "a" / "edge-3", records["stepped"], 250)
    write_segments(sources / "a" / "007", records["late"], 70)
    write_segment(sources / "a" / "edge-5", records["ahead"])
    write_segments(sources / "c" / "everything", [*plain, *plain[:30]], 40)
    folders = [str(sources / name) for name in ("a", "b", "c", "copy")]
    run(spark, folders, str(path), RunProgress(said.append))
    return said, first


def files_of(lake: Path) -> dict[str, set[str]]:
    """Table → its Parquet files, by path below it."""
    tables = ("bronze", "silver/attempts", "silver/jobs", "gold/facts", "gold/hourly")
    return {
        name: {str(file.relative_to(lake / name)) for file in (lake / name).rglob("*.parquet")}
        for name in tables
    }
