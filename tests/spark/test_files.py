"""The files of a lake, wherever it lies."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from zq.spark.pipeline import files, open_lake
from zq.spark.pipeline.tables import BRONZE, REJECTED


def test_local_files_are_found_as_hadoop_finds_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("a/x=[1]%2F/1.parquet", "a/été #1/2", "a/b c", "z", ".hidden", "_zq/1.json")
    for size, name in enumerate(names):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "empty").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "a")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    lake = files.Files(spark)
    roots = [lake.absolute(str(path)) for path in (tmp_path, tmp_path / "z", tmp_path / "none")]

    found = [[*lake.walk(root)] for root in roots]
    monkeypatch.setattr(files, "LOCAL", "no scheme")

    assert [len(each) for each in found] == [9, 1, 0]
    assert found == [[*lake.walk(root)] for root in roots]


def test_a_query_counts_the_rows_of_files_that_are_not_on_this_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = open_lake(spark, str(tmp_path)).begin("bronze")
    day = "date '2026-01-05' AS date"
    for table, rows in {
        BRONZE: spark.range(5).selectExpr("id AS seq", day, "concat('é=%2F', id % 2) AS device"),
        REJECTED: spark.range(3).selectExpr("'usb' AS source", "'nonsense' AS line"),
    }.items():
        transaction.add(table, transaction.write(table, rows))
    monkeypatch.setattr(files, "LOCAL", "no scheme")

    made = transaction.commit(0)

    assert {name: change.rows for name, change in made.tables.items()} == {
        BRONZE.name: 5,
        REJECTED.name: 3,
    }
