"""Budgets for programs: the documents of a server, and its verbs about budgets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from zq.client.amounts import Seconds, milliseconds, positive_ms, whole
from zq.client.asking import SWEEP_MS, Ask, filters
from zq.client.errors import InvalidOption
from zq.client.values import MISSING, JobQuery, Missing, StoredJob
from zq.features.budgets import verbs
from zq.features.budgets.client_limits import Budget, Limit
from zq.features.budgets.model import (
    MOST_DURATION_MS,
    MOST_HOLD_MS,
    MOST_TOKENS,
    TIME_BASED,
    WHILE_IN_FLIGHT,
)
from zq.features.budgets.wire import (
    BindingBody,
    HoldBody,
    PolicyPatchBody,
    Strategy,
    StrategyPatchBody,
)

BindingVerb = Literal["add", "put", "change", "remove", "replace"]
"""`add` is for jobs that do not draw from the budget yet, `change` and `remove` for those that do,
and `put` for both. `replace` makes a job draw from these budgets only."""


class ShownBudget(msgspec.Struct, omit_defaults=True):
    """A budget as the server shows it. Times are in milliseconds since the epoch.

    `available` is the present number of tokens, `waiting` the number of ready jobs that draw from
    it, and `unfinished` the number of all unfinished jobs that do. Zizq's server lacks these. The
    budget pays nothing before `held_until`, if that is there.
    """

    key: str
    allocation: int
    strategy: Strategy
    created_at: int
    updated_at: int
    available: int | None = None
    waiting: int | None = None
    unfinished: int | None = None
    held_until: int | None = None


class BindingReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many jobs have changed draws, and the ids of jobs in flight, which keep theirs.

    `kept` counts others that keep theirs, by the reasons.
    """

    changed: int
    blocked: list[str]
    kept: dict[str, int] = {}


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


_OF_JOB = {
    "add": verbs.ADD_TO_JOB,
    "put": verbs.PUT_TO_JOB,
    "change": verbs.CHANGE_OF_JOB,
    "remove": verbs.REMOVE_FROM_JOB,
}
_OF_JOBS = {
    "add": verbs.ADD_TO_JOBS,
    "put": verbs.PUT_TO_JOBS,
    "change": verbs.CHANGE_OF_JOBS,
    "remove": verbs.REMOVE_FROM_JOBS,
}


class _Shown(msgspec.Struct):
    budgets: list[ShownBudget]


class ServerBudgets:
    """The budgets of one server. A missing budget raises a `BackendError`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> list[ShownBudget]:
        """Every budget by its key."""
        return (await self._ask(verbs.LIST.read_as(_Shown))).budgets

    async def get(self, key: str) -> ShownBudget:
        """One budget."""
        return await self._ask(verbs.GET.read_as(ShownBudget), key=key)

    async def create(self, key: str, limit: Limit) -> ShownBudget:
        """Create a budget. Raises a `BackendError` if it exists."""
        return await self._ask(verbs.CREATE.read_as(ShownBudget), limit.wire(), key=key)

    async def put(self, key: str, limit: Limit) -> ShownBudget:
        """Create a budget, or replace its limit."""
        return await self._ask(verbs.PUT.read_as(ShownBudget), limit.wire(), key=key)

    async def change(self, key: str, patch: LimitPatch) -> ShownBudget:
        """Change some fields of a budget's limit."""
        return await self._ask(verbs.CHANGE.read_as(ShownBudget), patch.wire(), key=key)

    async def hold(self, key: str, retry_after: Seconds | str) -> ShownBudget:
        """Have a budget pay nothing for a time: seconds, or the text of a header `Retry-After`.

        A hold that lasts longer stays. Raises a `BackendError` for a text that is neither a number
        of seconds nor a date of HTTP.
        """
        if isinstance(retry_after, str):
            body = HoldBody(retry_after=retry_after)
        else:
            body = HoldBody(milliseconds("hold", retry_after, MOST_HOLD_MS))
        return await self._ask(verbs.HOLD.read_as(ShownBudget), body, key=key)

    async def reopen(self, key: str) -> ShownBudget:
        """End the hold of a budget at once."""
        return await self._ask(verbs.REOPEN.read_as(ShownBudget), key=key)

    async def remove(self, key: str) -> None:
        """Delete a budget. Raises a `BackendError` if unfinished jobs or cron entries need it."""
        await self._ask(verbs.DELETE, key=key)

    async def bind(self, id: str, verb: BindingVerb, *budgets: Budget) -> StoredJob:
        """Change what a job draws. Raises a `BackendError` if it does not wait."""
        check_binding(verb, budgets, many=False)
        if verb != "replace":
            key, body = _draw(verb, budgets[0])
            return await self._ask(_OF_JOB[verb].read_as(StoredJob), body, id=id, key=key)
        if not budgets:
            return await self._ask(verbs.CLEAR_JOB.read_as(StoredJob), id=id)
        listed = {"budgets": [budget.wire() for budget in budgets]}
        return await self._ask(verbs.REPLACE_OF_JOB.read_as(StoredJob), listed, id=id)

    async def bind_all(self, query: JobQuery, verb: BindingVerb, *budgets: Budget) -> BindingReport:
        """Change what the matching jobs draw. Jobs that the verb is not for stay unchanged."""
        check_binding(verb, budgets, many=True)
        choice = filters(query)
        if verb == "replace":
            clear = verbs.CLEAR_JOBS.read_as(BindingReport)
            return await self._ask(clear, query=choice, wait_ms=SWEEP_MS)
        key, body = _draw(verb, budgets[0])
        bind = _OF_JOBS[verb].read_as(BindingReport)
        return await self._ask(bind, body, choice, wait_ms=SWEEP_MS, key=key)


def _draw(verb: BindingVerb, budget: Budget) -> tuple[str, BindingBody | None]:
    """The key and the body of a request about one budget."""
    draw = budget.wire()
    return draw.key, None if verb == "remove" else BindingBody(draw.cost, draw.create_with)


def check_binding(verb: BindingVerb, budgets: Sequence[Budget], *, many: bool) -> None:
    """Raise `InvalidOption` if a verb does not take this many budgets."""
    if verb != "replace":
        if len(budgets) != 1:
            raise InvalidOption(f"budgets: {verb} is for one budget, not for {len(budgets)}")
    elif many and budgets:
        raise InvalidOption("budgets: of many jobs, replace takes all budgets: add others with put")
