"""How tests run Spark."""

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
}
"""Settings with which little data takes little time."""


def quick_session() -> SparkSession:
    made = local_quiet(builder("local[2]")).config("spark.driver.memory", "1g")
    for name, value in QUICK.items():
        made = made.config(name, value)
    return made.getOrCreate()
