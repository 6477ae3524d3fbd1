"""Budgets: tokens that jobs draw before they run, to limit how many run at once or in a time.

A budget has `allocation` tokens. Without a duration, a job draws its cost while it is in flight,
and gives the tokens back at the end. With a duration, tokens are spent for good when the job is
taken, and `allocation` new tokens come in each duration, evenly.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from zq.model.errors import Conflict, InvalidRequest, NotFound, Unprocessable

MOST_TOKENS = 1_000_000
MOST_DURATION_MS = NEVER = 2**53
"""Every client can represent numbers up to this one. A time so far away stands for all later ones,
which no store could hold."""
MOST_DEBT = 2**53
"""A budget is in debt by no more tokens, whatever jobs say that they have used."""
MOST_BUDGETS_A_JOB = 64
TOO_MANY = f"a job may draw from at most {MOST_BUDGETS_A_JOB} budgets"
MOST_HOLD_MS = 7 * 24 * 3_600_000
"""A budget may be held for so long at once. Longer waits are likely a mistake of units."""
MAX_BUDGETS = 8192
"""The default limit on the number of budgets."""

WHILE_IN_FLIGHT: Literal["while_in_flight"] = "while_in_flight"
TIME_BASED: Literal["time_based"] = "time_based"


class Draw(msgspec.Struct, frozen=True, array_like=True):
    """A budget, and how many of its tokens a job needs."""

    key: str
    cost: int = 1


Draws = tuple[Draw, ...]


class BudgetPolicy(msgspec.Struct, frozen=True):
    """The number of tokens, and how they come back: after `duration_ms`, or with their jobs."""

    allocation: int
    duration_ms: int | None = None
    burst: int | None = None
    """The most tokens that it holds, if that differs from its allocation."""

    @property
    def capacity(self) -> int:
        """The most tokens that there can be."""
        return self.allocation if self.burst is None else self.burst


class BudgetRequest(msgspec.Struct, frozen=True):
    """What a job draws from a budget, and the policy with which to create a missing budget."""

    key: str
    cost: int = 1
    create_with: BudgetPolicy | None = None


class BudgetPatch(msgspec.Struct, frozen=True):
    """A change of a policy. Absent fields stay; a `burst` of None clears it."""

    allocation: int | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    duration_ms: int | None | UnsetType = UNSET
    burst: int | None | UnsetType = UNSET


class BudgetState(msgspec.Struct, frozen=True):
    """The present state of a budget. Times are in milliseconds.

    `available` is the number of tokens that it can pay now, and negative if jobs have used more
    than there was. `waiting` is the number of ready jobs that draw from it, and `unfinished` the
    number of all unfinished jobs that do.
    """

    key: str
    policy: BudgetPolicy
    created_at: int
    updated_at: int
    available: int
    waiting: int
    unfinished: int
    held_until: int | None = None
    """The date before which a budget pays nothing, in milliseconds."""


def checked_policy(
    allocation: int, kind: str, duration_ms: int | None, burst: int | None
) -> BudgetPolicy:
    """Make a policy. Raises `Unprocessable` with the reason."""
    if allocation < 1:
        raise Unprocessable("budget allocation must be at least 1")
    if allocation > MOST_TOKENS:
        raise Unprocessable(f"budget allocation must not exceed {MOST_TOKENS}")
    if kind == WHILE_IN_FLIGHT:
        for name, value in (("duration_ms", duration_ms), ("burst", burst)):
            if value is not None:
                raise Unprocessable(f"{WHILE_IN_FLIGHT} budget does not take {name}: leave it out")
        return BudgetPolicy(allocation)
    if kind != TIME_BASED:
        raise Unprocessable(
            f'invalid budget strategy: "{kind}" (expected "{WHILE_IN_FLIGHT}" or "{TIME_BASED}")'
        )
    if duration_ms is None:
        raise Unprocessable(f"{TIME_BASED} budget requires duration_ms")
    if duration_ms < 1:
        raise Unprocessable(f"{TIME_BASED} budget duration_ms must be at least 1")
    if duration_ms > MOST_DURATION_MS:
        raise Unprocessable(f"{TIME_BASED} budget duration_ms must not exceed {MOST_DURATION_MS}")
    if burst is not None and burst < 1:
        raise Unprocessable(f"{TIME_BASED} budget burst must be at least 1")
    if burst is not None and burst > MOST_TOKENS:
        raise Unprocessable(f"{TIME_BASED} budget burst must not exceed {MOST_TOKENS}")
    return BudgetPolicy(allocation, duration_ms, burst)


def patched_policy(policy: BudgetPolicy, patch: BudgetPatch) -> BudgetPolicy:
    """The policy after a change. Raises `Unprocessable`."""
    former = WHILE_IN_FLIGHT if policy.duration_ms is None else TIME_BASED
    kind = former if patch.kind is UNSET else patch.kind
    duration_ms, burst = patch.duration_ms, patch.burst
    # Fields that belong to one strategy only are dropped with it.
    keeps = kind == TIME_BASED
    return checked_policy(
        policy.allocation if patch.allocation is UNSET else patch.allocation,
        kind,
        (policy.duration_ms if keeps else None) if duration_ms is UNSET else duration_ms,
        (policy.burst if keeps else None) if burst is UNSET else burst,
    )


def check_requests(requests: Sequence[BudgetRequest]) -> None:
    """Raise `Unprocessable` if a job names a budget twice, or has an impossible cost."""
    if len(requests) > MOST_BUDGETS_A_JOB:
        raise InvalidRequest(TOO_MANY)
    seen: set[str] = set()
    for request in requests:
        if request.key in seen:
            raise Unprocessable(f"budget '{request.key}' named more than once")
        seen.add(request.key)
        check_cost(request.key, request.cost)


def check_cost(key: str, cost: int) -> None:
    """Raise `Unprocessable` for a cost that no budget can have."""
    if cost < 1:
        raise Unprocessable(f"budget '{key}' cost must be at least 1")
    if cost > MOST_TOKENS:
        raise Unprocessable(f"budget '{key}' cost must not exceed {MOST_TOKENS}")


def unpayable(key: str, policy: BudgetPolicy | None, cost: int) -> Unprocessable | None:
    """Why a budget of this policy can never pay a cost; None if it can. No policy: no budget."""
    if policy is None:
        return Unprocessable(f"budget '{key}' does not exist: create it first, or send create_with")
    if cost > policy.capacity:
        return Unprocessable(
            f"budget '{key}' cannot pay a cost of {cost}: it never has more than {policy.capacity}"
        )
    return None


def draws_of(requests: Iterable[BudgetRequest]) -> Draws | None:
    """The draws that are stored with a job; None if there are none."""
    return tuple([Draw(request.key, request.cost) for request in requests]) or None


class Account(msgspec.Struct, gc=False):
    """The tokens of a budget: whole tokens, and an exact rest as parts of `duration_ms`.

    `now` is a time in milliseconds. If it steps back, no token comes or is lost by that.
    """

    key: str
    policy: BudgetPolicy
    created_at: int
    updated_at: int
    in_use: int = 0
    level: int = 0
    carry: int = 0
    settled_at: int = 0
    pays_at: int | None = None
    maker: str | None = None
    """The key that has made it, where that counts against the key's quota."""
    unfinished: int = 0
    """How many unfinished jobs draw from it."""
    waiting: int = 0
    """How many of them are ready."""
    costliest: int = 0
    """The most that one of them draws, or one that has ended since there was none."""
    held_until: int | None = None
    """The steady time before which a budget pays nothing, in milliseconds."""
    offered: int = 0
    """For so many of its tokens lines have been opened: see `zq.features.budgets.tick_ledger`."""

    def available(self, now: int) -> int:
        """How many tokens it can pay now.

        The number is negative if the policy was narrowed, or jobs have used more than they drew.
        """
        there = self._tokens(now)
        return there if self.held_from(now) is None else min(there, 0)

    def held_from(self, now: int) -> int | None:
        """Until when it is held; None if it is not."""
        until = self.held_until
        return None if until is None or until <= now else until

    def _tokens(self, now: int) -> int:
        policy = self.policy
        if policy.duration_ms is None:
            return policy.allocation - self.in_use
        if self.level >= policy.capacity:
            return policy.capacity
        gained = (self.carry + self._elapsed(now) * policy.allocation) // policy.duration_ms
        return min(self.level + gained, policy.capacity)

    def settle(self, now: int) -> None:
        """Record the tokens that have come up to now."""
        policy = self.policy
        if policy.duration_ms is not None:
            total = self.carry + self._elapsed(now) * policy.allocation
            gained, self.carry = divmod(total, policy.duration_ms)
            self.level += gained
            if self.level >= policy.capacity:
                self.level, self.carry = policy.capacity, 0
        self.settled_at = now

    def draw(self, cost: int, now: int) -> None:
        """Draw the tokens of a job that is being taken."""
        self.in_use += cost
        if self.policy.duration_ms is not None:
            self.settle(now)
            self.level -= cost

    def correct(self, drawn: int, used: int, now: int) -> None:
        """Count what a job has used instead of what it drew, unless its tokens come back anyway."""
        if self.policy.duration_ms is not None:
            self.settle(now)
            self.level = max(self.level + drawn - used, -MOST_DEBT)
            self.settle(now)

    def hold(self, until: int) -> None:
        """Pay nothing before a time. A hold that lasts longer stays. Tokens come as usual."""
        self.held_until = max(until, self.held_until or 0)

    def reopen(self) -> None:
        """End a hold."""
        self.held_until = None

    def give_back(self, cost: int) -> bool:
        """Note that a job is no longer in flight. Return whether that gives tokens back."""
        self.in_use = max(self.in_use - cost, 0)
        return self.policy.duration_ms is None

    def pays(self, cost: int, now: int) -> int | None:
        """When it can pay if nobody else draws; None if that depends on the end of a job."""
        policy = self.policy
        held = self.held_from(now) or now
        if self._tokens(now) >= cost:
            return held
        if policy.duration_ms is None or cost > policy.capacity:
            return None
        missing = (cost - self.level) * policy.duration_ms - self.carry
        return min(max(self.settled_at + -(-missing // policy.allocation), held), NEVER)

    def change(self, policy: BudgetPolicy, now: int) -> None:
        """Use another policy from now on. Tokens that have come so far stay, as far as they fit."""
        left = self._tokens(now)
        if self.policy.duration_ms is None or policy.duration_ms is None:
            left = max(left, 0)
        former = self.policy.duration_ms
        self.settle(now)
        self.policy, self.updated_at = policy, now
        self.level = min(left, policy.capacity)
        if policy.duration_ms is None or former is None or self.level == policy.capacity:
            self.carry = 0
        else:
            self.carry = self.carry * policy.duration_ms // former

    def state(self, now: int, ahead: int) -> BudgetState:
        """The budget as it is shown. Steady time is `ahead` of the wall."""
        held = self.held_from(now)
        return BudgetState(
            *(self.key, self.policy, self.created_at, self.updated_at),
            *(self.available(now), self.waiting, self.unfinished),
            None if held is None else held - ahead,
        )

    def _elapsed(self, now: int) -> int:
        return max(now - self.settled_at, 0)


def opened(
    key: str, policy: BudgetPolicy, now: int, steady: int, maker: str | None = None
) -> Account:
    """The account of a new budget, which is full. `now` is wall time, `steady` is for tokens."""
    return Account(key, policy, now, now, level=policy.capacity, settled_at=steady, maker=maker)


def account_of(row: Sequence[Any]) -> Account:
    """The account of a budget, from its row in the store."""
    key, allocation, duration_ms, burst, *rest = row
    return Account(key, BudgetPolicy(allocation, duration_ms, burst), *rest)


class BudgetNotFound(NotFound):
    """There is no budget of this name."""

    code = "budget_not_found"

    def __init__(self, key: str) -> None:
        super().__init__(f"budget '{key}' not found")


class BudgetNotBound(NotFound):
    """The job does not draw from this budget."""

    code = "budget_not_bound"

    def __init__(self, key: str) -> None:
        super().__init__(f"the job is not bound to budget '{key}'")


class TooManyBudgets(Unprocessable):
    """The job draws from so many budgets that none may be added."""

    code = "too_many_budgets"

    def __init__(self) -> None:
        super().__init__(TOO_MANY)


class BudgetExists(Conflict):
    """There is a budget of this name."""

    code = "budget_exists"

    def __init__(self, key: str) -> None:
        super().__init__(f"budget '{key}' already exists")


class BudgetBound(Conflict):
    """The job draws from this budget."""

    code = "budget_bound"

    def __init__(self, key: str) -> None:
        super().__init__(f"the job is already bound to budget '{key}'")


class BudgetInUse(Conflict):
    """Unfinished jobs draw from the budget."""

    code = "budget_in_use"


class BudgetQuotaReached(Unprocessable):
    """A key would have more budgets than its quota allows. Waiting does not help."""

    code = "budget_quota"

    def __init__(self, key: str, made: int, most: int) -> None:
        super().__init__(
            f"the key {key!r} has made {made} budgets, and may have {most}: delete some, or give it"
            f" more by budgets=N among its scopes in the file of keys"
        )
