"""A lake: tables of plain Parquet files that change by whole commits.

    LAKE/bronze/date=2026-11-21/device=edge-7/part-….parquet     tables, which anybody may read
    LAKE/_zq/commits/000000000012.commit.json                     the ledger
    LAKE/_zq/aside/000000000012-5f…/                              files of a step before its commit

One run at a time writes a lake. A step writes its Parquet files aside, and its commit says which of
them a table gets and which files they replace. Then the files are moved. A reader who lists a table
during that moment may miss some of them.

The ledger is zq's own, and there is no table format such as Delta Lake. Delta's jar must be fetched
from a registry at the first run, so a host without a network cannot run it, and it pins the version
of PySpark. The ledger needs nothing but PySpark, and one commit file for each batch is enough for
exactly-once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote
from uuid import uuid4

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from zq.spark.pipeline.files import FileInfo, Files
from zq.spark.pipeline.ledger import LakeCommit, LakeState, Ledger, SourceState, TableChange
from zq.spark.pipeline.tables import TABLES, Table

Combine = Callable[[DataFrame, DataFrame], DataFrame]
"""Combines the rows of the lake with the new rows, to those that the lake shall have."""


@dataclass(frozen=True)
class Aside:
    """Files that a step has written aside, by paths below `root`."""

    root: str
    files: tuple[str, ...]

    def partitions(self) -> list[str]:
        """Names such as `date=2026-11-21/device=edge-7`, each once."""
        return sorted({folder_of(file) for file in self.files})

    def where(self, wanted: Callable[[str], bool]) -> "Aside":
        """The files of the wanted partitions only."""
        return Aside(self.root, tuple(file for file in self.files if wanted(folder_of(file))))


class Lake:
    """The lake at `path`. `follows` maps a step to the step whose commits it consumes."""

    def __init__(self, spark: SparkSession, path: str, follows: Mapping[str, str]) -> None:
        self.spark = spark
        self.files = Files(spark)
        self.path = self.files.absolute(path)
        self.ledger = Ledger(self.files, f"{self.path}/_zq/commits", follows)

    @property
    def state(self) -> LakeState:
        return self.ledger.state

    def recover(self) -> None:
        """Complete a commit whose files are not all in place."""
        if self.state.last is not None:
            self.apply(self.state.last)

    def apply(self, commit: LakeCommit) -> None:
        """Put a commit's files in place. A second call changes nothing."""
        aside = self.aside(commit.folder)
        for name, change in commit.tables.items():
            root = self.root(TABLES[name])
            for path in change.remove:
                self.files.delete(f"{root}/{path}")
            for goal, path in change.add.items():
                self.files.move(f"{aside}/{path}", f"{root}/{goal}")
        self._sweep(commit)
        self.ledger.tidy()

    def root(self, table: Table) -> str:
        return f"{self.path}/{table.name}"

    def aside(self, folder: str) -> str:
        """The place of a step's files until its commit."""
        return f"{self.path}/_zq/aside/{folder}"

    def read(self, table: Table) -> DataFrame:
        """The whole table; no rows if there is no table yet."""
        root = self.root(table)
        return self._rows(table, root, [root] if self.files.exists(root) else [])

    def read_partitions(self, table: Table, partitions: Iterable[str]) -> DataFrame:
        """The rows of partitions, which have names such as `date=2026-11-21/device=edge-7`."""
        return self._rows_in(
            table, [file for part in partitions for file in self.files_in(table, part)]
        )

    def files_in(self, table: Table, partition: str) -> list[str]:
        """The files of a partition, by paths below the table."""
        root = f"{self.root(table)}/"
        return [info.path.removeprefix(root) for info in self.data(f"{root}{partition}")]

    def added(self, table: Table, commits: Sequence[LakeCommit]) -> DataFrame:
        """The rows that commits have added; a step must have yet to consume these commits."""
        return self._rows_in(
            table, [file for commit in commits for file in commit.tables[table.name].add]
        )

    def partitions(self, table: Table, commits: Iterable[LakeCommit]) -> list[str]:
        """The partitions to which commits have added rows, sorted."""
        return sorted({folder_of(file) for each in commits for file in each.tables[table.name].add})

    def read_aside(self, table: Table, aside: Aside) -> DataFrame:
        """Rows that are not yet committed."""
        return self._rows(table, aside.root, [f"{aside.root}/{file}" for file in aside.files])

    def data(self, root: str) -> Iterator[FileInfo]:
        """The Parquet files below a folder."""
        return (info for info in self.files.walk(root) if info.name.endswith(".parquet"))

    def begin(self, step: str) -> "LakeTransaction":
        return LakeTransaction(self, step)

    def _rows_in(self, table: Table, files: Iterable[str]) -> DataFrame:
        root = self.root(table)
        return self._rows(table, root, [f"{root}/{file}" for file in files])

    def _rows(self, table: Table, root: str, paths: Sequence[str]) -> DataFrame:
        """The rows of Parquet files; `root` is the folder above their partitions."""
        if not paths:
            return self.spark.createDataFrame([], table.schema)
        # The schema is given: Spark would infer the number 7 for a device called 007.
        return self.spark.read.schema(table.schema).option("basePath", root).parquet(*paths)

    def _sweep(self, done: LakeCommit) -> None:
        """Delete folders aside whose number is taken, unless a step has yet to consume them."""
        kept = {commit.folder for commit in self.state.pending}
        folder = f"{self.path}/_zq/aside"
        for name in self.files.folders(folder):
            if int(name.partition("-")[0]) <= done.id and name not in kept:
                self.files.delete(f"{folder}/{name}")


class LakeTransaction:
    """The changes of one step. They become one commit."""

    def __init__(self, lake: Lake, step: str) -> None:
        self._lake = lake
        self._step = step
        self._id = lake.state.head + 1
        self._folder = f"{self._id:012}-{uuid4().hex}"
        self._tables: dict[str, TableChange] = {}

    def write(self, table: Table, frame: DataFrame, suffix: str = "") -> Aside:
        """Write rows aside, partitioned as the table is."""
        root = f"{self._lake.aside(self._folder)}/{table.name}{suffix}"
        writer = frame.write
        if table.partition_by:
            writer = writer.partitionBy(*table.partition_by)
        writer.parquet(root)
        found = self._lake.data(root)
        return Aside(root, tuple(info.path.removeprefix(f"{root}/") for info in found))

    def merge(self, table: Table, new: Aside, combine: Combine, *, replace: bool) -> None:
        """Add rows, combined with those of the same partitions that are in the lake.

        `combine` gets the partitions that exist already. It gives the rows that are added or, with
        `replace`, the rows that take the place of the old ones. Other partitions are not read.
        """
        old = {part: self._lake.files_in(table, part) for part in new.partitions()}
        shared = new.where(lambda part: bool(old[part]))
        self.add(table, new.where(lambda part: not old[part]))
        if not shared.files:
            return
        partitions = shared.partitions()
        there = [file for part in partitions for file in old[part]]
        rows = combine(
            self._lake.read_partitions(table, partitions).select(*table.schema.names),
            self._lake.read_aside(table, shared).select(*table.schema.names),
        )
        self.add(table, self.write(table, rows, ".combined"), remove=there if replace else ())

    def replace(self, table: Table, partitions: Iterable[str], rows: DataFrame) -> None:
        """Put rows in the place of those of their partitions, all of which are named."""
        old = [file for part in partitions for file in self._lake.files_in(table, part)]
        self.add(table, self.write(table, rows), remove=old)

    def add(self, table: Table, aside: Aside, remove: Iterable[str] = ()) -> None:
        """Make the commit put these files into the table, and delete the files `remove` from it."""
        base = self._lake.aside(self._folder)
        below = aside.root.removeprefix(f"{base}/")
        goals = {file: file for file in aside.files}
        if not table.partition_by:
            # The files of one task have one name in all partitions.
            goals = {f"{n}-{name_of(file)}": file for n, file in enumerate(aside.files)}
        before = self._tables.get(table.name, TableChange({}, (), 0))
        self._tables[table.name] = TableChange(
            add=before.add | {goal: f"{below}/{file}" for goal, file in goals.items()},
            remove=(*before.remove, *remove),
            rows=0,
        )

    def commit(
        self,
        consumed: int,
        sources: Mapping[str, SourceState] | None = None,
        target_ms: int | None = None,
    ) -> LakeCommit:
        """Make the changes happen. Raises `LakeChanged` if another run was faster."""
        rows = self._rows()
        commit = LakeCommit(
            id=self._id,
            step=self._step,
            folder=self._folder,
            consumed=consumed,
            tables={
                name: msgspec.structs.replace(
                    change, rows=sum(rows.get(file, 0) for file in change.add.values())
                )
                for name, change in self._tables.items()
            },
            sources=dict(sources or {}),
            target_ms=target_ms,
        )
        self._lake.ledger.add(commit)
        self._lake.apply(commit)
        return commit

    def _rows(self) -> dict[str, int]:
        """The rows of each file aside, by its path below the folder, as its footer tells them.

        Empty files may be left out.
        """
        base = self._lake.aside(self._folder)
        files = [file for each in self._tables.values() for file in each.add.values()]
        if here := self._lake.files.here(base):
            return {file: pq.read_metadata(here / file).num_rows for file in files}
        if not files:
            return {}
        # One query for all tables, whatever their columns: it reads none. The partitions of several
        # tables do not have the same names.
        reader = self._lake.spark.read.schema(StructType()).option("recursiveFileLookup", "true")
        rows = reader.parquet(*(f"{base}/{file}" for file in files))
        counts = rows.groupBy("_metadata.file_path").count().collect()
        return {
            unquote(row["file_path"]).rpartition(f"/{self._folder}/")[2]: row["count"]
            for row in counts
        }


def folder_of(path: str) -> str:
    """All of a path but its last part."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]
