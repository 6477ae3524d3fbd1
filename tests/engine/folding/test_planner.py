"""A round of folds is planned as if all plans before were carried out; so are names."""

from collections.abc import AsyncIterator

import pytest
from rooms import joining

from zq.features.batches.engine_jq import Evaluator, FoldRequest, Host, JqFolds
from zq.features.batches.engine_planner import Order, Planner
from zq.features.batches.model import BatchRule
from zq.features.batches.model_jobs import BatchPlan, HostPlace, StalePlan
from zq.model.commands import Enqueue
from zq.model.errors import ZqError
from zq.model.job import DedupeRule, NewJob
from zq.model.reach import EVERYWHERE

RULE = BatchRule("b", "true", "$existing + $new")


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    pytest.importorskip("jq")
    folds = JqFolds(seconds=30.0)
    yield Evaluator(folds, 1 << 20, [])
    await folds.close()


def named(key: int, *names: str) -> FoldRequest:
    jobs = [
        NewJob("q", "t", "[1]", 3, dedupe=DedupeRule(name), extras=joining(RULE)) for name in names
    ]
    return FoldRequest(range(key, key + len(jobs)), jobs, 0, 3 * len(jobs), EVERYWHERE)


async def planned(evaluator: Evaluator, *requests: FoldRequest) -> list[Order]:
    def refuse(request: FoldRequest, error: ZqError) -> None:
        raise error

    host = Host(HostPlace(1, 0), RULE, "q", "[0]")
    planner = Planner(evaluator, {"b": host}, refuse, lambda requests, host: None)
    return await planner.plan(requests)


def copies(order: Order) -> list[int]:
    assert isinstance(order.command, Enqueue)
    assert isinstance(order.command.plan, BatchPlan)
    return sorted(order.command.plan.copies)


async def test_race_copies_of_one_name_come_in_different_rounds(evaluator: Evaluator) -> None:
    """Each of two copies was planned once as the first, once as a copy, and never in one way."""
    first, known, late = named(10, "n"), named(20, "n"), named(30, "n")
    (order,) = await planned(evaluator, first)
    Order(order.command, [known]).learn(StalePlan(frozenset({0})))
    orders = await planned(evaluator, first, known, late)
    assert [(order.requests, copies(order)) for order in orders] == [
        ([first], []),
        ([known], [0]),
        ([late], [0]),
    ]


async def test_copies_within_one_request_are_planned_as_copies(evaluator: Evaluator) -> None:
    (order,) = await planned(evaluator, named(10, "n", "m", "n"))
    assert copies(order) == [2]


async def test_a_copy_of_a_job_that_is_refused_is_planned_as_the_first_again(
    evaluator: Evaluator,
) -> None:
    copy = named(20, "n")
    (_, order) = await planned(evaluator, named(10, "n"), copy)
    assert copies(order) == [0]
    # The tick has not stored the first one, and does not know the name.
    order.learn(StalePlan(frozenset()))
    (again,) = await planned(evaluator, copy)
    assert copies(again) == []
