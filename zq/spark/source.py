"""`format("zq")`: Spark's door to a server. It reads history and adds jobs; it claims none."""

from collections.abc import Mapping
from importlib.util import find_spec

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from zq.spark.batch import HistoryRead
from zq.spark.enqueue import JobsStreamWriter, JobsWriter
from zq.spark.listing import SCHEMA as JOBS
from zq.spark.listing import JobsRead
from zq.spark.options import Options, SourceError, parse
from zq.spark.stream import CappedStream
from zq.spark.tables import history_schema


class ZqDataSource(DataSource):
    """History and jobs of zq servers; options: `zq.spark.options.KNOWN`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "zq"

    def schema(self) -> StructType:
        """The history's record, or a job."""
        return history_schema() if self._options().table == "history" else JOBS

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read of the history, the jobs or the dead ones."""
        options = self._options()
        return (HistoryRead if options.table == "history" else JobsRead)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A streaming read of the history."""
        options = self._options()
        if options.table != "history":
            raise SourceError(f"only the history can be streamed, not {options.table}")
        if options.after is not None or options.until is not None:
            raise SourceError("after and until bound batch reads: a stream has startingFrom")
        if find_spec("pyspark.sql.streaming.datasource") is None:
            return CappedStream(options, schema)
        # What PySpark before 4.2 does not have is imported only where it is there.
        from zq.spark.admitting import AdmittingStream

        return AdmittingStream(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write: rows become jobs."""
        _only_append(overwrite)
        return JobsWriter(self._options(), schema)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """A streaming write: rows become jobs."""
        _only_append(overwrite)
        return JobsStreamWriter(self._options(), schema)

    def _options(self) -> Options:
        given: Mapping[str, str] = self.options
        return parse(given)


def register(session: SparkSession) -> None:
    """Make `format("zq")` known to a session. It changes nothing else of it."""
    session.dataSource.register(ZqDataSource)


def _only_append(overwrite: bool) -> None:
    if overwrite:
        raise SourceError("jobs can only be added: write with mode('append')")
