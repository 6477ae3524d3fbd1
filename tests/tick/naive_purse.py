"""One budget of the naive queue: its tokens as fractions, and how its policy changes."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import msgspec

from zq.features.budgets.model import BudgetPatch, BudgetPolicy
from zq.model.errors import Unprocessable
from zq.model.patching import UNSET


@dataclass
class Purse:
    """A budget, and the tokens that it had at the time `since`, where they come with time."""

    policy: BudgetPolicy
    created_at: int
    updated_at: int
    since: int
    level: Fraction

    def left(self, now: int, drawn: int) -> Fraction:
        """The tokens that it has while jobs in flight have `drawn` so many."""
        if self.policy.duration_ms is None:
            return Fraction(self.policy.allocation - drawn)
        passed = max(now - self.since, 0)
        came = Fraction(passed * self.policy.allocation, self.policy.duration_ms)
        return min(self.level + came, Fraction(self.policy.capacity))

    def spend(self, now: int, cost: int) -> None:
        """Have tokens of the kind gone that does not come back."""
        if self.policy.duration_ms is not None:
            self.level = self.left(now, 0) - cost
            self.since = now

    def change(self, policy: BudgetPolicy, now: int, drawn: int) -> None:
        """Keep the tokens that have come so far, as far as there is room."""
        left = max(self.left(now, drawn), Fraction(0))
        part, former = left % 1, self.policy.duration_ms
        self.policy, self.since = policy, now
        self.level = Fraction(min(floor(left), policy.capacity))
        if former and policy.duration_ms and self.level < policy.capacity:
            # What is over is counted in parts of the new duration.
            self.level += Fraction(floor(part * policy.duration_ms), policy.duration_ms)

    def pays(self, now: int, drawn: int, cost: int) -> int | None:
        """When there are so many tokens by time alone; None where there never are."""
        left = self.left(now, drawn)
        if left >= cost:
            return now
        if self.policy.duration_ms is None or cost > self.policy.capacity:
            return None
        missing = (cost - self.level) * self.policy.duration_ms / self.policy.allocation
        return self.since + ceil(missing)


def merged(policy: BudgetPolicy, patch: BudgetPatch) -> BudgetPolicy:
    """A policy with what a patch says; a duration and a burst go with the kind that has them."""
    if patch.allocation is not UNSET:
        policy = msgspec.structs.replace(policy, allocation=patch.allocation)
    if patch.kind == "while_in_flight":
        return BudgetPolicy(policy.allocation)
    if patch.duration_ms is not UNSET:
        policy = msgspec.structs.replace(policy, duration_ms=patch.duration_ms)
    if patch.burst is not UNSET:
        if policy.duration_ms is None and patch.burst is not None:
            # Another change of the same tick has taken the kind away that has one.
            raise Unprocessable("while_in_flight budget does not take burst: leave it out")
        policy = msgspec.structs.replace(policy, burst=patch.burst)
    return policy
