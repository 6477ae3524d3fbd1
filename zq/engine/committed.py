"""What memory learns of a tick, once it is on the disk."""

from collections.abc import Sequence
from typing import NamedTuple

from zq.engine.inbox import Request
from zq.engine.streams import Plan
from zq.model.commands import Tick, TickResult


class Committed(NamedTuple):
    """One tick: what it was to do, for whom, and what came of it. It took so many `seconds`."""

    tick: Tick
    requests: Sequence[Request]
    plan: Plan
    result: TickResult
    seconds: float
