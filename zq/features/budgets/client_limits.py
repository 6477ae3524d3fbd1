"""Budgets for tasks: limits on how many jobs run at once, or in a time, across tasks."""

from dataclasses import dataclass

from zq.client.amounts import Seconds, positive_ms, whole
from zq.client.errors import InvalidOption
from zq.features.budgets.model import MOST_DURATION_MS, MOST_TOKENS, TIME_BASED, WHILE_IN_FLIGHT
from zq.features.budgets.wire import DrawBody, PolicyBody, Strategy
from zq.model.errors import InvalidRequest
from zq.model.names import check_name


@dataclass(frozen=True)
class Limit:
    """The number of tokens of a budget, and how they come back.

    Without `per`, a job gives its tokens back when it no longer runs. With it, tokens are spent for
    good, and `allocation` new ones come in this time, evenly. There are then at most `burst`
    tokens, by default as many as the allocation.
    """

    allocation: int
    per: Seconds | None = None
    burst: int | None = None

    def __post_init__(self) -> None:
        whole("Limit: allocation", self.allocation, 1, MOST_TOKENS)
        if self.burst is not None:
            whole("Limit: burst", self.burst, 1, MOST_TOKENS)
            if self.per is None:
                raise InvalidOption("Limit: burst: only a limit with per has one")
        self.wire()

    def wire(self) -> PolicyBody:
        """The form in which it is sent."""
        if self.per is None:
            return PolicyBody(self.allocation, Strategy(WHILE_IN_FLIGHT))
        per = positive_ms("Limit: per", self.per, MOST_DURATION_MS)
        return PolicyBody(self.allocation, Strategy(TIME_BASED, per, self.burst))


@dataclass(frozen=True)
class Budget:
    """A job needs `cost` tokens of the budget `key`, and waits until it has them.

    The server creates a missing budget with the limit `create_with`. An existing budget keeps its
    own limit.
    """

    key: str
    cost: int = 1
    create_with: Limit | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise InvalidOption(f"Budget: key: {self.key!r} is not text")
        try:
            check_name("key", self.key)
        except InvalidRequest as error:
            raise InvalidOption(f"Budget: {error.message}") from None
        whole("Budget: cost", self.cost, 1, MOST_TOKENS)
        if self.create_with is not None and not isinstance(self.create_with, Limit):
            raise InvalidOption(f"Budget: create_with: {self.create_with!r} is not a Limit")

    def wire(self) -> DrawBody:
        """The form in which it is sent."""
        created = None if self.create_with is None else self.create_with.wire()
        return DrawBody(self.key, self.cost, created)
