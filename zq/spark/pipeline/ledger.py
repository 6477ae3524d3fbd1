"""The ledger of a lake: numbered commits, which say what each run has done.

A step writes its Parquet files aside. Then it creates the next commit, which names the place of
each file and the files that go. With that commit file the step has happened, even if no file has
been moved yet: the next run completes it (`Lake.recover`). Without the commit file nothing has
happened, and the files aside are rubbish.

Steps feed each other through commits too. A step takes the files of those commits of the step
before it that it has not `consumed`, and its own commit says how far it got. So a step is repeated
as a whole or not at all, and it never sees a file twice.
"""

from collections.abc import Mapping
from typing import Literal, TypeVar

import msgspec

from zq.spark.errors import LakeChanged, LakeUnknown
from zq.spark.pipeline.files import Files

_Stored = TypeVar("_Stored")

SNAPSHOT_EVERY = 50
"""After this many commits the ledger writes a snapshot of its state and deletes them."""

SourceState = tuple[int, int]
"""Size in bytes and last change (Unix ms) of a segment when it was read."""


class TableChange(msgspec.Struct, frozen=True):
    """The change that a commit makes to one table.

    `add` maps the place of a file below the table to its place below the commit's folder. `remove`
    names files below the table. `rows` counts the rows of the added files.
    """

    add: dict[str, str]
    remove: tuple[str, ...]
    rows: int


class LakeCommit(msgspec.Struct, frozen=True):
    """One finished step. Its files lie aside in `folder`.

    `consumed` is the last commit of the step before that this one has taken. `target_ms` is the
    wait for which the summary's workers are computed. `format` marks the tables as plain Parquet.
    """

    id: int
    step: str
    folder: str
    consumed: int
    tables: dict[str, TableChange]
    sources: dict[str, SourceState] = {}
    target_ms: int | None = None
    format: Literal["parquet"] = "parquet"


class LakeState(msgspec.Struct, frozen=True):
    """The sum of all commits up to `head`.

    `pending` are the commits that a following step has still to consume: those that add files.
    """

    head: int = 0
    last: LakeCommit | None = None
    consumed: dict[str, int] = {}
    pending: tuple[LakeCommit, ...] = ()
    sources: dict[str, SourceState] = {}
    target_ms: int | None = None

    def waiting_for(self, step: str, after: str) -> list[LakeCommit]:
        """The commits of the step `after` that `step` has not taken, oldest first."""
        done = self.consumed.get(step, 0)
        return [commit for commit in self.pending if commit.step == after and commit.id > done]

    def after(self, commit: LakeCommit, follows: Mapping[str, str]) -> "LakeState":
        """The state with one more commit. `follows` maps a step to the step before it."""
        consumed = self.consumed | {commit.step: commit.consumed}
        pending = tuple(
            each
            for each in (*self.pending, commit)
            if any(change.add for change in each.tables.values())
            and any(
                before == each.step and consumed.get(step, 0) < each.id
                for step, before in follows.items()
            )
        )
        return LakeState(
            head=commit.id,
            last=commit,
            consumed=consumed,
            pending=pending,
            sources=self.sources | commit.sources,
            target_ms=self.target_ms if commit.target_ms is None else commit.target_ms,
        )


class Ledger:
    """The commits in one folder. `add` keeps `state` up to date."""

    def __init__(self, files: Files, folder: str, follows: Mapping[str, str]) -> None:
        self._files = files
        self._folder = folder
        self._follows = follows
        self.state = self._load()

    def add(self, commit: LakeCommit) -> None:
        """Make the commit happen. Raises `LakeChanged` if another run has taken its number."""
        text = msgspec.json.encode(commit).decode()
        if not self._files.create(f"{self._folder}/{commit.id:012}.commit.json", text):
            raise LakeChanged(self._folder)
        self.state = self.state.after(commit, self._follows)

    def tidy(self) -> None:
        """Replace the commits by a snapshot if there are many.

        The files of the last commit must be in place.
        """
        head = self.state.head
        if head % SNAPSHOT_EVERY:
            return
        text = msgspec.json.encode(self.state).decode()
        self._files.create(f"{self._folder}/{head:012}.state.json", text)
        for info in list(self._files.walk(self._folder)):
            number = info.name.partition(".")[0]
            old = number < f"{head:012}" or info.name.endswith(".commit.json")
            if number.isdigit() and int(number) <= head and old:
                self._files.delete(info.path)

    def _load(self) -> LakeState:
        infos = list(self._files.walk(self._folder))
        snapshots = [info.path for info in infos if info.name.endswith(".state.json")]
        state = LakeState()
        if snapshots:
            state = self._decoded(snapshots[-1], LakeState)
        for info in infos:
            if info.name.endswith(".commit.json") and info.name[0] != "_":
                commit = self._decoded(info.path, LakeCommit)
                if commit.id > state.head:
                    state = state.after(commit, self._follows)
        return state

    def _decoded(self, path: str, kind: type[_Stored]) -> _Stored:
        try:
            return msgspec.json.decode(self._files.read(path), type=kind)
        except msgspec.ValidationError as error:
            raise LakeUnknown(path, str(error)) from None
