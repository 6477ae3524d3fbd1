"""Counts through `format("zq")` are right whatever Spark reuses, on every minor version of it.

Usual runs try the environment's version; `-m long` tries the others.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark import counts as trial
from spark.commands import configured
from spark.served import Served, past, served
from spark.sessions import QUICK
from spark.versions import OTHERS, OWN, VERSIONS, place

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Sixty records, a fifth of them of jobs that died; and seven jobs that wait."""
    root = tmp_path_factory.mktemp("lab") / "data"
    past(root, 6, 10)
    with served(root) as server:
        jobs = [{"queue": queue, "type": "t", "payload": 1} for queue in ("mail", *"abcdef")]
        server.call("POST", "/jobs/bulk", {"jobs": jobs})
        yield server


@pytest.fixture(scope="module")
def right(lab: Served) -> dict[str, int]:
    """What the queries have to count, worked out from the records one by one."""
    records = lab.call("GET", "/history?limit=1000")["records"]
    dead = [record for record in records if record["outcome"] == "dead"]
    done = [record for record in records if record["outcome"] == "completed"]
    assert (len(records), len(dead), len(done)) == (60, 12, 48)
    return {
        "dead": 12,
        "all": 60,
        "union": 60,
        "union of reads": 12 + sum(record["type"] == "t1" for record in records),
        "self-join": sum(record["seq"] > 10 for record in dead),
        "range": 10,
        "cached": 12,
        "done beside cached": 48,
        "union of jobs": 1 + 7,
        "stream": 2 * 60,
        "one server less": 0,
        "both again": 0,
        "switched on: dead": 12,
        "switched on: all": 60,
    }


def test_a_scan_that_is_planned_once_serves_each_query_right(
    spark: SparkSession, lab: Served, right: dict[str, int]
) -> None:
    assert trial.counts(spark, lab.url) == right
    assert spark.conf.get(trial.PUSHDOWN) == "false", "the session is as it was"


@pytest.mark.long
@pytest.mark.parametrize("version", OTHERS)
def test_it_does_so_on_other_versions_too(
    version: str, lab: Served, right: dict[str, int], tmp_path: Path
) -> None:
    assert place(version).exists(), f"PySpark {version}: python tests/spark/versions.py"
    libraries = {"spark.driver.extraClassPath": str(place(version) / "pyspark/jars/*")}
    environment = os.environ | {
        "PYTHONPATH": f"{place(version)}{os.pathsep}{ROOT}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": configured(tmp_path / "conf", QUICK | libraries),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("SPARK_HOME", None)

    ran = subprocess.run(
        [sys.executable, trial.__file__, lab.url],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"version": version, "counts": right}


def test_the_environment_has_a_version_that_is_supported() -> None:
    assert OWN in VERSIONS
