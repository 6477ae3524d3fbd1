"""Bronze: every record of history exactly once, as it came.

A record is named by its epoch and sequence number, and a record of one name is always the same. So
a copy has the same date and device, and is found by looking into that partition only.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from zq.model.history import OUTCOMES
from zq.spark.columns import day_of
from zq.spark.lake import Lake
from zq.spark.ledger import Commit, Source
from zq.spark.segments import BROKEN
from zq.spark.tables import BRONZE, HISTORY, REJECTED

STEP = "bronze"

CHUNK = 200_000
"""Sequence numbers that one task takes at most of a day of a device: a device that sends a year at
once must not be one task's work."""

LATEST = 4_102_444_800_000
"""2100-01-01 in Unix milliseconds. Times beyond it, or before 1970, are nobody's clock."""

NO_DATE = "date=__HIVE_DEFAULT_PARTITION__"
"""The partition in which rows without a date end up."""


def ingest(lake: Lake, rows: DataFrame, sources: Mapping[str, Source]) -> Commit:
    """Put into bronze what of `rows` is not yet there, and into `rejected` what is no record.

    `rows` has the record's columns, `line` and `source`. `sources` are the segments they are from,
    not to be read again.
    """
    transaction = lake.begin(STEP)
    written = transaction.write(BRONZE, _once(_dated(rows)))
    good = written.where(lambda partition: NO_DATE not in partition)
    bad = written.where(lambda partition: NO_DATE in partition)
    transaction.merge(BRONZE, good, _unseen, replace=False)
    transaction.add(REJECTED, bad)
    return transaction.commit(0, sources)


def _dated(rows: DataFrame) -> DataFrame:
    """With the date of `finished_at`, or none and the line in `line` for what is no record."""
    date = day_of(F.col("finished_at"))
    text = F.coalesce(F.col(BROKEN), F.to_json(F.struct(*HISTORY.names)))
    return rows.withColumns(
        {
            "date": F.when(_is_record(), date),
            BROKEN: F.when(~_is_record(), text),
        }
    )


def _is_record() -> Column:
    """Whether a row has what every record has. Never null."""
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
