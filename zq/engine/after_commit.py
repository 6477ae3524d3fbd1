"""What is told of a tick once it is on the disk, and who hears of it."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from zq.engine.delivery.takers import Plan
from zq.engine.inbox import PendingCommand
from zq.model.commands import Tick, TickResult


class Committed(msgspec.Struct, frozen=True):
    """One tick: what it was to do, for whom, and what came of it. It took so many `seconds`."""

    tick: Tick
    requests: Sequence[PendingCommand]
    plan: Plan
    result: TickResult
    seconds: float


class Subscriber(Protocol):
    """One who hears of ticks. `zq.engine.engine` says who does, and in which order."""

    @property
    def listens(self) -> object:
        """True, or not empty, while there is anything to hear for it."""

    def learn(self, committed: Committed) -> None:
        """Learn from a tick. It may not wait."""
