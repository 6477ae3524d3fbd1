"""Dying at a chosen point of a commit: the file operations of a lake with an end built in."""

from collections.abc import Callable
from typing import Literal

import msgspec
import pytest

from zq.spark import lake
from zq.spark.delta import Delta
from zq.spark.files import Files
from zq.spark.formats import Table
from zq.spark.ledger import Commit

Point = Literal["before", "after", "amid"]
"""Right before a step's commit is created (its files lie aside), right after (none of them is in
place), or when one of them has been moved: of a lake of Delta, when one table has its part."""


class Killed(BaseException):
    """The run is dead: nothing in it may catch this."""


class MortalFiles(Files):
    """Calls `die` at a point of the commit of a step."""

    step: str
    point: Point
    die: Callable[[], None]
    _committed = False

    def create(self, path: str, text: str) -> bool:
        chosen = path.endswith(".commit.json") and msgspec.json.decode(text)["step"] == self.step
        if chosen and self.point == "before":
            self.die()
        made = super().create(path, text)
        if chosen:
            self._committed = True
            if self.point == "after":
                self.die()
        return made

    def move(self, source: str, target: str) -> None:
        super().move(source, target)
        if self._committed and self.point == "amid":
            self.die()


class MortalDelta(Delta):
    """Calls `die` amid the commit of a step."""

    step: str
    die: Callable[[], None]

    def place(self, table: Table, commit: Commit) -> None:
        super().place(table, commit)
        if commit.step == self.step:
            self.die()


def mortal_lake(
    patch: pytest.MonkeyPatch, step: str, point: Point, die: Callable[[], None]
) -> None:
    """Have lakes, of any format, end so."""
    patch.setattr(lake, "Files", mortal(step, point, die))
    if point == "amid":
        own = {"step": step, "die": staticmethod(die)}
        patch.setitem(lake.FORMATS, "delta", type("Mortal", (MortalDelta,), own))


def mortal(step: str, point: Point, die: Callable[[], None]) -> type[MortalFiles]:
    """A class of file operations that end so."""
    return type("Mortal", (MortalFiles,), {"step": step, "point": point, "die": staticmethod(die)})
