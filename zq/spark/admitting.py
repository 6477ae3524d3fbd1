"""The stream reader for PySpark 4.2 and later, which says where a batch begins and may end."""

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from zq.spark.stream import HistoryStream, Offset


class AdmittingStream(HistoryStream, SupportsTriggerAvailableNow):
    """Keeps to the limit of the trigger, and stops where `availableNow` began."""

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """`maxRecordsPerBatch`, where it is set."""
        most = self._options.max_records_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Offset, limit: Any) -> Offset:  # noqa: N802 - Spark's name
        """How far a batch after `start` goes."""
        return self.latest(start, getattr(limit, "max_rows", None))
