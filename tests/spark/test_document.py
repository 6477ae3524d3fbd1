"""The Python of docs/spark.md, run as it is printed."""

from pathlib import Path
from typing import Any

from documents import SERVER, code
from pyspark.sql import SparkSession

from .served import past, served


def test_the_example_reads_streams_and_writes(spark: SparkSession, tmp_path: Path) -> None:
    past(tmp_path / "data", 2, 10)
    with served(tmp_path / "data") as server:
        example = code("spark").replace(SERVER, server.url)
        example = example.replace("http://edge-1:7890", server.url)
        names: dict[str, Any] = {
            "spark": spark,
            "jobs": spark.createDataFrame([('{"to": "ann"}',)], ["payload"]),
        }
        exec(compile(example, "docs/spark.md", "exec"), names)

        assert names["history"].count() == 20
        assert names["stream"].isStreaming
        assert server.call("GET", "/jobs/count?queue=mail&type=welcome") == {"count": 1}
