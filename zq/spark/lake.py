"""A lake: tables of Parquet files that change by whole commits.

    LAKE/bronze/date=2026-11-21/device=edge-7/part-….parquet     tables, for anybody to read
    LAKE/_zq/commits/000000000012.commit.json                     the ledger
    LAKE/_zq/aside/000000000012-5f…/                              files of a step not yet committed

The tables are plain folders. One run at a time writes them; who reads while a run moves files may
miss some of them for that moment.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from zq.spark.files import FileInfo, Files
from zq.spark.ledger import Change, Commit, Ledger, Source, State

Combine = Callable[[DataFrame, DataFrame], DataFrame]
"""What is in the lake, and what is new → what shall be there."""


@dataclass(frozen=True)
class Table:
    """Where a table lies in the lake, its columns (DDL), and by which of them it is partitioned."""

    name: str
    columns: str
    partition_by: tuple[str, ...] = ()

    @property
    def schema(self) -> StructType:
        return cast(StructType, StructType.fromDDL(self.columns))


@dataclass(frozen=True)
class Aside:
    """Files that a step has written aside, by paths below `root`."""

    root: str
    files: tuple[str, ...]

    def partitions(self) -> list[str]:
        """`date=2026-11-21/device=edge-7`, each once."""
        return sorted({folder_of(file) for file in self.files})

    def where(self, wanted: Callable[[str], bool]) -> "Aside":
        """The files of those partitions only."""
        return Aside(self.root, tuple(file for file in self.files if wanted(folder_of(file))))


class Lake:
    """The lake at `path`. `follows` has step → the step whose commits it consumes."""

    def __init__(self, spark: SparkSession, path: str, follows: Mapping[str, str]) -> None:
        self.spark = spark
        self.files = Files(spark)
        self.path = self.files.absolute(path)
        self.ledger = Ledger(self.files, f"{self.path}/_zq/commits", follows)

    @property
    def state(self) -> State:
        return self.ledger.state

    def recover(self) -> None:
        """Complete a commit whose files are not all in place."""
        if self.state.last is not None:
            self.apply(self.state.last)

    def apply(self, commit: Commit) -> None:
        """Put a commit's files in place. May be repeated."""
        for name, change in commit.tables.items():
            for path in change.remove:
                self.files.delete(f"{self.path}/{name}/{path}")
            for goal, path in change.add.items():
                self.files.move(f"{self.aside(commit.folder)}/{path}", f"{self.path}/{name}/{goal}")
        self._sweep(commit)
        self.ledger.tidy()

    def aside(self, folder: str) -> str:
        return f"{self.path}/_zq/aside/{folder}"

    def read(self, table: Table) -> DataFrame:
        """The whole table; no rows where there is none yet."""
        paths = [f"{self.path}/{table.name}"]
        return self._frame(table, paths[0], paths if self.files.exists(paths[0]) else [])

    def read_files(self, table: Table, files: Iterable[str]) -> DataFrame:
        """The rows in some of a table's files."""
        root = f"{self.path}/{table.name}"
        return self._frame(table, root, [f"{root}/{file}" for file in files])

    def read_aside(self, table: Table, aside: Aside) -> DataFrame:
        """Rows that are not yet committed."""
        return self._frame(table, aside.root, [f"{aside.root}/{file}" for file in aside.files])

    def files_in(self, table: Table, partition: str) -> list[str]:
        """Paths, below the table, of a partition's files."""
        root = f"{self.path}/{table.name}/"
        return [info.path.removeprefix(root) for info in self._data(f"{root}{partition}")]

    def data_under(self, root: str) -> tuple[str, ...]:
        """Paths of the Parquet files below `root`."""
        return tuple(info.path.removeprefix(f"{root}/") for info in self._data(root))

    def begin(self, step: str) -> "Transaction":
        return Transaction(self, step)

    def _data(self, root: str) -> Iterable[FileInfo]:
        return (info for info in self.files.walk(root) if info.name.endswith(".parquet"))

    def _frame(self, table: Table, root: str, paths: list[str]) -> DataFrame:
        if not paths:
            return self.spark.createDataFrame([], table.schema)
        # With its schema given, a device called 007 stays one.
        return self.spark.read.schema(table.schema).option("basePath", root).parquet(*paths)

    def _sweep(self, done: Commit) -> None:
        """Delete what lies aside and will not be committed any more, since its number is taken."""
        folder = f"{self.path}/_zq/aside"
        for name in self.files.folders(folder):
            if int(name.partition("-")[0]) <= done.id:
                self.files.delete(f"{folder}/{name}")


class Transaction:
    """One step's changes, on the way to one commit."""

    def __init__(self, lake: Lake, step: str) -> None:
        self._lake = lake
        self._step = step
        self._id = lake.state.head + 1
        self._folder = f"{self._id:012}-{uuid4().hex}"
        self._tables: dict[str, Change] = {}

    def write(self, table: Table, frame: DataFrame, suffix: str = "") -> Aside:
        """Write rows aside, partitioned as the table is."""
        root = f"{self._lake.aside(self._folder)}/{table.name}{suffix}"
        writer = frame.write
        if table.partition_by:
            writer = writer.partitionBy(*table.partition_by)
        writer.parquet(root)
        return Aside(root, self._lake.data_under(root))

    def merge(self, table: Table, new: Aside, combine: Combine, *, replace: bool) -> None:
        """Add rows, combining them with those of the same partitions that are in the lake.

        `combine` gets the partitions that exist already, and says what is to be added or, with
        `replace`, what is to take their place. Other partitions are not read.
        """
        old = {part: self._lake.files_in(table, part) for part in new.partitions()}
        shared = new.where(lambda part: bool(old[part]))
        self.add(table, new.where(lambda part: not old[part]))
        if not shared.files:
            return
        there = [file for part in shared.partitions() for file in old[part]]
        rows = combine(
            self._lake.read_files(table, there).select(*table.schema.names),
            self._lake.read_aside(table, shared).select(*table.schema.names),
        )
        self.add(table, self.write(table, rows, ".combined"), remove=there if replace else ())

    def add(self, table: Table, aside: Aside, remove: Iterable[str] = ()) -> None:
        """Have the commit put these files into the table, and take others out of it."""
        base = self._lake.aside(self._folder)
        below = aside.root.removeprefix(f"{base}/")
        goals = {file: file for file in aside.files}
        if not table.partition_by:
            # The files of one task have one name in all partitions.
            goals = {f"{n}-{name_of(file)}": file for n, file in enumerate(aside.files)}
        before = self._tables.get(table.name, Change({}, (), 0))
        rows = self._lake.read_aside(table, aside).count() if aside.files else 0
        self._tables[table.name] = Change(
            add=before.add | {goal: f"{below}/{file}" for goal, file in goals.items()},
            remove=(*before.remove, *remove),
            rows=before.rows + rows,
        )

    def commit(
        self,
        consumed: int,
        sources: Mapping[str, Source] | None = None,
        target_ms: int | None = None,
    ) -> Commit:
        """Make it happen. Raises `LakeChanged` if another run was faster."""
        commit = Commit(
            id=self._id,
            step=self._step,
            folder=self._folder,
            consumed=consumed,
            tables=self._tables,
            sources=dict(sources or {}),
            target_ms=target_ms,
        )
        self._lake.ledger.add(commit)
        self._lake.apply(commit)
        return commit


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    return path.rpartition("/")[2]
