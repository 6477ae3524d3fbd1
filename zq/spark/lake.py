"""A lake: tables that change by whole commits.

    LAKE/bronze/date=2026-11-21/device=edge-7/part-….parquet     tables, for anybody to read
    LAKE/_zq/commits/000000000012.commit.json                     the ledger
    LAKE/_zq/aside/000000000012-5f…/                              files of a step not yet committed

One run at a time writes a lake. How its tables keep their rows is the format's matter.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from zq.spark.delta import Delta
from zq.spark.errors import LakeFormat
from zq.spark.files import Files
from zq.spark.formats import Format, Parquet, Table
from zq.spark.ledger import Change, Commit, Ledger, Source, State
from zq.spark.tables import TABLES

Combine = Callable[[DataFrame, DataFrame], DataFrame]
"""What is in the lake, and what is new → what shall be there."""


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


FORMATS: dict[str, type[Format]] = {each.name: each for each in (Parquet, Delta)}


class Lake:
    """The lake at `path`. `follows` has step → the step whose commits it consumes. Raises
    `LakeFormat` where the lake's format is another."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        follows: Mapping[str, str],
        format: str = Parquet.name,
    ) -> None:
        self.spark = spark
        self.files = Files(spark)
        self.path = self.files.absolute(path)
        self.ledger = Ledger(self.files, f"{self.path}/_zq/commits", follows)
        if self.state.format not in (None, format):
            raise LakeFormat(self.path, self.state.format)
        self.format = FORMATS[format](spark, self.files, self.path)

    @property
    def state(self) -> State:
        return self.ledger.state

    def recover(self) -> None:
        """Complete a commit whose files are not all in place."""
        if self.state.last is not None:
            self.apply(self.state.last)

    def apply(self, commit: Commit) -> None:
        """Put a commit's files in place. May be repeated."""
        for name in commit.tables:
            self.format.place(TABLES[name], commit)
        self._sweep(commit)
        self.ledger.tidy()

    def read(self, table: Table) -> DataFrame:
        """The whole table; no rows where there is none yet."""
        return self.format.read(table)

    def added(self, table: Table, commits: Sequence[Commit]) -> DataFrame:
        """The rows that commits which a step has still to consume have added."""
        return self.format.added(table, commits)

    def read_aside(self, table: Table, aside: Aside) -> DataFrame:
        """Rows that are not yet committed."""
        paths = [f"{aside.root}/{file}" for file in aside.files]
        return self.format.parquet(table, aside.root, paths)

    def begin(self, step: str) -> "Transaction":
        return Transaction(self, step)

    def _sweep(self, done: Commit) -> None:
        """Delete what lies aside and is of no use any more: its number is taken, and no step has
        still to consume it."""
        kept = {commit.folder for commit in self.state.pending}
        folder = f"{self.path}/_zq/aside"
        for name in self.files.folders(folder):
            if int(name.partition("-")[0]) <= done.id and name not in kept:
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
        root = f"{self._lake.format.aside(self._folder)}/{table.name}{suffix}"
        writer = frame.write
        if table.partition_by:
            writer = writer.partitionBy(*table.partition_by)
        writer.parquet(root)
        found = self._lake.format.data(root)
        return Aside(root, tuple(info.path.removeprefix(f"{root}/") for info in found))

    def merge(self, table: Table, new: Aside, combine: Combine, *, replace: bool) -> None:
        """Add rows, combining them with those of the same partitions that are in the lake.

        `combine` gets the partitions that exist already, and says what is to be added or, with
        `replace`, what is to take their place. Other partitions are not read.
        """
        tables = self._lake.format
        old = {part: tables.contents(table, part) for part in new.partitions()}
        shared = new.where(lambda part: bool(old[part]))
        self.add(table, new.where(lambda part: not old[part]))
        if not shared.files:
            return
        partitions = shared.partitions()
        there = [content for part in partitions for content in old[part]]
        rows = combine(
            tables.read_partitions(table, partitions).select(*table.schema.names),
            self._lake.read_aside(table, shared).select(*table.schema.names),
        )
        self.add(table, self.write(table, rows, ".combined"), remove=there if replace else ())

    def add(self, table: Table, aside: Aside, remove: Iterable[str] = ()) -> None:
        """Have the commit put these files into the table, and take out of it what `remove` has
        (`Format.contents`)."""
        base = self._lake.format.aside(self._folder)
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
            format=self._lake.format.name,
        )
        self._lake.ledger.add(commit)
        self._lake.apply(commit)
        return commit


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    return path.rpartition("/")[2]
