"""Budgets: tokens that jobs draw before they run, so that only so many run, at once or in a time.

A budget has `allocation` tokens. While a job is in flight it has drawn its cost, which comes back
when it no longer is; or, where there is a duration, tokens are spent for good when the job is
taken, and `allocation` of them come in each duration, evenly.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from zq.model.errors import InvalidRequest, Unprocessable

MOST_TOKENS = 1_000_000
MOST_DURATION_MS = 2**53
"""What every client can say as a number."""
MOST_BUDGETS_A_JOB = 64
MAX_BUDGETS = 8192
"""How many budgets there may be, where nothing else is set."""

WHILE_IN_FLIGHT: Literal["while_in_flight"] = "while_in_flight"
TIME_BASED: Literal["time_based"] = "time_based"


class Draw(msgspec.Struct, frozen=True, array_like=True):
    """How many tokens of which budget a job needs."""

    key: str
    cost: int = 1


Draws = tuple[Draw, ...]


class BudgetPolicy(msgspec.Struct, frozen=True):
    """How many tokens there are, and how they come back. `duration_ms` of None: with their jobs."""

    allocation: int
    duration_ms: int | None = None
    burst: int | None = None
    """How many tokens it holds at most, where that is not its allocation."""

    @property
    def capacity(self) -> int:
        """How many tokens there are at most."""
        return self.allocation if self.burst is None else self.burst


class BudgetRequest(msgspec.Struct, frozen=True):
    """What a job asks of a budget, and the policy with which to create it where there is none."""

    key: str
    cost: int = 1
    create_with: BudgetPolicy | None = None


class BudgetPatch(msgspec.Struct, frozen=True):
    """A change of a policy. Absent keeps; a `burst` of None clears it."""

    allocation: int | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    duration_ms: int | None | UnsetType = UNSET
    burst: int | None | UnsetType = UNSET


class BudgetState(msgspec.Struct, frozen=True):
    """A budget as it stands. Times in milliseconds.

    `available` is how many tokens there are, `waiting` how many ready jobs draw from it, and
    `unfinished` how many jobs in all.
    """

    key: str
    policy: BudgetPolicy
    created_at: int
    updated_at: int
    available: int
    waiting: int
    unfinished: int


def checked_policy(
    allocation: int, kind: str, duration_ms: int | None, burst: int | None
) -> BudgetPolicy:
    """A policy. Raises `Unprocessable` with what is wrong."""
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
    # What is only of the one strategy goes with it.
    keeps = kind == TIME_BASED
    return checked_policy(
        policy.allocation if patch.allocation is UNSET else patch.allocation,
        kind,
        (policy.duration_ms if keeps else None) if duration_ms is UNSET else duration_ms,
        (policy.burst if keeps else None) if burst is UNSET else burst,
    )


def check_requests(requests: Sequence[BudgetRequest]) -> None:
    """Raise `Unprocessable` where a job names a budget twice, or has a cost that cannot be."""
    if len(requests) > MOST_BUDGETS_A_JOB:
        raise InvalidRequest(f"a job may draw from at most {MOST_BUDGETS_A_JOB} budgets")
    seen: set[str] = set()
    for request in requests:
        if request.key in seen:
            raise Unprocessable(f"budget '{request.key}' named more than once")
        seen.add(request.key)
        check_cost(request.key, request.cost)


def check_cost(key: str, cost: int) -> None:
    """Raise `Unprocessable` for a cost that no budget could have."""
    if cost < 1:
        raise Unprocessable(f"budget '{key}' cost must be at least 1")
    if cost > MOST_TOKENS:
        raise Unprocessable(f"budget '{key}' cost must not exceed {MOST_TOKENS}")


def draws_of(requests: Iterable[BudgetRequest]) -> Draws | None:
    """What is stored with the job; None where that is nothing."""
    return tuple([Draw(request.key, request.cost) for request in requests]) or None


class Account(msgspec.Struct, gc=False):
    """The tokens of a budget: whole ones, and what is over as parts of `duration_ms`, exactly.

    `now` is a time in milliseconds that may step back: nothing comes of that, and nothing is lost.
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

    def available(self, now: int) -> int:
        """How many tokens there are; fewer than none where the policy was narrowed."""
        policy = self.policy
        if policy.duration_ms is None:
            return policy.allocation - self.in_use
        if self.level >= policy.capacity:
            return policy.capacity
        gained = (self.carry + self._elapsed(now) * policy.allocation) // policy.duration_ms
        return min(self.level + gained, policy.capacity)

    def settle(self, now: int) -> None:
        """Write down what has come up to now."""
        policy = self.policy
        if policy.duration_ms is not None:
            total = self.carry + self._elapsed(now) * policy.allocation
            gained, self.carry = divmod(total, policy.duration_ms)
            self.level += gained
            if self.level >= policy.capacity:
                self.level, self.carry = policy.capacity, 0
        self.settled_at = now

    def draw(self, cost: int, now: int) -> None:
        """Let a job have its tokens as it comes to be in flight."""
        self.in_use += cost
        if self.policy.duration_ms is not None:
            self.settle(now)
            self.level = max(self.level - cost, 0)

    def give_back(self, cost: int) -> bool:
        """Note that a job is no longer in flight; whether there are more tokens by that."""
        self.in_use = max(self.in_use - cost, 0)
        return self.policy.duration_ms is None

    def pays(self, cost: int, now: int) -> int | None:
        """When it can pay, if nobody draws meanwhile; None where only a job's end can tell."""
        policy = self.policy
        if self.available(now) >= cost:
            return now
        if policy.duration_ms is None or cost > policy.capacity:
            return None
        missing = (cost - self.level) * policy.duration_ms - self.carry
        return self.settled_at + -(-missing // policy.allocation)

    def change(self, policy: BudgetPolicy, now: int) -> None:
        """Go by another policy from now on: what has come so far stays, as far as there is room."""
        left = max(self.available(now), 0)
        former = self.policy.duration_ms
        self.settle(now)
        self.policy, self.updated_at = policy, now
        self.level = min(left, policy.capacity)
        if policy.duration_ms is None or former is None or self.level == policy.capacity:
            self.carry = 0
        else:
            self.carry = self.carry * policy.duration_ms // former

    def _elapsed(self, now: int) -> int:
        return max(now - self.settled_at, 0)


class Line(msgspec.Struct, gc=False, eq=False):
    """The unfinished jobs of a queue that draw the same; `waiting` counts those that are ready."""

    id: int
    queue: str
    draws: Draws
    unfinished: int = 0
    waiting: int = 0


def opened(key: str, policy: BudgetPolicy, now: int, steady: int) -> Account:
    """The account of a new budget, which is full. `now` is for people, `steady` for tokens."""
    return Account(key, policy, now, now, level=policy.capacity, settled_at=steady)
