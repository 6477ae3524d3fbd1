"""Budgets over HTTP."""

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from zq.client.http.calls import SWEEP_MS, HttpCall, HttpRead, filtered, job_path
from zq.client.http.transport import Reply
from zq.client.values import JobQuery, StoredJob
from zq.features.budgets.client import (
    BindingReport,
    BindingVerb,
    LimitPatch,
    ShownBudget,
    check_binding,
)
from zq.features.budgets.client_limits import Budget, Limit
from zq.features.budgets.wire import BindingBody

METHODS = {"add": "POST", "put": "PUT", "change": "PATCH", "remove": "DELETE"}
REPEATABLE = ("put", "change", "replace")


class _Budgets(msgspec.Struct):
    budgets: list[ShownBudget]


class HttpBudgets:
    """The budgets of a server, through the requests of its backend."""

    def __init__(self, call: HttpCall, read: HttpRead) -> None:
        self._call = call
        self._read = read

    async def all(self) -> list[ShownBudget]:
        """Every budget by its key."""
        return self._read(await self._call("GET", "/budgets"), _Budgets).budgets

    async def get(self, key: str) -> ShownBudget:
        """One budget."""
        return self._shown(await self._call("GET", _place(key)))

    async def create(self, key: str, limit: Limit) -> ShownBudget:
        """Create a budget."""
        return self._shown(await self._call("POST", _place(key), limit.wire()))

    async def put(self, key: str, limit: Limit) -> ShownBudget:
        """Create a budget, or replace its limit."""
        return self._shown(await self._call("PUT", _place(key), limit.wire(), safe=True))

    async def change(self, key: str, patch: LimitPatch) -> ShownBudget:
        """Change some fields of a budget's limit."""
        return self._shown(await self._call("PATCH", _place(key), patch.wire(), safe=True))

    async def remove(self, key: str) -> None:
        """Delete a budget."""
        await self._call("DELETE", _place(key))

    async def bind(self, id: str, verb: BindingVerb, *budgets: Budget) -> StoredJob:
        """Change what a job draws."""
        check_binding(verb, budgets, many=False)
        method, path, body = _binding(job_path(id), verb, budgets)
        reply = await self._call(method, path, body, safe=verb in REPEATABLE)
        return self._read(reply, StoredJob)

    async def bind_all(self, query: JobQuery, verb: BindingVerb, *budgets: Budget) -> BindingReport:
        """Change what the matching jobs draw."""
        check_binding(verb, budgets, many=True)
        method, path, body = _binding("/jobs", verb, budgets)
        path = filtered(path, query)
        reply = await self._call(method, path, body, safe=verb in REPEATABLE, wait_ms=SWEEP_MS)
        return self._read(reply, BindingReport)

    def _shown(self, reply: Reply) -> ShownBudget:
        return self._read(reply, ShownBudget)


def _place(key: str) -> str:
    return f"/budgets/{quote(key, safe='')}"


def _binding(jobs: str, verb: BindingVerb, budgets: Sequence[Budget]) -> tuple[str, str, object]:
    """Method, path and body of a request."""
    sent = [budget.wire() for budget in budgets]
    if verb == "replace":
        path = f"{jobs}/budgets"
        return ("PUT", path, {"budgets": sent}) if sent else ("DELETE", path, None)
    (draw,) = sent
    body = None if verb == "remove" else BindingBody(draw.cost, draw.create_with)
    return METHODS[verb], jobs + _place(draw.key), body
