"""The commands about lanes. They are apart from the model, which a start reads before asyncio."""

from collections.abc import Sequence
from typing import NamedTuple

from zq.features.forward.model import ForwardLane, LaneBatch, LaneRefusal, LaneRule
from zq.model.commands import Command


class PutLane(Command[ForwardLane], frozen=True):
    """Make a lane, or give one another rule. The errors are `LanesMeet` and `TooManyLanes`."""

    name: str
    rule: LaneRule
    epoch: str
    """The epoch of a new lane."""
    declared: bool = False


class DeclareLanes(Command[None], frozen=True):
    """Make these the declared lanes, together: one may have the queues that another has had.

    Other declared lanes are dropped, as by `DropLane`. The errors are `LanesMeet` and
    `TooManyLanes`, and change nothing.
    """

    lanes: Sequence[PutLane]


class PauseLane(Command[ForwardLane], frozen=True):
    """Stop a lane, or let it go on. The error is `LaneNotFound`."""

    name: str
    paused: bool


class DropLane(Command[None], frozen=True):
    """Forget a lane. Its jobs are for workers here again. The error is `LaneNotFound`.

    Jobs under way may be with the receiver as well.
    """

    name: str


class NumberLane(Command[LaneBatch], frozen=True):
    """Give the next jobs of a lane its next numbers. The error is `LaneNotFound`.

    They are the jobs that a worker of the lane's queues would get, and are in flight from then on.
    An empty batch means that there are none.
    """

    lane: str
    most: int


class LaneJobs(NamedTuple):
    """A lane, and the jobs that have numbers and have not arrived."""

    lane: ForwardLane
    batches: list[LaneBatch]


class ReadLane(Command[LaneJobs], frozen=True):
    """The jobs of a lane that are under way. The error is `LaneNotFound`."""

    name: str


class Arrive(Command[int], frozen=True):
    """Complete the jobs of an epoch up to a number, which the receiver has. Returns how many.

    In another epoch than that of the lane, it does nothing. The error is `LaneNotFound`.
    """

    lane: str
    epoch: str
    last: int


class TrimLane(Command[int], frozen=True):
    """Expire the oldest waiting jobs of a lane that drops them: those up to a key that have been
    ready since a date, and those over its bound on bytes.

    Returns how many. There may be more.
    """

    lane: str
    upto: int = 0
    since: int = 0
    """In milliseconds of wall time."""


class NameHeir(Command[None], frozen=True):
    """Store the epoch that is about to follow, before the receiver hears of it."""

    lane: str
    heir: str


class BeginEpoch(Command[bool], frozen=True):
    """Leave an epoch of a lane after the number `last`, which is the last one that has arrived.

    The jobs under way have new numbers then, from 1 on. A refused job is dead. Returns False if the
    lane is in another epoch. The error is `LaneNotFound`.
    """

    lane: str
    epoch: str
    last: int
    to: str
    refusal: LaneRefusal | None = None
