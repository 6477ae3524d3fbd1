"""What the producers of a fleet know of their jobs, and what the hub must therefore have.

A job has a number within its lane, and its payload says which one it is. Numbers rise in the order
in which the device has stored the jobs, so the order at the hub can be judged without a clock.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class LaneName(NamedTuple):
    """A lane of a fleet."""

    device: str
    lane: str


class Sent(NamedTuple):
    """A job: the payload of a test, as the hub has it."""

    device: str
    lane: str
    number: int

    @property
    def of(self) -> LaneName:
        """The lane that it came by."""
        return LaneName(self.device, self.lane)


@dataclass
class LaneLedger:
    """The jobs of one lane by number."""

    tried: int = 0
    """How many numbers are given away."""
    stored: set[int] = field(default_factory=set)
    """Those that the device has acknowledged."""
    refused: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    """Those that may be missing: an older backup has replaced the store that had them."""
    twice: Counter[int] = field(default_factory=Counter)
    """How often more than once a job may be at the hub: an older store had it, and the hub did not
    have it by then."""
    seen: Counter[int] = field(default_factory=Counter)
    """How often each was at the hub in what was judged before."""
    highest: int = -1

    def next(self, count: int) -> range:
        """Give away numbers."""
        self.tried += count
        return range(self.tried - count, self.tried)


@dataclass
class FleetLedger:
    """All lanes of a fleet."""

    lanes: dict[LaneName, LaneLedger] = field(default_factory=lambda: defaultdict(LaneLedger))
    judged: int = 0

    def judge(self, at_hub: Iterable[Sent]) -> Iterator[str]:
        """What is wrong with the jobs that a hub has in this order, after all have arrived.

        They are new since it was judged last.
        """
        found: dict[LaneName, list[int]] = defaultdict(list)
        for job in at_hub:
            found[job.of].append(job.number)
            self.judged += 1
        for name in sorted({*self.lanes, *found}):
            for breach in _judge(self.lanes[name], found[name]):
                yield f"{name.device}/{name.lane}: {breach}"


def _judge(lane: LaneLedger, numbers: list[int]) -> Iterator[str]:
    invented = [n for n in numbers if not 0 <= n < lane.tried or n in lane.refused]
    if invented:
        yield f"{len(invented)} jobs that nobody has stored: {invented[:5]}"
    for number in numbers:
        lane.seen[number] += 1
        if lane.seen[number] == 1:
            if number < lane.highest:
                yield f"{number} came after {lane.highest}"
            lane.highest = max(lane.highest, number)
    again = {n: times for n in set(numbers) if (times := lane.seen[n]) > 1 + lane.twice[n]}
    if again:
        yield f"{len(again)} jobs came more than once: {sorted(again.items())[:5]}"
    missing = lane.stored - lane.seen.keys() - lane.lost
    if missing:
        yield f"{len(missing)} jobs are lost: {sorted(missing)[:5]}"
    lane.stored -= missing  # each breach is told once
