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
    held_until: int = 0

    def left(self, now: int, drawn: int) -> Fraction:
        """The tokens that it pays with while jobs in flight have `drawn` so many."""
        there = self.tokens(now, drawn)
        return min(there, Fraction(0)) if self.held_until > now else there

    def tokens(self, now: int, drawn: int) -> Fraction:
        """The tokens that it has, also while it is held."""
        if self.policy.duration_ms is None:
            return Fraction(self.policy.allocation - drawn)
        passed = max(now - self.since, 0)
        came = Fraction(passed * self.policy.allocation, self.policy.duration_ms)
        return min(self.level + came, Fraction(self.policy.capacity))

    def spend(self, now: int, cost: int) -> None:
        """Have tokens of the kind gone that does not come back."""
        if self.policy.duration_ms is not None:
            self.level = self.tokens(now, 0) - cost
            self.since = now

    def correct(self, now: int, cost: int, used: int) -> None:
        """Have a job that has drawn `cost` tokens of that kind draw what it has used."""
        if self.policy.duration_ms is not None:
            more = self.tokens(now, 0) + cost - used
            self.level, self.since = min(more, Fraction(self.policy.capacity)), now

    def change(self, policy: BudgetPolicy, now: int, drawn: int) -> None:
        """Keep the tokens that have come so far, as far as there is room."""
        left, former = self.tokens(now, drawn), self.policy.duration_ms
        if not former or not policy.duration_ms:
            left = max(left, Fraction(0))
        part = left % 1
        self.policy, self.since = policy, now
        self.level = Fraction(min(floor(left), policy.capacity))
        if former and policy.duration_ms and self.level < policy.capacity:
            # What is over is counted in parts of the new duration.
            self.level += Fraction(floor(part * policy.duration_ms), policy.duration_ms)

    def pays(self, now: int, drawn: int, cost: int) -> int | None:
        """When there are so many tokens by time alone; None where there never are."""
        held = max(self.held_until, now)
        if self.tokens(now, drawn) >= cost:
            return held
        if self.policy.duration_ms is None or cost > self.policy.capacity:
            return None
        missing = (cost - self.level) * self.policy.duration_ms / self.policy.allocation
        return max(self.since + ceil(missing), held)


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
