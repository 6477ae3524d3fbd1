"""`format("zq")`: Spark reads history and jobs of servers and adds jobs. It claims no job."""

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from zq.spark.errors import SourceError
from zq.spark.source.listing import SCHEMA as JOBS
from zq.spark.source.listing import JobsRead
from zq.spark.source.options import SourceOptions, parse
from zq.spark.source.reading import HISTORY, HistoryRead
from zq.spark.source.streaming import StreamReader
from zq.spark.source.writing import JobsStreamWriter, JobsWriter


class ZqDataSource(DataSource):
    """History and jobs of zq servers; options: `zq.spark.source.options.KNOWN`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "zq"

    def schema(self) -> StructType:
        """The history's record, or a job."""
        return HISTORY if self._options().table == "history" else JOBS

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read of the history, the jobs or the dead jobs."""
        options = self._options()
        return (HistoryRead if options.table == "history" else JobsRead)(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A streaming read of the history."""
        options = self._options()
        if options.table != "history":
            raise SourceError(f"only the history can be streamed, not {options.table}")
        if options.after is not None or options.until is not None:
            raise SourceError("after and until bound batch reads: a stream has startingFrom")
        return StreamReader(options, schema)

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

    def _options(self) -> SourceOptions:
        given: Mapping[str, str] = self.options
        return parse(given)


def register(session: SparkSession) -> None:
    """Make `format("zq")` known to a session. Nothing else of the session changes."""
    session.dataSource.register(ZqDataSource)


def _only_append(overwrite: bool) -> None:
    if overwrite:
        raise SourceError("jobs can only be added: write with mode('append')")
