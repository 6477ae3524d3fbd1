"""Jobs that a claim has chosen and then left use up no limit, and keep no others out."""

from collections.abc import Sequence

import msgspec
import pytest
from store.rig import Ticker, new_job

from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget, drawing
from zq.features.fair.model import FairLimit
from zq.features.fair.model_jobs import PutFairLimit
from zq.model.commands import AnyCommand, Claim, SetQueue
from zq.model.job import JobSettings, NewJob
from zq.model.leasing import MOST_CLAIMED_BYTES, Terms
from zq.model.settings import FairRule, QueueSettings
from zq.tick.due import SLICE

KEYED = JobSettings(fair_key="b")  # type: ignore[call-arg]
DRAWING = drawing((Draw("crm"),))
BOTH = msgspec.structs.replace(DRAWING, fair_key="b")
ONE = BudgetPolicy(1)

LIMITS = {
    "a key in flight": (KEYED, [PutFairLimit("b", "b", FairLimit(max_in_flight=1))]),
    "the rate of a key": (KEYED, [PutFairLimit("b", "b", FairLimit(rate=1))]),
    "keys of a queue": (KEYED, [SetQueue("b", QueueSettings(fair=FairRule(max_in_flight=1)))]),
    "a budget": (DRAWING, [CreateBudget("crm", ONE)]),
    "a budget of a key": (BOTH, [CreateBudget("crm", ONE)]),
    "a budget of a full key": (
        BOTH,
        [
            CreateBudget("crm", BudgetPolicy(2)),
            PutFairLimit("b", "b", FairLimit(max_in_flight=1)),
        ],
    ),
    "a queue in flight": (None, [SetQueue("b", QueueSettings(concurrency=1))]),
    "the rate of a queue": (None, [SetQueue("b", QueueSettings(rate=1))]),
    "keys of a full queue": (KEYED, [SetQueue("b", QueueSettings(concurrency=1))]),
}
"""Limits that let one job of queue b through, and what makes them hold for it."""

by_limit = pytest.mark.parametrize(("options", "limit"), LIMITS.values(), ids=list(LIMITS))


def large(queue: str, options: JobSettings | None = None) -> NewJob:
    """A job with which a claimant has taken more than half of the bytes that it takes at once."""
    job = new_job(queue=queue, options=options)
    return msgspec.structs.replace(job, payload_size=MOST_CLAIMED_BYTES // 2 + 1)


def claimed(ticker: Ticker) -> list[int]:
    """What a claimant of ten jobs gets."""
    claim = Claim(("a", "b"), [(1, 10)], terms={1: Terms(claimant="c")})
    return [job.key for job in ticker.run(claims=[claim]).claimed[0]]


@by_limit
def test_what_a_claimant_leaves_for_its_size_is_there_for_the_next(
    ticker: Ticker, options: JobSettings | None, limit: Sequence[AnyCommand]
) -> None:
    ticker.run(*limit)
    command = ticker.enqueue([large("a"), large("b", options), large("b", options)])
    ticker.run(command)
    other, first, _ = command.keys

    assert [claimed(ticker) for _ in range(3)] == [[other], [first], []]


@by_limit
def test_what_has_expired_when_it_is_chosen_leaves_its_place_to_the_next(
    ticker: Ticker, options: JobSettings | None, limit: Sequence[AnyCommand]
) -> None:
    ticker.run(*limit)
    ticker.store(SLICE, queue="other", ttl_ms=1_000)
    ticker.store(1, queue="b", options=options, ttl_ms=1_001)
    (fresh,) = ticker.store(1, queue="b", options=options)
    ticker.now += 2_000

    result = ticker.run(claims=[Claim(("b",), [(1, 5)])], expire=True)

    assert [job.key for job in result.claimed[0]] == [fresh]


def test_the_rate_of_a_key_is_charged_with_what_was_delivered(ticker: Ticker) -> None:
    ticker.run(PutFairLimit("b", "b", FairLimit(rate=2)))
    command = ticker.enqueue([large("b", KEYED) for _ in range(3)])
    ticker.run(command)

    assert [claimed(ticker) for _ in range(3)] == [[command.keys[0]], [command.keys[1]], []]
