"""A line in which owners take turns: who has much waiting holds up nobody who has little."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairLine(Generic[T]):
    """A line of waiting items, each for its owner. One item of each owner goes first, then the
    next."""

    def __init__(self) -> None:
        self._lines: dict[object, deque[T]] = {}
        """The owners, the one whose turn is next first."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def count(self, owner: object) -> int:
        """How much waits for one owner."""
        return len(self._lines.get(owner, ()))

    def largest(self) -> object:
        """The owner for whom most waits. Something must wait."""
        return max(self._lines, key=self.count)

    def add(self, owner: object, item: T) -> None:
        """Let an item wait."""
        self._lines.setdefault(owner, deque()).append(item)
        self._count += 1

    def first(self) -> T:
        """The item that is next."""
        return next(iter(self._lines.values()))[0]

    def pop(self) -> T:
        """Take the item that is next. Its owner's turn comes after those of all others."""
        owner = next(iter(self._lines))
        line = self._lines.pop(owner)
        item = line.popleft()
        self._count -= 1
        if line:
            self._lines[owner] = line
        return item

    def pop_newest(self, owner: object) -> T:
        """Take the item of an owner that came last."""
        item = self._lines[owner][-1]
        self.remove(owner, item)
        return item

    def remove(self, owner: object, item: T) -> None:
        """Take an item that waits no longer, if it is there."""
        line = self._lines.get(owner, deque())
        if item in line:
            line.remove(item)
            self._count -= 1
            if not line:
                del self._lines[owner]
