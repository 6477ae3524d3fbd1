"""The pipeline as a stream: segments go through all steps as they arrive.

Spark's checkpoint remembers which segments a batch has had, the ledger which records are in the
lake. A batch that is repeated after a crash finds its records there and adds none. So both ways to
run may even take turns on one lake.

Segments have to appear whole, by renaming, as `zq history export` and rsync write them: a stream
looks at each once and does not ask the manifest.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zq.model.history import SEGMENT_SUFFIX
from zq.spark import bronze, servers
from zq.spark.errors import PipelineError
from zq.spark.lake import Lake
from zq.spark.pipeline import Options, open_lake, refine, report_bronze
from zq.spark.progress import Progress
from zq.spark.segments import BROKEN, READ_AS, check_folder, with_source

CHECKPOINT = "_zq/stream"
"""Below the lake. It belongs to one list of folders, and to servers or none: with another, Spark
refuses to go on."""

BATCH_SEGMENTS = 200
"""Segments of a folder in one batch: what has piled up comes in several."""


def start(
    spark: SparkSession,
    folders: Sequence[str],
    lake_path: str,
    progress: Progress,
    options: Options,
    every_ms: int,
    urls: Sequence[str] = (),
) -> StreamingQuery:
    """Begin to look for new segments, and for what is new on servers, every so often.

    Ends when the query is stopped.
    """
    lake = open_lake(spark, lake_path)
    sources = [_stream(lake, folder) for folder in folders]
    sources += [servers.stream(spark, urls)] if urls else []
    rows = reduce(DataFrame.unionByName, sources)

    def take(batch: DataFrame, number: int) -> None:
        with progress.step(bronze.STEP, spark.sparkContext) as step:
            report_bronze(step, bronze.ingest(lake, batch, {}), f"batch {number}")
        refine(lake, progress, options)

    return (
        rows.writeStream.foreachBatch(take)
        .option("checkpointLocation", f"{lake.path}/{CHECKPOINT}")
        .trigger(processingTime=f"{every_ms} milliseconds")
        .start()
    )


def wait(query: StreamingQuery) -> None:
    """Until the query ends. Raises `PipelineError` if it fails."""
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise PipelineError(
            f"the stream has failed, and goes on where it was when started again: {error}"
        ) from error


def _stream(lake: Lake, folder: str) -> DataFrame:
    reader = (
        lake.spark.readStream.schema(READ_AS)
        .option("columnNameOfCorruptRecord", BROKEN)
        .option("pathGlobFilter", f"*{SEGMENT_SUFFIX}")
        .option("recursiveFileLookup", "true")
        .option("maxFilesPerTrigger", BATCH_SEGMENTS)
    )
    return with_source(reader.json(check_folder(lake.files, folder)))
