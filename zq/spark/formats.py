"""Tables, and how a lake keeps their rows: as Parquet files here, as Delta in `zq.spark.delta`.

Whatever the format, a step writes Parquet files aside, and its commit says which of them a table
gets and what goes from it. A format puts that in place.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from zq.spark.files import FileInfo, Files
from zq.spark.ledger import Commit


@dataclass(frozen=True)
class Table:
    """Where a table lies in the lake, its columns (DDL), and by which of them it is partitioned."""

    name: str
    columns: str
    partition_by: tuple[str, ...] = ()

    @property
    def schema(self) -> StructType:
        return cast(StructType, StructType.fromDDL(self.columns))


class Format(ABC):
    """The tables below `path`."""

    name: ClassVar[str]

    def __init__(self, spark: SparkSession, files: Files, path: str) -> None:
        self.spark = spark
        self.files = files
        self.path = path

    @abstractmethod
    def read(self, table: Table) -> DataFrame:
        """The whole table; no rows where there is none yet."""

    @abstractmethod
    def read_partitions(self, table: Table, partitions: Iterable[str]) -> DataFrame:
        """The rows of partitions, these named as `date=2026-11-21/device=edge-7`."""

    @abstractmethod
    def contents(self, table: Table, partition: str) -> list[str]:
        """What a commit has to remove for the partition to be empty; nothing where it is."""

    @abstractmethod
    def added(self, table: Table, commits: Sequence[Commit]) -> DataFrame:
        """The rows that commits have added to a table, until the steps have consumed them."""

    @abstractmethod
    def place(self, table: Table, commit: Commit) -> None:
        """Have a table show what a commit does to it. May be repeated."""

    def root(self, table: Table) -> str:
        return f"{self.path}/{table.name}"

    def aside(self, folder: str) -> str:
        """Where the files of a step lie until they are committed."""
        return f"{self.path}/_zq/aside/{folder}"

    def parquet(self, table: Table, root: str, paths: Sequence[str]) -> DataFrame:
        """The rows of Parquet files; `root` is the folder above their partitions."""
        if not paths:
            return self.spark.createDataFrame([], table.schema)
        # With its schema given, a device called 007 stays one.
        return self.spark.read.schema(table.schema).option("basePath", root).parquet(*paths)

    def data(self, root: str) -> Iterable[FileInfo]:
        """The Parquet files below a folder."""
        return (info for info in self.files.walk(root) if info.name.endswith(".parquet"))


class Parquet(Format):
    """Plain files in plain folders, for any reader. Who reads while a commit's files are moved may
    miss some of them for that moment."""

    name = "parquet"

    def read(self, table: Table) -> DataFrame:
        root = self.root(table)
        return self.parquet(table, root, [root] if self.files.exists(root) else [])

    def read_partitions(self, table: Table, partitions: Iterable[str]) -> DataFrame:
        return self._files(
            table, [file for part in partitions for file in self.contents(table, part)]
        )

    def contents(self, table: Table, partition: str) -> list[str]:
        """Its files, by paths below the table."""
        root = f"{self.root(table)}/"
        return [info.path.removeprefix(root) for info in self.data(f"{root}{partition}")]

    def added(self, table: Table, commits: Sequence[Commit]) -> DataFrame:
        return self._files(
            table, [file for commit in commits for file in commit.tables[table.name].add]
        )

    def place(self, table: Table, commit: Commit) -> None:
        root, aside = self.root(table), self.aside(commit.folder)
        change = commit.tables[table.name]
        for path in change.remove:
            self.files.delete(f"{root}/{path}")
        for goal, path in change.add.items():
            self.files.move(f"{aside}/{path}", f"{root}/{goal}")

    def _files(self, table: Table, files: Iterable[str]) -> DataFrame:
        root = self.root(table)
        return self.parquet(table, root, [f"{root}/{file}" for file in files])


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """The rows of all, by the names of their columns."""
    return reduce(DataFrame.unionByName, frames)
