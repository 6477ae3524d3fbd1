"""The pipeline fed by servers: what is new of each, once, beside what comes by export."""

from pathlib import Path

from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from zq.cli import main
from zq.client.export import Directory, export
from zq.client.history import HistoryReader
from zq.spark import servers
from zq.spark.pipeline import Options, open_lake, run
from zq.spark.progress import Progress
from zq.spark.tables import BRONZE, HOURLY

from .served import past, served


def test_a_lake_takes_what_is_new_of_each_server_and_nothing_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One run of both servers, one of what came later, one of segments with all of it again."""
    past(tmp_path / "a", 2, 10, device="edge-a")
    past(tmp_path / "b", 1, 10, device="edge-b")
    lake = str(tmp_path / "lake")
    said: list[str] = []
    progress = Progress(said.append)
    with served(tmp_path / "a", device="edge-a") as one, served(tmp_path / "b") as other:
        urls = [one.url, other.url]
        servers.run(spark, urls, lake, progress, Options())
        one.cancel(5)
        servers.run(spark, urls, lake, progress, Options())
        reader = HistoryReader(one.url)
        with Directory(tmp_path / "out") as directory:
            export(
                reader,
                directory,
                since=None,
                most_records=10,
                progress=lambda done, total: None,
            )
        reader.close()
    run(spark, [str(tmp_path / "out")], lake, progress)
    there = open_lake(spark, lake)
    rows = there.read(BRONZE).select("device", "seq", "source").collect()
    names = sorted((row.device, row.seq) for row in rows)
    assert names == [("edge-a", n) for n in range(1, 26)] + [("edge-b", n) for n in range(1, 11)]
    assert {row.source for row in rows} == {"server of edge-a", "server of edge-b"}
    assert there.read(HOURLY).agg(F.sum("attempts")).first() == (35,)
    assert sum("new records of 2 servers" in text for text in said) >= 2


def test_a_run_wants_something_to_read() -> None:
    result = CliRunner().invoke(main, ["pipeline", "run", "--lake", "lake"])
    assert result.exit_code == 2
    assert "give --from DIR, or --server URL, or both" in result.stderr
