"""How tests run Spark."""

import os
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from zq.spark.session import builder, local_quiet

JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    " -XX:ReservedCodeCacheSize=200m -XX:MetaspaceSize=256m -Xms400m -Xmn256m"
    " -XX:-UsePerfData -Djdk.lang.Process.launchMechanism=VFORK"
    " -Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.BasicContextSelector"
)
"""Options of Java with which a short life is cheap: it compiles only quickly, and takes the
bytecode of Spark's thousands of classes for valid, which is a fifth of what a session costs. There
is room for all that it compiles, loads and makes for a moment, so it seldom sweeps. What it starts,
it starts at once, and not by a helper. Loggers, of which Spark makes thousands, do not look through
the stack for who wants them.
"""

WHOLE = Path(pyspark.__file__).parent
"""The home of Spark, as it is installed."""

MOST = ("scala-library", "spark-catalyst_", "spark-sql_", "spark-core_", "hadoop-client")
"""How the names of those libraries begin that have most classes of a query."""

QUICK = {
    # Compiling costs more than running over a thousand rows: so Spark compiles no query. The bench
    # runs as users do.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": JAVA,
    # Java looks for a class in each of the libraries until one has it: in these first.
    "spark.driver.extraClassPath": os.pathsep.join(
        str(jar) for name in MOST for jar in (WHOLE / "jars").glob(f"{name}*.jar")
    ),
    # One job a query instead of one a shuffle, and one task a shuffle and a scan.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.openCostInBytes": "0",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # Spark describes each plan in words for its page, which nobody looks at.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "0",
}
"""Settings with which little data takes little time."""

RAW_FILES = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
"""No file of checksums beside each file. It would double what is written, and Hadoop starts a
`chmod` several times a file. Commands that run as users run them have these files.
"""

UNUSED = (
    *("breeze", "datanucleus", "derby", "hive", "jersey", "kubernetes", "netty-tcnative", "spire"),
    *("spark-connect", "spark-graphx", "spark-hive", "spark-kubernetes", "spark-mllib_"),
    *("spark-repl", "spark-yarn", "vertx", "zookeeper"),
)
"""How the names of those libraries of Spark begin that no query here needs. Java looks for a class
in each library until one has it, and a session makes the functions of machine learning known, which
is half of what it costs.
"""


def quick_session(home: Path) -> SparkSession:
    """A session whose Java takes Spark from the new directory `home`, as long as it runs."""
    made = local_quiet(builder("local[2]")).config("spark.driver.memory", "1g")
    for name, value in (QUICK | RAW_FILES).items():
        made = made.config(name, value)
    (home / "jars").mkdir(parents=True)
    (home / "bin").symlink_to(WHOLE / "bin")
    for jar in (WHOLE / "jars").glob("*.jar"):
        if not jar.name.startswith(UNUSED):
            (home / "jars" / jar.name).symlink_to(jar)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        return made.getOrCreate()
