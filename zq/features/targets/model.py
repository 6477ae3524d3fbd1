"""Queues whose new jobs go to other queues: their targets.

A new job of a queue with targets is stored once for each of them, and not in the queue itself
unless that is a target too. These jobs are twins. They have nothing to do with each other: each is
taken, fails and ends by itself.
"""

from typing import ClassVar

from zq.model.commands import Command
from zq.model.errors import Conflict, NotFound


class AddTarget(Command[int], frozen=True):
    """Make `target` a target of a queue, and give it what waits. Returns how many jobs it got.

    The first target gets the waiting jobs of the queue itself. A later one gets a twin of each job
    that another target has not finished. A target without settings gets those of the queue. The
    errors are `TargetExists`, `FanOutChain`, `InvalidRequest`, and `QueueFull` if they are more
    than it may hold.
    """

    brings_more: ClassVar[bool] = True

    queue: str
    target: str


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


class TargetNotFound(NotFound):
    """The queue has no such target."""

    code = "target_not_found"

    def __init__(self, queue: str, target: str) -> None:
        super().__init__(f"{target!r} is not a target of {queue!r}")
