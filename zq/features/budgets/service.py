"""The verbs about budgets, and about the draws of jobs."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from zq.engine.inbox import Inbox
from zq.features.budgets.model import (
    BudgetNotFound,
    BudgetPatch,
    BudgetPolicy,
    BudgetState,
    unpayable,
)
from zq.features.budgets.model_jobs import (
    Binding,
    BindJob,
    ChangeBudget,
    CreateBudget,
    DeleteBudget,
    HoldBudget,
    PutBudget,
    ReopenBudget,
)
from zq.features.budgets.store import BudgetReads
from zq.features.sweeps.model import NOBODY, SweepAuthor
from zq.features.sweeps.service_running import Sweeps
from zq.model.clock import Clock
from zq.model.filters import Filter
from zq.model.ids import IdCodec
from zq.model.job import JobRecord
from zq.model.reach import Reach
from zq.service.services import Services
from zq.store.api import Store


class Rebound(NamedTuple):
    """How many jobs have new draws, and the keys of the jobs that keep theirs, as they run.

    `kept` counts others that keep theirs, by the codes of the reasons.
    """

    changed: int
    blocked: list[int]
    kept: Mapping[str, int]


class Budgets:
    """Budgets belong to no queue: a caller who may use budgets at all may use all of them."""

    @classmethod
    def of(cls, services: Services) -> Self:
        store, clock, inbox = services.store, services.clock, services.engine.inbox
        return cls(store, clock, services.ids, inbox, services[Sweeps])

    def __init__(
        self, store: Store, clock: Clock, ids: IdCodec, inbox: Inbox, sweeps: Sweeps
    ) -> None:
        self._reads = store.reads.of(BudgetReads)
        self._clock = clock
        self._ids = ids
        self._inbox = inbox
        self._sweeps = sweeps

    async def all(self) -> list[BudgetState]:
        """All budgets, by key."""
        return await self._reads.budgets(None, self._clock.now_ms())

    async def get(self, key: str) -> BudgetState:
        """One budget. Raises `BudgetNotFound`."""
        found = await self._reads.budgets(key, self._clock.now_ms())
        if not found:
            raise BudgetNotFound(key)
        return found[0]

    async def create(self, key: str, policy: BudgetPolicy) -> BudgetState:
        """Create a budget. Raises `BudgetExists`, or `Unprocessable` if there are too many."""
        return await self._inbox.ask(CreateBudget(key, policy))

    async def put(self, key: str, policy: BudgetPolicy) -> BudgetState:
        """Create or replace a budget. Raises `Unprocessable` if jobs need more than it has."""
        return await self._inbox.ask(PutBudget(key, policy))

    async def change(self, key: str, patch: BudgetPatch) -> BudgetState:
        """Change a budget field by field. Raises `BudgetNotFound` or `Unprocessable`."""
        return await self._inbox.ask(ChangeBudget(key, patch))

    async def hold(self, key: str, for_ms: int) -> BudgetState:
        """Have a budget pay nothing for a time. Raises `BudgetNotFound`."""
        return await self._inbox.ask(HoldBudget(key, for_ms))

    async def reopen(self, key: str) -> BudgetState:
        """End the hold of a budget. Raises `BudgetNotFound`."""
        return await self._inbox.ask(ReopenBudget(key))

    async def delete(self, key: str) -> None:
        """Delete a budget. Raises `BudgetNotFound` or `BudgetInUse`."""
        await self._inbox.ask(DeleteBudget(key))

    async def bind(self, key: int, binding: Binding, reach: Reach) -> JobRecord:
        """Change what one job draws. Return the changed job.

        Raises `JobNotFound`, `BudgetBound`, `BudgetNotBound`, `TooManyBudgets`, or `Unprocessable`
        if the job no longer waits, or a budget is missing or too small.
        """
        reach.require_budgets(_made(binding))
        text_id = self._ids.text(key)
        return await self._inbox.ask(BindJob(key, text_id, binding, reach))

    async def bind_all(
        self, filter: Filter, binding: Binding, author: SweepAuthor = NOBODY
    ) -> Rebound:
        """Change what the matching jobs draw. Raises `Unprocessable` or `TooManySweeps`."""
        filter.reach.require_budgets(_made(binding))
        for request in binding.requests:
            if binding.verb == "remove":
                continue
            found = await self._reads.budgets(request.key, self._clock.now_ms())
            policy = found[0].policy if found else request.create_with
            if (refused := unpayable(request.key, policy, request.cost)) is not None:
                raise refused
        sweep = await self._sweeps.bind(filter, binding, author)
        return Rebound(sweep.changed, sweep.blocked, sweep.kept)


def _made(binding: Binding) -> list[str]:
    """The budgets that a binding may make."""
    return [request.key for request in binding.requests if request.create_with is not None]
