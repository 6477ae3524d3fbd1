"""The ledger of a lake: what each run has done, in numbered commits.

A step writes its Parquet files aside, then creates the next commit, which says where they go and
which files they replace. With that file in place the step has happened, however far the moving of
files got: who comes next completes it (`Lake.recover`). Without it nothing has happened, and what
lies aside is rubbish.

Steps feed each other through commits too: a step takes the files of those commits of the step
before it that it has not `consumed`, and says in its own commit how far it got. So a step is
repeated or not as a whole, and never sees the same file twice.
"""

from collections.abc import Mapping

import msgspec

from zq.spark.errors import LakeChanged
from zq.spark.files import Files

SNAPSHOT_EVERY = 50
"""After this many commits the state is written down, and they are deleted."""

Source = tuple[int, int]
"""Size in bytes and last change (Unix ms) of a segment when it was read."""


class Change(msgspec.Struct, frozen=True):
    """What a commit does to one table. `add` has where a file goes → where it lies aside, paths
    below the table and below the commit's folder; `remove` what is replaced, as the lake's format
    names it. `rows` are those in the added files."""

    add: dict[str, str]
    remove: tuple[str, ...]
    rows: int


class Commit(msgspec.Struct, frozen=True):
    """One finished step. `folder` is where its files lie aside. `consumed` is the last commit of
    the step before that is in it. `target_ms` is the wait that the workers needed were for,
    `format` how the lake keeps its tables."""

    id: int
    step: str
    folder: str
    consumed: int
    tables: dict[str, Change]
    sources: dict[str, Source] = {}
    target_ms: int | None = None
    format: str = "parquet"


class State(msgspec.Struct, frozen=True):
    """What all commits up to `head` add up to.

    `pending` are those that a following step has still to consume.
    """

    head: int = 0
    last: Commit | None = None
    consumed: dict[str, int] = {}
    pending: tuple[Commit, ...] = ()
    sources: dict[str, Source] = {}
    target_ms: int | None = None
    format: str | None = None

    def waiting_for(self, step: str, after: str) -> list[Commit]:
        """Commits of the step `after` that `step` has not taken, oldest first."""
        done = self.consumed.get(step, 0)
        return [commit for commit in self.pending if commit.step == after and commit.id > done]

    def after(self, commit: Commit, follows: Mapping[str, str]) -> "State":
        """The state with one more commit. `follows` has step → the step before it."""
        consumed = self.consumed | {commit.step: commit.consumed}
        pending = tuple(
            each
            for each in (*self.pending, commit)
            if any(
                before == each.step and consumed.get(step, 0) < each.id
                for step, before in follows.items()
            )
        )
        return State(
            head=commit.id,
            last=commit,
            consumed=consumed,
            pending=pending,
            sources=self.sources | commit.sources,
            target_ms=self.target_ms if commit.target_ms is None else commit.target_ms,
            format=commit.format,
        )


class Ledger:
    """The commits in one folder. `state` is kept up to date by `add`."""

    def __init__(self, files: Files, folder: str, follows: Mapping[str, str]) -> None:
        self._files = files
        self._folder = folder
        self._follows = follows
        self.state = self._load()

    def add(self, commit: Commit) -> None:
        """Make the commit happen, or raise `LakeChanged` if another run has taken its number."""
        text = msgspec.json.encode(commit).decode()
        if not self._files.create(f"{self._folder}/{commit.id:012}.commit.json", text):
            raise LakeChanged(self._folder)
        self.state = self.state.after(commit, self._follows)

    def tidy(self) -> None:
        """Put a snapshot in the place of the commits, where there are many.

        Only for when the last commit's files are in place.
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

    def _load(self) -> State:
        infos = list(self._files.walk(self._folder))
        snapshots = [info.path for info in infos if info.name.endswith(".state.json")]
        state = State()
        if snapshots:
            state = msgspec.json.decode(self._files.read(snapshots[-1]), type=State)
        for info in infos:
            if info.name.endswith(".commit.json") and info.name[0] != "_":
                commit = msgspec.json.decode(self._files.read(info.path), type=Commit)
                if commit.id > state.head:
                    state = state.after(commit, self._follows)
        return state
