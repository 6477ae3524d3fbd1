"""Budgets of an engine in this process."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from zq.client.embedded.deliveries import Do
from zq.client.embedded.words import filter_of, stored_job
from zq.client.formats import JSON
from zq.client.values import JobQuery, StoredJob
from zq.features.budgets.client import (
    BindingReport,
    BindingVerb,
    LimitPatch,
    ShownBudget,
    check_binding,
)
from zq.features.budgets.client_limits import Budget, Limit
from zq.features.budgets.commands import Binding
from zq.features.budgets.model import BudgetState
from zq.features.budgets.service import Budgets
from zq.features.budgets.wire import (
    budget_document,
    decode_policy,
    decode_policy_patch,
    requests_of,
)
from zq.model.names import check_name
from zq.model.reach import EVERYWHERE
from zq.service.services import Services
from zq.wire import codecs as wire
from zq.wire.documents import job_document
from zq.wire.ids import key_of

T = TypeVar("T")


class EmbeddedBudgets:
    """The budgets of an engine, through its service."""

    def __init__(self, do: Do) -> None:
        self._do = do

    async def all(self) -> list[ShownBudget]:
        """Every budget by its key."""
        return list(map(_shown, await self._do(lambda services: services[Budgets].all())))

    async def get(self, key: str) -> ShownBudget:
        """One budget."""
        return _shown(await self._ask(key, Budgets.get))

    async def create(self, key: str, limit: Limit) -> ShownBudget:
        """Create a budget."""
        policy = decode_policy(JSON.encode(limit.wire()), wire.JSON)
        return _shown(await self._ask(key, lambda budgets, key: budgets.create(key, policy)))

    async def put(self, key: str, limit: Limit) -> ShownBudget:
        """Create a budget, or replace its limit."""
        policy = decode_policy(JSON.encode(limit.wire()), wire.JSON)
        return _shown(await self._ask(key, lambda budgets, key: budgets.put(key, policy)))

    async def change(self, key: str, patch: LimitPatch) -> ShownBudget:
        """Change some fields of a budget's limit."""
        text = JSON.encode(patch.wire())

        async def verb(budgets: Budgets, key: str) -> BudgetState:
            return await budgets.change(key, decode_policy_patch(text, wire.JSON))

        return _shown(await self._ask(key, verb))

    async def remove(self, key: str) -> None:
        """Delete a budget."""
        await self._ask(key, Budgets.delete)

    async def bind(self, id: str, verb: BindingVerb, *budgets: Budget) -> StoredJob:
        """Change what a job draws."""
        check_binding(verb, budgets, many=False)

        async def bind(services: Services) -> StoredJob:
            key = key_of(id, services.ids)
            job = await services[Budgets].bind(key, _binding(verb, budgets), EVERYWHERE)
            return stored_job(job_document(job, services.ids, with_payload=False))

        return await self._do(bind)

    async def bind_all(self, query: JobQuery, verb: BindingVerb, *budgets: Budget) -> BindingReport:
        """Change what the matching jobs draw."""
        check_binding(verb, budgets, many=True)

        async def bind(services: Services) -> BindingReport:
            ids = services.ids
            filter = filter_of(query, ids)
            changed, blocked = await services[Budgets].bind_all(filter, _binding(verb, budgets))
            return BindingReport(changed, list(map(ids.text, blocked)))

        return await self._do(bind)

    async def _ask(self, key: str, verb: Callable[[Budgets, str], Coroutine[Any, Any, T]]) -> T:
        """The result of a verb about the budget with this key."""

        async def checked(services: Services) -> T:
            return await verb(services[Budgets], check_name("budget key", key))

        return await self._do(checked)


def _binding(verb: BindingVerb, budgets: Sequence[Budget]) -> Binding:
    return Binding(verb, requests_of([budget.wire() for budget in budgets]))


def _shown(budget: BudgetState) -> ShownBudget:
    return JSON.decode(wire.JSON.encode(budget_document(budget)), ShownBudget)
