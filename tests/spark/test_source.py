"""`format("zq")` through Spark: reads, streams and writes as users write them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conformance.keyed import secret, write_keys
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import zq.spark
from zq.spark.source.reading import HISTORY

from .served import Served, past, served


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    zq.spark.register(spark)
    return spark


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("source")


@pytest.fixture(scope="module")
def lab(root: Path) -> Iterator[Served]:
    """Sixty records, a fifth of them of jobs that died; it lets nobody in without a key."""
    past(root / "data", 6, 10)
    with served(root / "data", keys=write_keys(root / "keys")) as server:
        yield server


def read(session: SparkSession, server: Served, **given: object) -> DataFrame:
    options = {"url": server.url, "token": secret("root"), **given}
    return session.read.format("zq").options(**{n: str(v) for n, v in options.items()}).load()


def test_a_read_without_options_is_the_history(session: SparkSession, lab: Served) -> None:
    history = read(session, lab, recordsPerPartition=25)
    assert history.schema == HISTORY
    every = lab.call("GET", "/history?limit=1000", token=secret("root"))["records"]
    assert [row.asDict() for row in history.orderBy("seq").collect()] == every


def test_bounds_of_a_batch_are_refused_for_a_stream(session: SparkSession, lab: Served) -> None:
    stream = session.readStream.format("zq").option("url", lab.url).option("until", 7)
    query = stream.load().writeStream.format("noop").trigger(availableNow=True).start()
    with pytest.raises(PySparkException, match="a stream has startingFrom"):
        query.awaitTermination(120)


def test_jobs_are_listed_with_filters(session: SparkSession, lab: Served) -> None:
    jobs = [
        {"queue": f"list-{n % 2}", "type": "t", "payload": {"n": n}, "priority": n}
        for n in range(20)
    ]
    lab.call("POST", "/jobs/bulk", {"jobs": jobs}, token=secret("root"))
    table = read(session, lab, table="jobs", partitions=3)
    found = table.where((F.col("queue") == "list-1") & (F.col("priority") >= 11)).collect()
    assert sorted(row.priority for row in found) == [11, 13, 15, 17, 19]
    assert {row.payload for row in found} == {f'{{"n": {n}}}' for n in (11, 13, 15, 17, 19)}
    assert {row.status for row in found} == {"ready"}


def checkpoint_text(folder: Path) -> str:
    return "".join(file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file())


def test_a_stream_goes_on_where_it_stopped_and_keeps_no_secret(
    session: SparkSession, lab: Served, tmp_path: Path
) -> None:
    seen: list[tuple[int, list[int]]] = []

    def sink(rows: DataFrame, batch: int) -> None:
        seen.append((batch, sorted(row.seq for row in rows.select("seq").collect())))

    def run() -> None:
        stream = session.readStream.format("zq").option("url", lab.url)
        stream = stream.option("token", secret("root")).option("maxRecordsPerBatch", 40)
        query = (
            stream.load()
            .writeStream.foreachBatch(sink)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    run()
    assert [len(batch) for _, batch in seen] == [40, 20]
    lab.call(
        "POST",
        "/jobs/bulk",
        {"jobs": [{"queue": "later", "type": "t", "payload": 1}] * 3},
        token=secret("root"),
    )
    lab.call("POST", "/jobs/cancel?queue=later", token=secret("root"))
    run()
    assert [seq for _, batch in seen for seq in batch] == list(range(1, 64))
    text = checkpoint_text(tmp_path / "checkpoint")
    assert lab.url in text
    assert secret("root") not in text


def numbers(session: SparkSession, count: int, queue: str) -> DataFrame:
    payload = F.struct(F.col("id").alias("n"))
    return session.range(0, count, numPartitions=3).select(
        F.lit(queue).alias("queue"), F.lit("t").alias("type"), payload.alias("payload")
    )


def stored(server: Served, queue: str) -> list[int]:
    path = f"/jobs?queue={queue}&limit=2000"
    return sorted(j["payload"]["n"] for j in server.call("GET", path, token=secret("root"))["jobs"])


def write(rows: DataFrame, server: Served, **given: Any) -> None:
    options = {"url": server.url, "token": secret("root"), **given}
    rows.write.format("zq").options(**options).mode("append").save()


def test_a_write_that_is_run_again_by_its_name_adds_nothing(
    session: SparkSession, lab: Served
) -> None:
    for _ in range(2):
        write(numbers(session, 100, "batch"), lab, writeId="nightly", batchSize="30")
    assert stored(lab, "batch") == list(range(100))
    with pytest.raises(PySparkException, match=r"rows are not jobs: row 0 .*must not contain ','"):
        write(numbers(session, 3, "x").withColumn("type", F.lit("a,b")).limit(1), lab)


def test_a_micro_batch_that_runs_again_adds_nothing_and_the_checkpoint_has_no_secret(
    session: SparkSession, lab: Served, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    numbers(session, 40, "stream").write.parquet(str(source))

    def run() -> None:
        rows = session.readStream.schema(numbers(session, 1, "stream").schema).parquet(str(source))
        query = (
            rows.writeStream.format("zq")
            .options(url=lab.url, token=secret("root"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    run()
    assert stored(lab, "stream") == list(range(40))
    # As after a death between the sink and the commit.
    for file in (tmp_path / "checkpoint" / "commits").iterdir():
        file.unlink()
    run()
    assert stored(lab, "stream") == list(range(40))
    assert secret("root") not in checkpoint_text(tmp_path / "checkpoint")


def test_a_read_that_is_used_again_has_the_same_records_and_the_jobs_of_then(
    session: SparkSession, lab: Served
) -> None:
    history = read(session, lab)
    jobs = read(session, lab, table="jobs", queue="again")
    first = history.count()
    assert jobs.count() == 0
    entries = [{"queue": "again", "type": "t", "payload": 1}] * 3
    lab.call("POST", "/jobs/bulk", {"jobs": entries}, token=secret("root"))
    assert jobs.count() == 3
    lab.call("POST", "/jobs/cancel?queue=again", token=secret("root"))
    assert history.count() == first
    assert read(session, lab).count() == first + 3
