"""A Spark session for the pipeline, where the caller has none."""

import os
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from zq.spark.errors import JavaMissing

LOCAL = "local[*]"
SHUFFLE_PARTITIONS = max(32, 2 * (os.cpu_count() or 1))
"""In how many parts a machine of one's own divides rows. Spark's 200 cost a quarter more processor
time where little is new."""

LOGGING = Path(__file__).with_name("log4j2.properties")


def need_java() -> None:
    """Raise `JavaMissing` where Spark would find no Java."""
    home = os.environ.get("JAVA_HOME")
    if home is not None:
        if not Path(home, "bin", "java").is_file():
            raise JavaMissing
    elif shutil.which("java") is None:
        raise JavaMissing


def builder(master: str = LOCAL) -> SparkSession.Builder:
    """What the pipeline's sessions have in common; add to it and call `getOrCreate`.

    Workers run the same Python as the caller unless PYSPARK_PYTHON says otherwise: the one that
    Spark would take from the PATH may be another version, which it refuses.
    """
    need_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.Builder()
        .master(master)
        .appName("zq pipeline")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.showConsoleProgress", "false")
    )


def local_quiet(builder: SparkSession.Builder) -> SparkSession.Builder:
    """For a machine of one's own: no web pages, no network, and a log of errors only.

    In local mode the driver does all the work, so it gets the memory.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.driver.defaultJavaOptions", f"-Dlog4j2.configurationFile={LOGGING}")
        .config("spark.sql.shuffle.partitions", str(SHUFFLE_PARTITIONS))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", os.environ.get("SPARK_DRIVER_MEMORY", "4g"))
    )
