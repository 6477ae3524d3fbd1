"""What the verbs about budgets do."""

from zq.answers import Asked, VerbAnswers
from zq.features.budgets import verbs
from zq.features.budgets.model import BudgetRequest
from zq.features.budgets.model_jobs import Binding
from zq.features.budgets.service import Budgets
from zq.features.budgets.wire import (
    BudgetDocument,
    BudgetsDocument,
    Rebindings,
    budget_document,
    decode_binding,
    decode_bindings,
    decode_cost,
    decode_hold,
    decode_policy,
    decode_policy_patch,
)
from zq.features.sweeps.answers import chosen
from zq.model.names import check_name
from zq.wire.documents import JobDocument, job_document
from zq.wire.ids import key_of
from zq.wire.query import refuse_filter_in_body

ANSWERS = VerbAnswers()

# Budgets


@ANSWERS.to(verbs.LIST)
async def list(asked: Asked) -> BudgetsDocument:
    """All budgets in the order of their keys, with their present tokens."""
    return BudgetsDocument([budget_document(each) for each in await _budgets(asked).all()])


@ANSWERS.to(verbs.GET)
async def get(asked: Asked) -> BudgetDocument:
    """One budget."""
    return budget_document(await _budgets(asked).get(_key(asked)))


@ANSWERS.to(verbs.CREATE)
async def create(asked: Asked) -> BudgetDocument:
    """Create a budget: 201, or 409 if there is one with this key."""
    key, policy = _key(asked), decode_policy(asked.body, asked.codec)
    return budget_document(await _budgets(asked).create(key, policy))


@ANSWERS.to(verbs.PUT)
async def put(asked: Asked) -> BudgetDocument:
    """Create a budget, or replace its policy: 422 if unfinished jobs need more tokens."""
    key, policy = _key(asked), decode_policy(asked.body, asked.codec)
    return budget_document(await _budgets(asked).put(key, policy))


@ANSWERS.to(verbs.CHANGE)
async def change(asked: Asked) -> BudgetDocument:
    """Change the given fields, also single fields of `strategy`. A null `burst` removes it."""
    key, patch = _key(asked), decode_policy_patch(asked.body, asked.codec)
    return budget_document(await _budgets(asked).change(key, patch))


@ANSWERS.to(verbs.HOLD)
async def hold(asked: Asked) -> BudgetDocument:
    """Have a budget pay nothing for a time, as a `Retry-After` of the service behind it asks.

    The time is `for_ms`, or `retry_after`: the number of seconds or the date of that header. A hold
    that lasts longer stays. Jobs that run are left alone, and tokens come as usual. A key that
    takes jobs is enough, if the name of the budget begins with one of its prefixes.
    """
    key, now = _key(asked), asked.services.clock.now_ms()
    asked.reach.require_budgets([key])
    for_ms = decode_hold(asked.body, asked.codec, now)
    return budget_document(await _budgets(asked).hold(key, for_ms))


@ANSWERS.to(verbs.REOPEN)
async def reopen(asked: Asked) -> BudgetDocument:
    """End the hold of a budget at once."""
    return budget_document(await _budgets(asked).reopen(_key(asked)))


@ANSWERS.to(verbs.DELETE)
async def delete(asked: Asked) -> None:
    """Delete a budget: 204, or 409 while unfinished jobs draw from it."""
    await _budgets(asked).delete(_key(asked))


# One job


@ANSWERS.to(verbs.ADD_TO_JOB)
async def add_to_job(asked: Asked) -> JobDocument:
    """Make a job draw from a budget: 409 if it does already."""
    return await _bind(asked, Binding("add", (_drawn(asked),)))


@ANSWERS.to(verbs.PUT_TO_JOB)
async def put_to_job(asked: Asked) -> JobDocument:
    """Set how much a job draws from a budget, whether or not it drew from it."""
    return await _bind(asked, Binding("put", (_drawn(asked),)))


@ANSWERS.to(verbs.CHANGE_OF_JOB)
async def change_of_job(asked: Asked) -> JobDocument:
    """Change how much a job draws from a budget: 404 if it does not draw from it."""
    wanted = decode_cost(_key(asked), asked.body, asked.codec)
    return await _bind(asked, Binding("change", (wanted,)))


@ANSWERS.to(verbs.REMOVE_FROM_JOB)
async def remove_from_job(asked: Asked) -> JobDocument:
    """Make a job no longer draw from a budget: 404 if it does not draw from it."""
    return await _bind(asked, Binding("remove", (BudgetRequest(_key(asked)),)))


@ANSWERS.to(verbs.REPLACE_OF_JOB)
async def replace_of_job(asked: Asked) -> JobDocument:
    """Make a job draw from these budgets only."""
    return await _bind(asked, Binding("replace", decode_bindings(asked.body, asked.codec)))


@ANSWERS.to(verbs.CLEAR_JOB)
async def clear_job(asked: Asked) -> JobDocument:
    """Make a job draw from no budget."""
    return await _bind(asked, Binding("replace"))


# Jobs by a filter


@ANSWERS.to(verbs.ADD_TO_JOBS)
async def add_to_jobs(asked: Asked) -> Rebindings:
    """Make the matching jobs draw from a budget. Jobs that do already stay unchanged.

    `blocked` names the jobs that are in flight and so cannot change. `kept` counts those that draw
    from 64 budgets already (`too_many_budgets`).
    """
    refuse_filter_in_body(asked.body, asked.codec)
    return await _bind_all(asked, Binding("add", (_drawn(asked),)))


@ANSWERS.to(verbs.PUT_TO_JOBS)
async def put_to_jobs(asked: Asked) -> Rebindings:
    """Set how much the matching jobs draw from a budget, whether or not they drew from it."""
    refuse_filter_in_body(asked.body, asked.codec)
    return await _bind_all(asked, Binding("put", (_drawn(asked),)))


@ANSWERS.to(verbs.CHANGE_OF_JOBS)
async def change_of_jobs(asked: Asked) -> Rebindings:
    """Change how much the matching jobs draw from a budget, if they draw from it."""
    refuse_filter_in_body(asked.body, asked.codec)
    wanted = decode_cost(_key(asked), asked.body, asked.codec)
    return await _bind_all(asked, Binding("change", (wanted,)))


@ANSWERS.to(verbs.REMOVE_FROM_JOBS)
async def remove_from_jobs(asked: Asked) -> Rebindings:
    """Make the matching jobs no longer draw from a budget."""
    return await _bind_all(asked, Binding("remove", (BudgetRequest(_key(asked)),)))


@ANSWERS.to(verbs.CLEAR_JOBS)
async def clear_jobs(asked: Asked) -> Rebindings:
    """Make the matching jobs draw from no budget."""
    return await _bind_all(asked, Binding("replace"))


async def _bind(asked: Asked, binding: Binding) -> JobDocument:
    ids = asked.services.ids
    job = await _budgets(asked).bind(key_of(asked.path["id"], ids), binding, asked.reach)
    return job_document(job, ids, with_payload=False)


async def _bind_all(asked: Asked, binding: Binding) -> Rebindings:
    # It changes those of the matching jobs that a patch would change.
    filter, author = await chosen(asked, "patch")
    done = await _budgets(asked).bind_all(filter, binding, author)
    blocked = [asked.services.ids.text(key) for key in done.blocked]
    return Rebindings(done.changed, blocked, dict(done.kept))


def _drawn(asked: Asked) -> BudgetRequest:
    return decode_binding(_key(asked), asked.body, asked.codec)


def _budgets(asked: Asked) -> Budgets:
    return asked.services[Budgets]


def _key(asked: Asked) -> str:
    return check_name("budget key", asked.path["key"])
