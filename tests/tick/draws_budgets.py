"""Random budgets, and random draws of jobs and their changes."""

from collections.abc import Callable
from typing import Literal

import msgspec
from hypothesis import strategies as st

from zq.features.budgets.model import BudgetPatch, BudgetPolicy, BudgetRequest
from zq.features.budgets.model import Draw as TokenDraw
from zq.features.budgets.model_jobs import (
    Binding,
    BindJob,
    BindSlice,
    ChangeBudget,
    CreateBudget,
    DeleteBudget,
    HoldBudget,
    PutBudget,
    ReopenBudget,
)
from zq.model.commands import AnyCommand
from zq.model.ids import Mint
from zq.model.job import NO_OPTIONS, NewJob
from zq.model.lifecycle import Status
from zq.model.patching import UNSET
from zq.model.unique import Scope

from .draws import Draw, booleans
from .draws_values import mostly
from .naive_budgets import BudgetingQueue

BUDGETS = ["x", "y", "ü/\"'"]
MOST_COST = 3

allocations = st.integers(1, 4)
durations = st.sampled_from([1, 700, 1_000, 60_000])
bursts = st.none() | st.integers(1, 5)
policies = st.builds(BudgetPolicy, allocations) | st.builds(
    BudgetPolicy, allocations, durations, bursts
)
patches = (
    st.builds(BudgetPatch, allocations)
    | st.just(BudgetPatch())
    | st.just(BudgetPatch(kind="while_in_flight"))
    | st.builds(
        BudgetPatch,
        st.just(UNSET) | allocations,
        st.just("time_based"),
        durations,
        st.just(UNSET) | bursts,
    )
)
keys = st.sampled_from(BUDGETS)
verbs: st.SearchStrategy[Literal["add", "put", "change", "remove", "replace"]] = st.sampled_from(
    ("add", "put", "change", "remove", "replace")
)
costs = st.sampled_from([1, 1, 1, 2, 2, MOST_COST])
numbers_of_draws = st.sampled_from([0, 0, 0, 1, 1, 2])
up_to_two = st.integers(0, 2)


class BudgetDraw(Draw):
    """Draws commands about budgets too."""

    def __init__(self, data: st.DataObject, queue: BudgetingQueue, mint: Mint, now: int) -> None:
        super().__init__(data, queue, mint, now)
        self._purses = queue.purses

    def _kinds_of_change(self) -> tuple[Callable[[], AnyCommand], ...]:
        kinds = (self._put_budget, self._put_budget, self._change_budget, self._delete_budget)
        holds = (self._hold_budget, self._reopen_budget)
        binds = (self._bind, self._bind, self._bind_slice)
        return super()._kinds_of_change() + kinds + holds + binds

    def _job(self, key_and_scope: tuple[str | None, Scope | None]) -> NewJob:
        job = super()._job(key_and_scope)
        requests = self._requests(self._draw(numbers_of_draws))
        if not requests:
            return job
        draws = tuple(TokenDraw(request.key, request.cost) for request in requests)
        made = {r.key: r.create_with for r in requests if r.create_with is not None}
        return msgspec.structs.replace(
            job,
            options=msgspec.structs.replace(job.options or NO_OPTIONS, budgets=draws),
            makes=made or None,
        )

    def _requests(self, many: int) -> list[BudgetRequest]:
        return [self._request(key) for key in self._several(BUDGETS, many, many, unique=True)]

    def _request(self, key: str) -> BudgetRequest:
        """Something that its budget can pay, as a rule; a budget that is not there is brought."""
        cost, policy = self._draw(costs), None
        known = self._purses.get(key)
        if known is not None and self._draw(mostly):
            cost = min(cost, known.policy.capacity)
        if (known is None) is self._draw(mostly):
            policy = self._draw(policies)
            if known is None:
                cost = min(cost, policy.capacity)
        return BudgetRequest(key, cost, policy)

    def _put_budget(self) -> AnyCommand:
        key, policy = self._draw(keys), self._draw(policies)
        return CreateBudget(key, policy) if self._draw(booleans) else PutBudget(key, policy)

    def _change_budget(self) -> AnyCommand:
        key, patch = self._draw(keys), self._draw(patches)
        known = self._purses.get(key)
        # A burst is of one kind only, and may change alone.
        fits = known is not None and known.policy.duration_ms is not None
        if patch.kind is UNSET and fits and self._draw(booleans):
            patch = msgspec.structs.replace(patch, burst=self._draw(bursts))
        return ChangeBudget(key, patch)

    def _hold_budget(self) -> AnyCommand:
        return HoldBudget(self._draw(keys), self._draw(durations))

    def _reopen_budget(self) -> AnyCommand:
        return ReopenBudget(self._draw(keys))

    def _delete_budget(self) -> AnyCommand:
        return DeleteBudget(self._draw(keys))

    def _bind(self) -> AnyCommand:
        waiting = self._queue.keys(Status.SCHEDULED, Status.READY)
        aimed = bool(waiting) and self._draw(mostly)
        key = self._one(waiting) if aimed else self._key()
        return BindJob(key, "ID", self._binding())

    def _bind_slice(self) -> AnyCommand:
        whole = self._draw(booleans)
        chosen: list[int] = self._queue.keys() if whole else self._keys()
        return BindSlice(chosen, self.filter(), self._binding())

    def _binding(self) -> Binding:
        verb = self._draw(verbs)
        if verb == "replace":
            return Binding(verb, tuple(self._requests(self._draw(up_to_two))))
        request = self._request(self._draw(keys))
        if verb in ("change", "remove"):
            request = msgspec.structs.replace(request, create_with=None)
        return Binding(verb, (request,))
