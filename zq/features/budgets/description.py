"""The parameters and answers of the routes about budgets."""

import msgspec

from zq.features.budgets import wire as budgets
from zq.features.budgets.wire import BudgetDocument
from zq.features.sweeps.description import CHOSEN, SWEEPING
from zq.http.api.description.operation import Operation
from zq.wire.documents import JobDocument


class BudgetsDocument(msgspec.Struct):
    """Budgets in the order of their keys."""

    budgets: list[BudgetDocument]


class Rebindings(msgspec.Struct):
    """How many jobs have changed draws, and which could not change because they are in flight."""

    changed: int
    blocked: list[str]


_NO_BUDGET = {404: "There is no such budget."}
_BUDGET_FULL = {422: "Unfinished jobs need more than that, or there are too many budgets."}
_BINDING = {
    404: "There is no such job, or it does not draw from the budget.",
    409: "The job draws from the budget already.",
    422: "The job no longer waits, or a budget is missing or could never pay the cost.",
}
_SWEEP_BINDING = {422: "A budget is missing or could never pay the cost."} | SWEEPING

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/budgets"): Operation({200: BudgetsDocument}),
    ("GET", "/budgets/{key}"): Operation({200: BudgetDocument}, refusals=_NO_BUDGET),
    ("POST", "/budgets/{key}"): Operation(
        {201: BudgetDocument},
        budgets.PolicyBody,
        refusals={409: "The budget exists already.", **_BUDGET_FULL},
    ),
    ("PUT", "/budgets/{key}"): Operation(
        {200: BudgetDocument}, budgets.PolicyBody, refusals=_BUDGET_FULL
    ),
    ("PATCH", "/budgets/{key}"): Operation(
        {200: BudgetDocument}, budgets.PolicyPatchBody, refusals=_NO_BUDGET | _BUDGET_FULL
    ),
    ("DELETE", "/budgets/{key}"): Operation(
        {204: None}, refusals={409: "Unfinished jobs draw from it.", **_NO_BUDGET}
    ),
    ("PUT", "/jobs/{id}/budgets"): Operation(
        {200: JobDocument}, budgets.BindingsBody, refusals=_BINDING
    ),
    ("DELETE", "/jobs/{id}/budgets"): Operation({200: JobDocument}, refusals=_BINDING),
    **{
        (method, "/jobs/{id}/budgets/{key}"): Operation(
            {200: JobDocument}, budgets.BindingBody, optional_body=True, refusals=_BINDING
        )
        for method in ("POST", "PUT")
    },
    ("PATCH", "/jobs/{id}/budgets/{key}"): Operation(
        {200: JobDocument}, budgets.CostBody, refusals=_BINDING
    ),
    ("DELETE", "/jobs/{id}/budgets/{key}"): Operation({200: JobDocument}, refusals=_BINDING),
    **{
        (method, "/jobs/budgets/{key}"): Operation(
            {200: Rebindings},
            budgets.BindingBody,
            optional_body=True,
            parameters=CHOSEN,
            refusals=_SWEEP_BINDING,
        )
        for method in ("POST", "PUT")
    },
    ("PATCH", "/jobs/budgets/{key}"): Operation(
        {200: Rebindings}, budgets.CostBody, parameters=CHOSEN, refusals=_SWEEP_BINDING
    ),
    ("DELETE", "/jobs/budgets/{key}"): Operation(
        {200: Rebindings}, parameters=CHOSEN, refusals=SWEEPING
    ),
    ("DELETE", "/jobs/budgets"): Operation({200: Rebindings}, parameters=CHOSEN, refusals=SWEEPING),
}
