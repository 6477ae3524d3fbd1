"""Dying at a chosen point of a commit: the file operations of a lake with an end built in."""

from collections.abc import Callable
from typing import Literal

import msgspec

from zq.spark.pipeline.files import Files

Point = Literal["before", "after", "amid"]
"""Right before a step's commit is created (its files lie aside), right after (none of them is in
place), or when one of them has been moved."""


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


def mortal(step: str, point: Point, die: Callable[[], None]) -> type[MortalFiles]:
    """A class of file operations that die there."""
    return type("Mortal", (MortalFiles,), {"step": step, "point": point, "die": staticmethod(die)})
