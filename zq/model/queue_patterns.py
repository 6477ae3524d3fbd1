"""Sets of queues: names, and beginnings of names with a star at the end."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple, Self


class QueuePatterns(NamedTuple):
    """The queues that some patterns name. It is false if there are none."""

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, patterns: Iterable[str]) -> Self:
        """The queues of patterns, which have been checked."""
        names, prefixes = set[str](), set[str]()
        for pattern in patterns:
            if pattern.endswith("*"):
                prefixes.add(pattern[:-1])
            else:
                names.add(pattern)
        # One that begins with another one adds nothing.
        fewest: list[str] = []
        for prefix in sorted(prefixes):
            if not fewest or not prefix.startswith(fewest[-1]):
                fewest.append(prefix)
        return cls(frozenset(names), tuple(fewest))

    def __bool__(self) -> bool:
        return bool(self.names or self.prefixes)

    @property
    def beginnings(self) -> tuple[str, ...]:
        """What the names of these queues begin with, one of it. Other names may as well."""
        return (*self.names, *self.prefixes)

    def covers(self, queue: str) -> bool:
        """True if a queue is one of them."""
        if queue in self.names:
            return True
        # Of all prefixes up to the name, only the last one can be its beginning.
        place = bisect_right(self.prefixes, queue)
        return place > 0 and queue.startswith(self.prefixes[place - 1])

    def differing(self, other: "QueuePatterns") -> tuple[str, ...]:
        """What the names of queues that are in one of the sets only begin with. Others may, too."""
        prefixes = {*self.prefixes} ^ {*other.prefixes}
        return tuple(prefixes | (self.names ^ other.names))

    def meets(self, other: "QueuePatterns") -> bool:
        """True if a queue can be in both sets."""
        pairs = [(a, b) for a in self.prefixes for b in other.prefixes]
        return (
            any(map(other.covers, self.names))
            or any(map(self.covers, other.names))
            or any(a.startswith(b) or b.startswith(a) for a, b in pairs)
        )


NO_QUEUES = QueuePatterns()
