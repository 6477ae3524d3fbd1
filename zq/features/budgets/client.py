"""Budgets for programs: the documents of a server, and its verbs about budgets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from zq.client.amounts import Seconds, positive_ms, whole
from zq.client.errors import InvalidOption
from zq.client.values import MISSING, JobQuery, Missing, StoredJob
from zq.features.budgets.client_limits import Budget, Limit
from zq.features.budgets.model import MOST_DURATION_MS, MOST_TOKENS, TIME_BASED, WHILE_IN_FLIGHT
from zq.features.budgets.wire import PolicyPatchBody, Strategy, StrategyPatchBody

BindingVerb = Literal["add", "put", "change", "remove", "replace"]
"""`add` is for jobs that do not draw from the budget yet, `change` and `remove` for those that do,
and `put` for both. `replace` makes a job draw from these budgets only."""


class ShownBudget(msgspec.Struct, omit_defaults=True):
    """A budget as the server shows it. Times are in milliseconds since the epoch.

    `available` is the present number of tokens, `waiting` the number of ready jobs that draw from
    it, and `unfinished` the number of all unfinished jobs that do. Zizq's server lacks these.
    """

    key: str
    allocation: int
    strategy: Strategy
    created_at: int
    updated_at: int
    available: int | None = None
    waiting: int | None = None
    unfinished: int | None = None


class BindingReport(msgspec.Struct, frozen=True):
    """How many jobs have changed draws, and the ids of jobs in flight, which keep theirs."""

    changed: int
    blocked: list[str]


@dataclass(frozen=True)
class LimitPatch:
    """A change of a `Limit`. A field that is MISSING stays.

    With a `per` of None, jobs give their tokens back. A `burst` of None clears it.
    """

    allocation: int | Missing = MISSING
    per: Seconds | None | Missing = MISSING
    burst: int | None | Missing = MISSING

    def __post_init__(self) -> None:
        if self.allocation is not MISSING:
            whole("LimitPatch: allocation", self.allocation, 1, MOST_TOKENS)
        if self.burst is not MISSING and self.burst is not None:
            whole("LimitPatch: burst", self.burst, 1, MOST_TOKENS)
        self.wire()

    def wire(self) -> PolicyPatchBody:
        """The form in which it is sent."""
        strategy = StrategyPatchBody(burst=self.burst)
        if self.per is None:
            strategy.type = WHILE_IN_FLIGHT
        elif self.per is not MISSING:
            strategy.type = TIME_BASED
            strategy.duration_ms = positive_ms("LimitPatch: per", self.per, MOST_DURATION_MS)
        return PolicyPatchBody(self.allocation, strategy)


class ServerBudgets(Protocol):
    """The budgets of one server. A missing budget raises a `BackendError`."""

    async def all(self) -> list[ShownBudget]:
        """Every budget by its key."""

    async def get(self, key: str) -> ShownBudget:
        """One budget."""

    async def create(self, key: str, limit: Limit) -> ShownBudget:
        """Create a budget. Raises a `BackendError` if it exists."""

    async def put(self, key: str, limit: Limit) -> ShownBudget:
        """Create a budget, or replace its limit."""

    async def change(self, key: str, patch: LimitPatch) -> ShownBudget:
        """Change some fields of a budget's limit."""

    async def remove(self, key: str) -> None:
        """Delete a budget. Raises a `BackendError` if unfinished jobs or cron entries need it."""

    async def bind(self, id: str, verb: BindingVerb, *budgets: Budget) -> StoredJob:
        """Change what a job draws. Raises a `BackendError` if it does not wait."""

    async def bind_all(self, query: JobQuery, verb: BindingVerb, *budgets: Budget) -> BindingReport:
        """Change what the matching jobs draw. Jobs that the verb is not for stay unchanged."""


def check_binding(verb: BindingVerb, budgets: Sequence[Budget], *, many: bool) -> None:
    """Raise `InvalidOption` if a verb does not take this many budgets."""
    if verb != "replace":
        if len(budgets) != 1:
            raise InvalidOption(f"budgets: {verb} is for one budget, not for {len(budgets)}")
    elif many and budgets:
        raise InvalidOption("budgets: of many jobs, replace takes all budgets: add others with put")
