"""The pipeline on a cluster: the same command, executors in other processes, the same lake."""

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from spark.cluster import cluster, executors
from spark.commands import configured, zq
from spark.fleet import history, write_segments
from spark.served import past, served
from spark.sessions import JAVA, QUICK
from zq.spark.pipeline import open_lake, run
from zq.spark.pipeline.progress import RunProgress
from zq.spark.pipeline.tables import ATTEMPTS, BRONZE, ERRORS, HOURLY, JOBS, Table

WORKERS = 2
NEARBY = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    # Each worker gets a part.
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.extraJavaOptions": JAVA,
}


def rows(spark: SparkSession, lake: Path, table: Table) -> list[Row]:
    return sorted(open_lake(spark, str(lake)).read(table).collect(), key=repr)


@pytest.mark.long  # six times Java
def test_a_cluster_makes_the_lake_that_one_machine_makes(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_segments(tmp_path / "usb", history("edge-1", 60, seed=5), 20)
    past(tmp_path / "data", ticks=4, per_tick=10)
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    with served(tmp_path / "data") as server, cluster(tmp_path, WORKERS) as master:
        recorded = len(server.call("GET", "/history?after=0")["records"])
        origins = [str(tmp_path / "usb"), server.url]
        run(spark, origins, str(alone), RunProgress(lambda _: None))

        conf = configured(tmp_path / "conf", QUICK | NEARBY)
        names = [word for origin in origins for word in ("--from", origin)]
        ran = zq("run", *names, "--lake", shared, "--master", master, SPARK_CONF_DIR=conf)

    assert ran.returncode == 0, ran.stderr
    assert f"{recorded} new records of batch 0 of servers" in ran.stderr
    for table in (BRONZE, ATTEMPTS, JOBS, HOURLY, ERRORS):
        assert rows(spark, shared, table) == rows(spark, alone, table), table.name
    for number in range(WORKERS):
        assert executors(tmp_path / f"worker-{number}")
