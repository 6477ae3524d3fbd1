"""What is read of lanes."""

from typing import NamedTuple, Protocol

from zq.features.forward.model import ForwardLane


class UnderWay(NamedTuple):
    """The jobs of a lane that have numbers and have not arrived: how many, and the oldest key."""

    jobs: int
    oldest: int | None


class LaneReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def lanes(self) -> list[ForwardLane]:
        """All lanes by name."""

    async def under_way(self) -> dict[int, UnderWay]:
        """What is under way on each lane that has jobs with numbers, by its id."""
