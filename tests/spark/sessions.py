"""How tests run Spark."""

from typing import Any

from pyspark.sql import SparkSession

from zq.spark.session import builder, local_quiet

JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Options of Java with which a short life is cheap: it compiles only quickly, and takes the
bytecode of Spark's thousands of classes for valid, which is a fifth of what a session costs.
"""

QUICK = {
    # Compiling costs more than running over a thousand rows: so Spark compiles no query. The bench
    # runs as users do.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": JAVA,
    # One job a query instead of one a shuffle, and one task a shuffle.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""Settings with which little data takes little time."""


def quick_session() -> SparkSession:
    made = local_quiet(builder("local[2]")).config("spark.driver.memory", "1g")
    for name, value in QUICK.items():
        made = made.config(name, value)
    session = made.getOrCreate()
    # A file of checksums beside each file would double what is written: Hadoop starts a `chmod` for
    # each of them.
    jvm: Any = session._jvm
    jvm.org.apache.hadoop.fs.FileSystem.getLocal(
        session.sparkContext._jsc.hadoopConfiguration()
    ).setWriteChecksum(False)
    return session
