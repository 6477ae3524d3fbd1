"""An exact fair queue, as small as it can be: what the server's is compared with.

It restates the formula of `zq.features.fair.model` in fractions, and looks at all keys each time.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heappop, heappush

SHORTEST = Fraction(1)


@dataclass
class Share:
    """One key. Times are in milliseconds."""

    weight: Fraction = Fraction(1)
    finish: Fraction = Fraction(0)
    mean: Fraction | None = None
    """None until its first job has ended."""
    owed: Fraction = Fraction(0)
    running: int = 0
    waiting: list[tuple[int, int, Hashable]] = field(default_factory=list)
    """A heap of priority, number of arrival, job."""


class FairQueue:
    """Jobs of one queue, each with a key. `take` gives the next, `end` says how long it has run."""

    def __init__(self) -> None:
        self.virtual = Fraction(0)
        self.mean = SHORTEST
        self.shares: dict[str, Share] = {}
        self._arrivals = 0
        self._keys: dict[Hashable, str] = {}

    def put(self, job: Hashable, key: str, weight: float = 1, priority: int = 0) -> None:
        share = self.shares.setdefault(key, Share())
        share.weight = Fraction(weight)
        if not share.waiting:
            share.finish = max(self.virtual, share.finish)
        self._arrivals += 1
        heappush(share.waiting, (priority, self._arrivals, job))
        self._keys[job] = key

    def take(self) -> Hashable | None:
        """The first job of the key that is furthest behind, among those of the best priority."""
        some = [(share.waiting[0], share) for share in self.shares.values() if share.waiting]
        if not some:
            return None
        best = min(head[0] for head, _ in some)
        heads = [(share.finish, head, share) for head, share in some if head[0] == best]
        start, head, share = min(heads, key=lambda each: each[:2])
        heappop(share.waiting)
        charged = self.mean if share.mean is None else share.mean
        start = max(start, self.virtual - charged * (share.running + 1) / share.weight)
        self.virtual = max(self.virtual, start)
        share.finish = start + charged / share.weight
        share.owed += charged
        share.running += 1
        return head[2]

    def end(self, job: Hashable, ran: float) -> None:
        """A job has run for so many milliseconds. The keys go with the last job of all."""
        key = self._keys.pop(job)
        share = self.shares[key]
        took = max(Fraction(ran), SHORTEST)
        charged = share.owed / share.running
        share.owed -= charged
        share.running -= 1
        corrected = (took - charged) / share.weight
        share.finish += corrected
        if share.waiting:
            self.virtual = min(self.virtual, max(share.finish, self.virtual + corrected))
        share.mean = took if share.mean is None else share.mean + (took - share.mean) / 8
        self.mean += (took - self.mean) / 8
        if not self._keys:
            self.shares.clear()
            self.virtual, self.mean = Fraction(0), SHORTEST
