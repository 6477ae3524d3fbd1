"""Servers as a source of the pipeline: their history, as far as it has not been read.

A checkpoint below the lake keeps how far that is. It is no more than a shortcut: the lake knows
each record by its name, so one that is read again adds nothing, and the checkpoint may be deleted.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from zq.spark import bronze
from zq.spark.pipeline import Options, open_lake, refine, report_bronze
from zq.spark.progress import Progress
from zq.spark.segments import BROKEN
from zq.spark.source import register

CHECKPOINT = "_zq/servers"

BATCH_RECORDS = 1_000_000
"""Records in one batch, of all servers together."""


def stream(spark: SparkSession, urls: Sequence[str]) -> DataFrame:
    """The history of servers as the pipeline takes it; the key is in the variable ZQ_TOKEN.

    A server that is down is left for later; records that its retention has removed are missing.
    """
    register(spark)
    rows = (
        spark.readStream.format("zq")
        .option("urls", ",".join(urls))
        .option("onUnavailable", "skip")
        .option("failOnDataLoss", "false")
        .option("maxRecordsPerBatch", BATCH_RECORDS)
        .load()
    )
    source = F.concat(F.lit("server of "), F.col("device"))
    return rows.withColumns({BROKEN: F.lit(None).cast("string"), "source": source})


def run(
    spark: SparkSession,
    urls: Sequence[str],
    lake_path: str,
    progress: Progress,
    options: Options,
) -> None:
    """Bring the lake up to date with what the servers have now."""
    lake = open_lake(spark, lake_path)

    def take(batch: DataFrame, _number: int) -> None:
        with progress.step(bronze.STEP, spark.sparkContext) as step:
            report_bronze(step, bronze.ingest(lake, batch, {}), f"{len(urls)} servers")
        refine(lake, progress, options)

    query = (
        stream(spark, urls)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", f"{lake.path}/{CHECKPOINT}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
