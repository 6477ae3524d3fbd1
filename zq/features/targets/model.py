"""Queues whose new jobs go to other queues: their targets.

A new job of a queue with targets is stored once for each of them, and not in the queue itself
unless that is a target too. These jobs are twins. They have nothing to do with each other: each is
taken, fails and ends by itself.
"""

from typing import ClassVar

from zq.model.commands import Command
from zq.model.errors import Conflict, NotFound
from zq.model.reach import EVERYWHERE, Reach


class AddTarget(Command[int], frozen=True):
    """Make `target` a target of a queue, and give it what waits. Returns how many jobs it got.

    The first target gets the waiting jobs of the queue itself. A later one gets a twin of each job
    that another target has not finished. A target without settings gets those of the queue. The
    errors are `TargetExists`, `FanOutChain`, `DeadLetterCycle`, `InvalidRequest`, `QueueFull` if
    they are more than it may hold, for the first target `GroupInFlight`, and for a later one
    `QueueOutOfReach` if another target is out of reach.
    """

    brings_more: ClassVar[bool] = True

    queue: str
    target: str
    reach: Reach = EVERYWHERE


class RemoveTarget(Command[int], frozen=True):
    """Let a target of a queue go, with its jobs and settings. Returns how many jobs it had.

    The error is `TargetNotFound`.
    """

    queue: str
    target: str


class TargetExists(Conflict):
    """The queue has this target."""

    code = "target_exists"

    def __init__(self, queue: str, target: str) -> None:
        super().__init__(f"{target!r} is a target of {queue!r} already")


class GroupInFlight(Conflict):
    """A job of a group runs in the queue, and the next ones would run beside it in the target."""

    code = "group_in_flight"

    def __init__(self, queue: str, group: str) -> None:
        super().__init__(
            f"a job of group {group!r} is in flight in {queue!r}, and the next ones of the group"
            " would run beside it in the target: pause the queue, and try again when the job waits"
            " or has ended"
        )


class TargetNotFound(NotFound):
    """The queue has no such target."""

    code = "target_not_found"

    def __init__(self, queue: str, target: str) -> None:
        super().__init__(f"{target!r} is not a target of {queue!r}")
