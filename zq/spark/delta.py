"""A lake of Delta tables: readers always see whole commits, and Delta's own commands work on them.

The lake's ledger decides what has happened, as for Parquet. A table's part in a commit is one
transaction of Delta that bears the commit's number, so Delta passes over it when a run that was
killed is completed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from zq.spark.errors import DeltaMissing
from zq.spark.files import Files
from zq.spark.formats import Format, Table, union
from zq.spark.ledger import Commit

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
WRITER = "zq"
"""The name under which Delta remembers the number of the last commit."""


def with_delta(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Have the session know Delta, whose jar Spark fetches where it has not done so before.

    Raises `DeltaMissing` without the package delta-spark.
    """
    try:
        from delta import configure_spark_with_delta_pip
    except ModuleNotFoundError:
        raise DeltaMissing(
            "this takes the package delta-spark: pip install 'zq-queue[spark,delta]'"
        ) from None
    return (
        configure_spark_with_delta_pip(builder)
        .config("spark.sql.extensions", EXTENSION)
        .config("spark.sql.catalog.spark_catalog", CATALOG)
    )


class Delta(Format):
    """Delta tables. What a commit removes is named by partition: these are overwritten."""

    name = "delta"

    def __init__(self, spark: SparkSession, files: Files, path: str) -> None:
        super().__init__(spark, files, path)
        if EXTENSION not in (spark.conf.get("spark.sql.extensions", None) or ""):
            raise DeltaMissing(
                "this Spark session does not know Delta: build it by zq.spark.delta.with_delta"
            )

    def read(self, table: Table) -> DataFrame:
        if not self._exists(table):
            return self.parquet(table, "", [])
        rows = self.spark.read.format("delta").load(self.root(table))
        return rows.select(*table.schema.names)

    def read_partitions(self, table: Table, partitions: Iterable[str]) -> DataFrame:
        return self.read(table).where(_within(partitions))

    def contents(self, table: Table, partition: str) -> list[str]:
        """The partition itself, whether it has rows or not: only Delta's log knows its files."""
        return [partition] if self._exists(table) else []

    def added(self, table: Table, commits: Sequence[Commit]) -> DataFrame:
        """From the files that still lie aside: those of the table may have been compacted."""
        nothing = self.parquet(table, "", [])
        return union([nothing, *(rows for each in commits for rows in self._staged(table, each))])

    def place(self, table: Table, commit: Commit) -> None:
        change = commit.tables[table.name]
        aside = self.aside(commit.folder)
        there = {info.path for info in self.data(aside)}
        # They are deleted only when all are in place.
        deleted = any(f"{aside}/{path}" not in there for path in change.add.values())
        if not change.add or deleted:
            return
        replaces = bool(change.remove)
        (
            union(self._staged(table, commit))
            .write.format("delta")
            .mode("overwrite" if replaces else "append")
            .option("partitionOverwriteMode", "dynamic")
            .option("txnAppId", WRITER)
            .option("txnVersion", commit.id)
            .partitionBy(*table.partition_by)
            .save(self.root(table))
        )

    def _staged(self, table: Table, commit: Commit) -> Iterator[DataFrame]:
        """Rows that a commit adds, folder by folder."""
        aside = self.aside(commit.folder)
        roots: dict[str, list[str]] = defaultdict(list)
        for path in commit.tables[table.name].add.values():
            folder = path.rsplit("/", 1 + len(table.partition_by))[0]
            roots[f"{aside}/{folder}"].append(f"{aside}/{path}")
        for root, paths in roots.items():
            yield self.parquet(table, root, paths).select(*table.schema.names)

    def _exists(self, table: Table) -> bool:
        return self.files.exists(f"{self.root(table)}/_delta_log")


def _within(partitions: Iterable[str]) -> Column:
    """Whether a row is of one of these partitions, all of them of one depth."""
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    for partition in partitions:
        parent, _, last = partition.rpartition("/")
        name, _, value = last.partition("=")
        values[parent, name].append(unquote(value))
    found = F.lit(False)
    for (parent, name), wanted in values.items():
        here = F.col(name).cast("string").isin(wanted)
        found |= here & _within([parent]) if parent else here
    return found
