"""Budgets, and the draws of jobs."""

from aiohttp import web

from zq.features.budgets.commands import Binding
from zq.features.budgets.model import BudgetRequest
from zq.features.budgets.service import Budgets
from zq.features.budgets.wire import (
    budget_document,
    decode_binding,
    decode_bindings,
    decode_cost,
    decode_policy,
    decode_policy_patch,
)
from zq.features.sweeps.http_author import Choices
from zq.http.api.endpoints import BodyEndpoints, answer, endpoint
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.service.services import Services
from zq.wire.codecs import BodyCodec
from zq.wire.documents import job_document
from zq.wire.ids import key_of
from zq.wire.query import refuse_filter_in_body

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

BUDGET = "/budgets/{key}"
OF_JOB = "/jobs/{id}/budgets"
OF_JOBS = "/jobs/budgets"


class BudgetsApi:
    """`/budgets`, which needs a key of all queues, and the budgets of jobs."""

    def __init__(self, services: Services, endpoints: BodyEndpoints) -> None:
        self._budgets, self._ids = services[Budgets], services.ids
        self._choices = Choices(services)
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        change = self._endpoints.change
        of_one, of_many = f"{OF_JOB}/{{key}}", f"{OF_JOBS}/{{key}}"
        return [
            Route("GET", "/budgets", endpoint(self.list), READ, whole=True),
            Route("GET", BUDGET, endpoint(self.get), READ, whole=True),
            Route("POST", BUDGET, change(self.create), MANAGE, whole=True),
            Route("PUT", BUDGET, change(self.replace), MANAGE, whole=True),
            Route("PATCH", BUDGET, change(self.change), MANAGE, whole=True),
            Route("DELETE", BUDGET, endpoint(self.delete), MANAGE, whole=True),
            Route("PUT", OF_JOB, change(self.replace_of_job), MANAGE),
            Route("DELETE", OF_JOB, endpoint(self.clear_job), MANAGE),
            Route("POST", of_one, change(self.add_to_job, optional=True), MANAGE),
            Route("PUT", of_one, change(self.put_to_job, optional=True), MANAGE),
            Route("PATCH", of_one, change(self.change_of_job), MANAGE),
            Route("DELETE", of_one, endpoint(self.remove_from_job), MANAGE),
            Route("DELETE", OF_JOBS, endpoint(self.clear_jobs), MANAGE, query=True),
            Route("POST", of_many, change(self.add_to_jobs, optional=True), MANAGE, query=True),
            Route("PUT", of_many, change(self.put_to_jobs, optional=True), MANAGE, query=True),
            Route("PATCH", of_many, change(self.change_of_jobs), MANAGE, query=True),
            Route("DELETE", of_many, endpoint(self.remove_from_jobs), MANAGE, query=True),
        ]

    # Budgets

    async def list(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """All budgets in the order of their keys, with their present tokens."""
        parameters(request, ())
        budgets = await self._budgets.all()
        return answer({"budgets": list(map(budget_document, budgets))}, accepted)

    async def get(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """One budget."""
        return answer(budget_document(await self._budgets.get(_key(request))), accepted)

    async def create(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Create a budget: 201, or 409 if there is one with this key."""
        budget = await self._budgets.create(_key(request), decode_policy(body, sent))
        return answer(budget_document(budget), accepted, 201)

    async def replace(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Create a budget, or replace its policy: 422 if unfinished jobs need more tokens."""
        budget = await self._budgets.put(_key(request), decode_policy(body, sent))
        return answer(budget_document(budget), accepted)

    async def change(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Change the given fields, also single fields of `strategy`. A null `burst` removes it."""
        budget = await self._budgets.change(_key(request), decode_policy_patch(body, sent))
        return answer(budget_document(budget), accepted)

    async def delete(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Delete a budget: 204, or 409 while unfinished jobs draw from it."""
        await self._budgets.delete(_key(request))
        return Answer(204)

    # One job

    async def add_to_job(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Make a job draw from a budget: 409 if it does already."""
        wanted = decode_binding(_key(request), body, sent)
        return await self._bind(request, accepted, Binding("add", (wanted,)))

    async def put_to_job(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Set how much a job draws from a budget, whether or not it drew from it."""
        wanted = decode_binding(_key(request), body, sent)
        return await self._bind(request, accepted, Binding("put", (wanted,)))

    async def change_of_job(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Change how much a job draws from a budget: 404 if it does not draw from it."""
        wanted = decode_cost(_key(request), body, sent)
        return await self._bind(request, accepted, Binding("change", (wanted,)))

    async def remove_from_job(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Make a job no longer draw from a budget: 404 if it does not draw from it."""
        wanted = BudgetRequest(_key(request))
        return await self._bind(request, accepted, Binding("remove", (wanted,)))

    async def replace_of_job(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Make a job draw from these budgets only."""
        wanted = decode_bindings(body, sent)
        return await self._bind(request, accepted, Binding("replace", wanted))

    async def clear_job(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Make a job draw from no budget."""
        return await self._bind(request, accepted, Binding("replace"))

    # Jobs by a filter

    async def add_to_jobs(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Make the matching jobs draw from a budget. Jobs that do already stay unchanged.

        `blocked` names the jobs that are in flight and so cannot change.
        """
        refuse_filter_in_body(body, sent)
        wanted = decode_binding(_key_of_many(request), body, sent)
        return await self._bind_all(request, accepted, Binding("add", (wanted,)))

    async def put_to_jobs(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Set how much the matching jobs draw from a budget, whether or not they drew from it."""
        refuse_filter_in_body(body, sent)
        wanted = decode_binding(_key_of_many(request), body, sent)
        return await self._bind_all(request, accepted, Binding("put", (wanted,)))

    async def change_of_jobs(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Change how much the matching jobs draw from a budget, if they draw from it."""
        refuse_filter_in_body(body, sent)
        wanted = decode_cost(_key_of_many(request), body, sent)
        return await self._bind_all(request, accepted, Binding("change", (wanted,)))

    async def remove_from_jobs(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Make the matching jobs no longer draw from a budget."""
        wanted = BudgetRequest(_key_of_many(request))
        return await self._bind_all(request, accepted, Binding("remove", (wanted,)))

    async def clear_jobs(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Make the matching jobs draw from no budget."""
        return await self._bind_all(request, accepted, Binding("replace"))

    async def _bind(
        self, request: web.BaseRequest, accepted: BodyCodec, binding: Binding
    ) -> Answer:
        parameters(request, ())
        key = key_of(request[PATH]["id"], self._ids)
        job = await self._budgets.bind(key, binding, reach_of(request))
        return answer(job_document(job, self._ids, with_payload=False), accepted)

    async def _bind_all(
        self, request: web.BaseRequest, accepted: BodyCodec, binding: Binding
    ) -> Answer:
        # It changes those of the matching jobs that a patch would change.
        filter, author = await self._choices.of(request, "patch")
        changed, blocked = await self._budgets.bind_all(filter, binding, author)
        named = [self._ids.text(key) for key in blocked]
        return answer({"changed": changed, "blocked": named}, accepted)


def _key(request: web.BaseRequest) -> str:
    parameters(request, ())
    return _key_of_many(request)


def _key_of_many(request: web.BaseRequest) -> str:
    return check_name("budget key", request[PATH]["key"])
