"""Lakes of Delta tables, beyond what the tests of crashes show of them."""

import gzip
from pathlib import Path

from pyspark.sql import SparkSession

from spark.fleet import history, rows
from zq.spark.delta import Delta
from zq.spark.pipeline import Options, open_lake, run
from zq.spark.progress import Progress
from zq.spark.tables import BRONZE, HISTORY, HOURLY, REJECTED

DELTA = Options(format=Delta.name)


def test_a_run_that_brings_no_record_changes_no_table_but_the_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.ndjson.gz").write_bytes(gzip.compress(b"not JSON\n"))
    path = str(tmp_path / "lake")

    run(spark, [str(tmp_path / "in")], path, Progress(print), DELTA)

    lake = open_lake(spark, path, Delta.name)
    assert [row["line"] for row in lake.read(REJECTED).collect()] == ["not JSON"]
    assert lake.read(BRONZE).count() == lake.read(HOURLY).count() == 0
    assert lake.files.folders(lake.path) == ["_zq", "rejected"]


def test_partitions_are_found_by_their_names(spark: SparkSession, tmp_path: Path) -> None:
    lake = open_lake(spark, str(tmp_path / "lake"), Delta.name)
    devices = ("007", "a/b", "x=[1]%2F", "été #1")
    records = [record for device in devices for record in history(device, 2, seed=1)]
    made = spark.createDataFrame(rows(records), HISTORY)
    transaction = lake.begin("bronze")
    written = transaction.write(BRONZE, made.selectExpr("*", "date'2026-01-05' date"))
    transaction.add(BRONZE, written)
    transaction.commit(0)

    found = [
        {row["device"] for row in lake.format.read_partitions(BRONZE, [partition]).collect()}
        for partition in written.partitions()
    ]
    assert sorted(map(sorted, found)) == sorted([device] for device in devices)
    every = lake.format.read_partitions(BRONZE, written.partitions())
    assert {row["device"] for row in every.collect()} == set(devices)
