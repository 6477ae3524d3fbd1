"""A tick that is on the disk, and the subscribers that learn of it."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol

import msgspec

from zq.engine.delivery.takers import Plan
from zq.engine.inbox import PendingCommand
from zq.model.commands import Tick, TickResult


class Committed(msgspec.Struct, frozen=True):
    """One tick: its commands, who waits for them, and its result. It took `seconds`."""

    tick: Tick
    requests: Sequence[PendingCommand]
    plan: Plan
    result: TickResult
    seconds: float


class Awaited(IntEnum):
    """The callers who wait for a subscriber's work on a tick. Subscribers learn of it in this
    order."""

    BY_REQUESTS = 0
    BY_WORKERS = 1
    BY_NOBODY = 2


class Subscriber(Protocol):
    """A listener to ticks.

    A room names the class of each that it has in `engine.py: SUBSCRIBERS`, with who waits for it.
    The class is a part of the engine, as `zq.engine.engine.EnginePart` says.
    """

    @property
    def listens(self) -> object:
        """True, or not empty, while the subscriber has something to learn."""

    def learn(self, committed: Committed) -> None:
        """Learn from a tick. It must not wait."""
