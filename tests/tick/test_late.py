"""Late reports: the lease of a delivery is over, and nobody else has taken the job."""

from store.rig import NOW, Ticker

from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget, drawing
from zq.model.commands import Fail, Release, Settled, Succeed
from zq.model.errors import NotInFlight, StaleLease
from zq.model.job import JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.reach import reach_of
from zq.model.settling import Completion, Failure
from zq.model.unique import Scope

from .test_leases import LEASE_MS, claim, row

DONE = Settled(frozenset())
FAILURE = Failure("boom", at_once=True)
KEPT = JobSettings(retention=Retention(completed_ms=60_000))


def lose(ticker: Ticker, count: int = 1) -> list[int]:
    """The keys of jobs that a claimant took, and whose leases are over."""
    keys = [job.key for job in claim(ticker, count)]
    ticker.now += LEASE_MS + 1
    assert ticker.run(lapse=True).lapsed == keys
    return keys


def test_a_late_acknowledgement_completes_the_delivery_that_was_lost(ticker: Ticker) -> None:
    ticker.store(1)
    (key,) = lose(ticker)
    assert ticker.run(Succeed([key])).replies == [Settled(frozenset({key}))]
    result = ticker.run(Succeed([key], late="c"))
    assert result.replies == [DONE]
    assert result.ended == [], "it has ended before"
    assert (result.tally.completed, result.tally.delivered) == (1, 0)
    assert ticker.jobs() == {}
    ticker.check_counts()


def test_a_late_failure_is_one_of_that_delivery_and_of_its_claimant(ticker: Ticker) -> None:
    ticker.store(1)
    (key,) = lose(ticker)
    assert isinstance(ticker.run(Fail(key, FAILURE)).replies[0], NotInFlight)
    assert ticker.run(Fail(key, FAILURE, late="c")).ended == []
    job = row(ticker, key)
    assert (job.status, job.attempts, job.deliveries) == (Status.SCHEDULED, 1, 1)
    assert (job.claimant, job.holder, job.lease_until) == (None, None, None)
    worker, dequeued_at = ticker.connection.execute(
        "SELECT worker, dequeued_at FROM errors"
    ).fetchone()
    assert (worker, dequeued_at) == ("c", NOW)
    ticker.check_counts()


def test_a_token_still_names_the_delivery(ticker: Ticker) -> None:
    ticker.store(1)
    (key,) = lose(ticker)
    assert lose(ticker) == [key]
    failed = Fail(key, Failure("boom", lease=1), late="c")
    assert isinstance(ticker.run(failed).replies[0], StaleLease)
    for lease, reply in ((1, Settled(frozenset(), frozenset({key}))), (2, DONE)):
        assert row(ticker, key).status is Status.READY
        told = {key: Completion(lease=lease)}
        assert ticker.run(Succeed([key], said=told, late="c")).replies == [reply]


def test_a_report_is_too_late_once_the_job_is_another_ones_or_has_changed(ticker: Ticker) -> None:
    unclaimed = ticker.store(1)
    assert ticker.run(Succeed(unclaimed, late="c")).replies == [Settled(frozenset(unclaimed))]
    (key,) = lose(ticker)
    far = ticker.run(Succeed([key], reach_of(["other"]), late="c"))
    assert far.replies == [Settled(frozenset({key}))], "it is out of reach"
    claim(ticker)
    ticker.run(Fail(key, FAILURE))
    ticker.now += 1
    ticker.run(promote=True)
    assert row(ticker, key).status is Status.READY
    refused = ticker.run(Succeed([key], late="c"))
    assert refused.replies == [Settled(frozenset({key}))], "a failure was reported since"


def test_a_job_that_expires_or_waits_for_a_time_cannot_be_settled_late(ticker: Ticker) -> None:
    ticker.store(1, ttl_ms=LEASE_MS + 1)
    (key,) = lose(ticker)
    assert ticker.run(Succeed([key], late="c")).replies == [Settled(frozenset({key}))]
    ticker.run(expire=True)
    ticker.store(1)
    (key,) = lose(ticker)
    claim(ticker)
    ticker.run(Release([key], {}, 500))
    assert ticker.run(Succeed([key], late="c")).replies == [Settled(frozenset({key}))]


def test_tokens_of_budgets_may_be_another_ones_so_their_jobs_are_left(ticker: Ticker) -> None:
    ticker.run(CreateBudget("a", BudgetPolicy(1)))
    ticker.store(1, options=drawing((Draw("a"),)))
    (key,) = lose(ticker)
    assert ticker.run(Succeed([key], late="c")).replies == [Settled(frozenset({key}))]


def test_the_head_of_a_group_opens_the_next_one(ticker: Ticker) -> None:
    first, second = ticker.store(2, group="g")
    assert lose(ticker) == [first]
    assert ticker.run(Succeed([second], late="c")).replies == [Settled(frozenset({second}))]
    ticker.run(Succeed([first], late="c"))
    assert [job.key for job in claim(ticker)] == [second]


def test_a_key_that_was_given_up_is_free(ticker: Ticker) -> None:
    ticker.store(1, unique_key="k", unique_while=Scope.QUEUED)
    (key,) = lose(ticker)
    ticker.run(Succeed([key], late="c"))
    (second,) = ticker.store(1, unique_key="k", unique_while=Scope.QUEUED)
    assert list(ticker.jobs()) == [second]


def test_a_key_that_was_given_up_is_not_held_by_the_kept_job(ticker: Ticker) -> None:
    ticker.store(1, unique_key="k", unique_while=Scope.QUEUED, options=KEPT)
    (key,) = lose(ticker)
    ticker.run(Succeed([key], late="c"))
    (second,) = ticker.store(1, unique_key="k", unique_while=Scope.EXISTS)
    assert list(ticker.jobs()) == [key, second]
