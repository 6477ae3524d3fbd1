"""Bronze: every record of history exactly once, as it came.

Epoch and sequence number name a record, and all records of one name are equal. So a copy has the
same date and device, and a look into that partition finds it.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from zq.features.history.model import OUTCOMES
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.ledger import LakeCommit, SourceState
from zq.spark.pipeline.segments import BROKEN
from zq.spark.pipeline.tables import BRONZE, REJECTED, day_of
from zq.spark.source.reading import HISTORY

STEP = "bronze"

CHUNK = 200_000
"""The most sequence numbers of a day of a device that one task takes. A device that sends a whole
year must not become the work of a single task."""

LATEST = 4_102_444_800_000
"""2100-01-01 in Unix milliseconds. No clock shows a time beyond it, or before 1970."""

NO_DATE = "date=__HIVE_DEFAULT_PARTITION__"
"""The partition of rows without a date."""


def ingest(lake: Lake, rows: DataFrame, sources: Mapping[str, SourceState]) -> LakeCommit:
    """Put the new records among `rows` into bronze, and lines that are not records into `rejected`.

    `rows` has the record's columns, `line` and `source`. The rows come from the segments `sources`,
    which later runs do not read again.
    """
    transaction = lake.begin(STEP)
    written = transaction.write(BRONZE, _once(_dated(rows)))
    good = written.where(lambda partition: NO_DATE not in partition)
    bad = written.where(lambda partition: NO_DATE in partition)
    transaction.merge(BRONZE, good, _unseen, replace=False)
    transaction.add(REJECTED, bad)
    return transaction.commit(0, sources)


def _dated(rows: DataFrame) -> DataFrame:
    """The rows with the date of `finished_at`.

    A row that is not a record has no date, and has its text in `line`.
    """
    date = day_of(F.col("finished_at"))
    text = F.coalesce(F.col(BROKEN), F.to_json(F.struct(*HISTORY.names)))
    return rows.withColumns(
        {
            "date": F.when(_is_record(), date),
            BROKEN: F.when(~_is_record(), text),
        }
    )


def _is_record() -> Column:
    """True if a row has all that a record must have. Never null."""
    needed = [field.name for field in HISTORY if not field.nullable]
    found = F.col(BROKEN).isNull()
    for name in needed:
        found &= F.col(name).isNotNull()
    for name in ("enqueued_at", "ready_at", "finished_at"):
        found &= F.coalesce(F.col(name).between(0, LATEST), F.lit(False))
    found &= F.coalesce(F.col("dequeued_at").between(0, LATEST), F.lit(True))
    return found & F.coalesce(F.col("outcome").isin(*OUTCOMES), F.lit(False))


def _once(rows: DataFrame) -> DataFrame:
    """Each record once, in few files: one shuffle serves both."""
    place = ["date", "device", "chunk"]
    chunked = rows.withColumn("chunk", F.floor(F.col("seq") / CHUNK))
    one = chunked.repartition(*place).dropDuplicates([*place, "epoch", "seq", BROKEN])
    return one.drop("chunk")


def _unseen(old: DataFrame, new: DataFrame) -> DataFrame:
    key = ["date", "device", "epoch", "seq"]
    return new.join(old.select(*key), key, "left_anti").select(*new.columns)
