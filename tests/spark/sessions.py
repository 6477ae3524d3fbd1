"""How tests run Spark."""

from pyspark.sql import SparkSession

from zq.spark.delta import with_delta
from zq.spark.session import builder, local_quiet


def quick_session() -> SparkSession:
    """Compiling costs more than running over a thousand rows: so Spark compiles no query here, and
    Java itself only quickly. The bench runs as users do."""
    return (
        with_delta(local_quiet(builder("local[2]")))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
