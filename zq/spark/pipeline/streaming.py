"""The pipeline as a stream: records go through all steps as they arrive, from segments and servers.

Spark's checkpoints remember the rows of each batch, and the ledger remembers the records in the
lake. A batch that is repeated after a crash finds its records there and adds none. So runs and
streams may take turns on one lake, and a device may send both segments and records.

Segments must appear whole, by renaming, as `zq history export` and rsync write them. A stream looks
at each segment once and does not read the manifest.
"""

import re
from collections.abc import Sequence
from functools import reduce
from threading import Lock

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from zq.features.history.model import SEGMENT_SUFFIX
from zq.spark.errors import PipelineError
from zq.spark.pipeline import bronze
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.progress import RunProgress
from zq.spark.pipeline.segments import BROKEN, READ_AS, check_folder, with_source
from zq.spark.pipeline.steps import PipelineOptions, refine, report_bronze
from zq.spark.source.datasource import register
from zq.spark.source.reading import HISTORY

SEGMENTS_CHECKPOINT = "_zq/stream"
"""A path below the lake. The checkpoint belongs to one list of folders. With another list Spark
refuses to continue."""

SERVERS_CHECKPOINT = "_zq/servers"
"""A path below the lake. The checkpoint says how far each server has been read."""

BATCH_SEGMENTS = 200
"""The most segments of a folder in one batch: a backlog comes in several batches."""

OWN_ERROR = re.compile(r"^zq\.spark\.errors\.SourceError: (.*)$", re.M)
"""The place in Spark's message at which the message of zq's source stands. It ends the source's
traceback."""


class LakeStreams:
    """The streams that fill one lake, one batch at a time."""

    def __init__(self, lake: Lake, progress: RunProgress, options: PipelineOptions) -> None:
        self._lake = lake
        self._progress = progress
        self._options = options
        self._turn = Lock()

    def watch(
        self, folders: Sequence[str], servers: Sequence[str], every_ms: int
    ) -> list[StreamingQuery]:
        """Look for segments and records at this interval, until the queries are stopped."""
        every = f"{every_ms} milliseconds"
        writers = []
        if folders:
            rows = reduce(DataFrame.unionByName, [self._segments(folder) for folder in folders])
            writers.append(self._writer(rows, SEGMENTS_CHECKPOINT, "segments"))
        if servers:
            writers.append(self._writer(self._served(servers), SERVERS_CHECKPOINT, "servers"))
        return [writer.trigger(processingTime=every).start() for writer in writers]

    def drain(self, servers: Sequence[str]) -> None:
        """Take the records that the servers have now. Raises `PipelineError`."""
        writer = self._writer(self._served(servers), SERVERS_CHECKPOINT, "servers")
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
        except StreamingQueryException as error:
            raise _failed(error) from error

    def _writer(self, rows: DataFrame, checkpoint: str, name: str) -> DataStreamWriter:
        def take(batch: DataFrame, number: int) -> None:
            with self._turn:
                with self._progress.step(bronze.STEP, self._lake.spark.sparkContext) as step:
                    made = bronze.ingest(self._lake, batch, {})
                    report_bronze(step, made, f"batch {number} of {name}")
                refine(self._lake, self._progress, self._options)

        writer = rows.writeStream.foreachBatch(take)
        return writer.option("checkpointLocation", f"{self._lake.path}/{checkpoint}")

    def _segments(self, folder: str) -> DataFrame:
        reader = (
            self._lake.spark.readStream.schema(READ_AS)
            .option("columnNameOfCorruptRecord", BROKEN)
            .option("pathGlobFilter", f"*{SEGMENT_SUFFIX}")
            .option("recursiveFileLookup", "true")
            .option("maxFilesPerTrigger", BATCH_SEGMENTS)
        )
        return with_source(reader.json(check_folder(self._lake.files, folder)))

    def _served(self, servers: Sequence[str]) -> DataFrame:
        register(self._lake.spark)
        reader = (
            self._lake.spark.readStream.format("zq")
            .option("urls", ",".join(servers))
            .option("onUnavailable", "skip")
            .option("failOnDataLoss", str(not self._options.allow_gaps).lower())
        )
        nothing = F.lit(None).cast("string")
        return reader.load().select(*HISTORY.names, nothing.alias(BROKEN), nothing.alias("source"))


def wait(spark: SparkSession) -> None:
    """Wait until a stream of the session ends. Raises `PipelineError` if it failed."""
    try:
        spark.streams.awaitAnyTermination()
    except StreamingQueryException as error:
        raise _failed(error) from error


def _failed(error: StreamingQueryException) -> PipelineError:
    # Spark wraps what the source says into the stacks of two languages.
    said = OWN_ERROR.search(str(error))
    reason = said[1] if said else error
    return PipelineError(
        f"the stream has failed; when it is started again, it continues at the same place: {reason}"
    )
