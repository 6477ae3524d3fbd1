"""The verbs about budgets, and about what jobs draw from them."""

from types import NoneType
from typing import Any

from zq.features.budgets.wire import (
    BindingBody,
    BindingsBody,
    BudgetDocument,
    BudgetsDocument,
    CostBody,
    HoldBody,
    PolicyBody,
    PolicyPatchBody,
    Rebindings,
)
from zq.features.sweeps.verbs import CHOSEN, SWEEPING
from zq.model.keys import KeyScope
from zq.verbs import Verb
from zq.wire.documents import JobDocument

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_BUDGET = "/budgets/{key}"
_OF_JOB = "/jobs/{id}/budgets"
_OF_JOBS = "/jobs/budgets"

_NO_BUDGET = {404: "There is no such budget."}
_FULL = {422: "Unfinished jobs need more than that, or there are too many budgets."}
_EXISTS = {409: "The budget exists already."}
_DRAWN = {409: "Unfinished jobs draw from it."}
_BINDING = {
    404: "There is no such job, or it does not draw from the budget.",
    409: "The job draws from the budget already.",
    422: "The job no longer waits, or a budget is missing or could never pay the cost.",
}
_UNPAID = {422: "A budget is missing or could never pay the cost."}

LIST = Verb("GET", "/budgets", READ, BudgetsDocument, whole=True)
GET = Verb("GET", _BUDGET, READ, BudgetDocument, refusals=_NO_BUDGET, whole=True)
CREATE = Verb(
    "POST",
    _BUDGET,
    MANAGE,
    BudgetDocument,
    PolicyBody,
    refusals=_EXISTS | _FULL,
    whole=True,
    created=True,
)
PUT = Verb("PUT", _BUDGET, MANAGE, BudgetDocument, PolicyBody, refusals=_FULL, whole=True)
CHANGE = Verb(
    "PATCH",
    _BUDGET,
    MANAGE,
    BudgetDocument,
    PolicyPatchBody,
    refusals=_NO_BUDGET | _FULL,
    whole=True,
)
HOLD = Verb(
    *("POST", _BUDGET + "/hold", KeyScope.TAKE, BudgetDocument, HoldBody),
    refusals=_NO_BUDGET | {422: "The time is too long."},
)
REOPEN = Verb("DELETE", _BUDGET + "/hold", MANAGE, BudgetDocument, refusals=_NO_BUDGET, whole=True)
DELETE = Verb("DELETE", _BUDGET, MANAGE, NoneType, refusals=_NO_BUDGET | _DRAWN, whole=True)


def _of_job(
    method: str, place: str, body: Any = None, *, optional: bool = False
) -> Verb[JobDocument]:
    """A verb about what one job draws."""
    return Verb(
        method, _OF_JOB + place, MANAGE, JobDocument, body, optional=optional, refusals=_BINDING
    )


def _of_jobs(
    method: str, place: str, body: Any = None, *, optional: bool = False
) -> Verb[Rebindings]:
    """A verb about what the matching jobs draw."""
    refusals = SWEEPING if body is None else _UNPAID | SWEEPING
    return Verb(
        *(method, _OF_JOBS + place, MANAGE, Rebindings, body),
        optional=optional,
        query=CHOSEN,
        refusals=refusals,
    )


REPLACE_OF_JOB = _of_job("PUT", "", BindingsBody)
CLEAR_JOB = _of_job("DELETE", "")
ADD_TO_JOB = _of_job("POST", "/{key}", BindingBody, optional=True)
PUT_TO_JOB = _of_job("PUT", "/{key}", BindingBody, optional=True)
CHANGE_OF_JOB = _of_job("PATCH", "/{key}", CostBody)
REMOVE_FROM_JOB = _of_job("DELETE", "/{key}")

CLEAR_JOBS = _of_jobs("DELETE", "")
ADD_TO_JOBS = _of_jobs("POST", "/{key}", BindingBody, optional=True)
PUT_TO_JOBS = _of_jobs("PUT", "/{key}", BindingBody, optional=True)
CHANGE_OF_JOBS = _of_jobs("PATCH", "/{key}", CostBody)
REMOVE_FROM_JOBS = _of_jobs("DELETE", "/{key}")
