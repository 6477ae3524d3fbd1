"""Moves of jobs that draw from budgets, and steps of the clock, each by itself."""

from pathlib import Path

import pytest
from store.rig import NOW, Ticker, make_ticker, new_job

from zq.features.budgets import tick_ledger
from zq.features.budgets.model import BudgetPolicy, BudgetRequest, BudgetState, Draw
from zq.features.budgets.model_jobs import (
    Binding,
    BindJob,
    CreateBudget,
    DeleteBudget,
    PutBudget,
    drawing,
)
from zq.model.commands import Claim, DeleteJob, Due, Fail, Release, ReviveSlice, SetQueue, Succeed
from zq.model.errors import Internal, Unprocessable
from zq.model.filters import Filter
from zq.model.settings import QueueSettings
from zq.model.settling import Failure

from .test_budgets import check_lines

ONE = drawing((Draw("a"),))
UNBOUND = Binding("replace")
BOUND = Binding("put", (BudgetRequest("a"),))


def test_a_job_that_is_unbound_and_bound_again_in_one_tick_draws(ticker: Ticker) -> None:
    ticker.run(CreateBudget("a", BudgetPolicy(1)))
    first, second = ticker.store(2, options=ONE)
    ticker.run(BindJob(second, "x", UNBOUND), BindJob(second, "x", BOUND))
    check_lines(ticker)
    assert ticker.take(2) == [first]
    (third,) = ticker.store(1)
    ticker.run(BindJob(third, "x", BOUND), BindJob(third, "x", UNBOUND))
    check_lines(ticker)
    assert ticker.take(2) == [third]


def test_a_job_that_is_redriven_while_it_waits_draws(ticker: Ticker) -> None:
    """It waits in a dead-letter queue, and goes back from there to where it came from."""
    ticker.run(CreateBudget("a", BudgetPolicy(1)), SetQueue("q", QueueSettings(dead_letter="d")))
    died, second = ticker.store(2, options=ONE)
    assert ticker.take(1) == [died]
    ticker.run(Fail(died, Failure("m", kill=True)))
    assert ticker.jobs()[died].queue == "d"
    assert ticker.take(1, queues=("q",)) == [second]
    ticker.run(ReviveSlice([died], Filter(revivable=True)))
    assert ticker.jobs()[died].queue == "q"
    check_lines(ticker)
    assert ticker.take(1) == [], "the other one has the token"
    ticker.run(Succeed([second]))
    assert ticker.take(1) == [died]


def test_a_budget_that_is_deleted_with_its_last_job_leaves_no_line(ticker: Ticker) -> None:
    ticker.run(CreateBudget("a", BudgetPolicy(1)))
    (key,) = ticker.store(1, options=ONE)
    assert ticker.run(DeleteJob(key), DeleteBudget("a")).replies == [None, None]
    check_lines(ticker)
    ticker.run(CreateBudget("a", BudgetPolicy(1)))
    assert ticker.run(DeleteBudget("a")).replies == [None]


def test_a_cost_that_was_lowered_in_the_same_tick_is_not_named(ticker: Ticker) -> None:
    ticker.run(CreateBudget("a", BudgetPolicy(3)))
    (key,) = ticker.store(1, options=drawing((Draw("a", 3),)))
    cheaper = Binding("put", (BudgetRequest("a", 2),))
    _, refusal = ticker.run(BindJob(key, "x", cheaper), PutBudget("a", BudgetPolicy(1))).replies
    assert isinstance(refusal, Unprocessable)
    assert "1 unfinished job draw up to 2" in refusal.message


HOUR_MS = 3_600_000


def spend(ticker: Ticker) -> None:
    """Leave nothing of a budget that gains one token a second, and a job that waits for it."""
    ticker.run(CreateBudget("a", BudgetPolicy(1, 1_000)))
    ticker.store(2, options=ONE)
    assert len(ticker.take(2)) == 1


def test_what_has_come_since_a_clock_went_back_is_not_forgotten_at_a_start(tmp_path: Path) -> None:
    file = tmp_path / "zq.db"
    ticker = make_ticker(file)
    spend(ticker)
    for passed in (500, 499):
        ticker.close()
        now = ticker.now if passed < 500 else NOW - HOUR_MS
        ticker = make_ticker(file)
        ticker.now = now
        ticker.run()
        ticker.now += passed
        assert ticker.take(1) == []
    ticker.now += 1
    assert len(ticker.take(1)) == 1
    ticker.close()


def test_a_clock_that_goes_back_in_a_tick_that_fails_takes_nothing(ticker: Ticker) -> None:
    spend(ticker)
    ticker.now = NOW - HOUR_MS
    unstorable = ticker.enqueue([new_job(type="")])
    result = ticker.run(unstorable, SetQueue("x", QueueSettings()), unstorable)
    assert [isinstance(reply, Internal) for reply in result.replies] == [True, False, True]
    deadline = ticker.run(refill=True).deadlines
    assert deadline is not None and deadline[Due.BUDGET] == ticker.now + 1_000
    ticker.now += 999
    assert ticker.take(1) == []
    ticker.now += 1
    assert len(ticker.take(1)) == 1


def test_a_job_without_budgets_goes_before_none_that_can_be_paid(ticker: Ticker) -> None:
    """The second in line cannot be paid beside the first one; the third one can."""
    ticker.run(CreateBudget("a", BudgetPolicy(2)), CreateBudget("b", BudgetPolicy(1)))
    drawn = [(Draw("a", 2),), (Draw("a"),), (Draw("b"),), None]
    keys = [
        ticker.store(1, priority=place, options=draws and drawing(draws))[0]
        for place, draws in enumerate(drawn)
    ]
    assert ticker.take(2) == [keys[0], keys[2]]
    assert ticker.take(2) == [keys[3]]


def test_a_claim_that_looks_no_further_leaves_the_rest_for_the_next(ticker: Ticker) -> None:
    """Behind one job stand more lines that cannot be paid beside it than a claim looks at."""
    ticker.run(CreateBudget("a", BudgetPolicy(1_000)), CreateBudget("b", BudgetPolicy(1)))
    (first,) = ticker.store(1, priority=0, options=drawing((Draw("a", 1_000),)))
    for cost in range(1, 601):
        ticker.store(1, priority=1, options=drawing((Draw("a", cost),)))
    (plain,) = ticker.store(1, priority=2, queue="plain")
    taken = [
        job.key for _ in range(3) for job in ticker.run(claims=[Claim(None, [(1, 2)])]).claimed[0]
    ]
    assert taken == [first, plain]


def test_a_budget_is_narrowed_by_what_its_lines_and_jobs_in_flight_draw(ticker: Ticker) -> None:
    ticker.run(CreateBudget("b", BudgetPolicy(9)))
    for cost in (7, 6, 5):
        ticker.store(1, options=drawing((Draw("b", cost),)))
    ticker.store(1, options=drawing((Draw("b", 8),)), ready_at=NOW + 60_000)
    (seven,) = ticker.take(1)

    (refusal,) = ticker.run(PutBudget("b", BudgetPolicy(5))).replies
    assert str(refusal).startswith("budget 'b' cannot allocate 5: 3 unfinished jobs draw up to 8")
    # A job that comes back in the same transaction counts, and one that ends does not.
    (_, refusal) = ticker.run(Release((seven,), leases={}), PutBudget("b", BudgetPolicy(5))).replies
    assert "3 unfinished jobs draw up to 8" in str(refusal)
    ticker.run(*[DeleteJob(key) for key in ticker.jobs()])
    ticker.store(1, options=drawing((Draw("b", 5),)))
    (narrowed,) = ticker.run(PutBudget("b", BudgetPolicy(5))).replies
    assert isinstance(narrowed, BudgetState)


def test_of_too_many_lines_a_budget_believes_its_own_bound(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick_ledger, "MOST_COSTLY", 3)
    ticker.run(CreateBudget("b", BudgetPolicy(9)))
    (costly,) = ticker.store(1, options=drawing((Draw("b", 8),)))
    for cost in (1, 2, 3, 4):
        ticker.store(1, options=drawing((Draw("b", cost),)))
    ticker.run(DeleteJob(costly))

    (refusal,) = ticker.run(PutBudget("b", BudgetPolicy(5))).replies

    assert "4 unfinished jobs draw up to 8" in str(refusal)


def test_among_too_many_jobs_in_flight_a_budget_believes_its_own_bound(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick_ledger, "MOST_COSTLY", 3)
    ticker.run(CreateBudget("b", BudgetPolicy(9)))
    others = ticker.store(3)
    (costly,) = ticker.store(1, options=drawing((Draw("b", 8),)))
    assert ticker.take(4) == [*others, costly]

    (refusal,) = ticker.run(PutBudget("b", BudgetPolicy(5))).replies
    assert "draw up to 8 from it" in str(refusal)
    ticker.run(Succeed(others[:2]))
    (refusal,) = ticker.run(PutBudget("b", BudgetPolicy(5))).replies
    assert "draw up to 8 from it" in str(refusal)
    ticker.run(Succeed([costly]))
    (narrowed,) = ticker.run(PutBudget("b", BudgetPolicy(5))).replies
    assert isinstance(narrowed, BudgetState)
