"""A tick that is on the disk, and the subscribers that learn of it."""

from collections.abc import Sequence
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


class Subscriber(Protocol):
    """A listener to ticks. `zq.engine.engine` lists the subscribers in their order."""

    @property
    def listens(self) -> object:
        """True, or not empty, while the subscriber has something to learn."""

    def learn(self, committed: Committed) -> None:
        """Learn from a tick. It must not wait."""
