"""Priorities that age: order, the longest wait, other queues, fair keys, budgets, and new settings.

The state machine compares the order of claims with an exact model as well (`naive_claiming.py`).
"""

from collections.abc import Callable
from fractions import Fraction
from importlib.resources import files
from math import floor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store.rig import KIND, NOW, Ticker, make_ticker

from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget, drawing
from zq.model.commands import (
    AnyCommand,
    CancelJob,
    Claim,
    DeleteJob,
    Fail,
    PatchJob,
    Release,
    SetQueue,
    Succeed,
)
from zq.model.job import JobSettings
from zq.model.patching import Patch
from zq.model.settings import QueueSettings
from zq.model.settling import Failure
from zq.tick.lines import MOST_LED

URGENT, USUAL = 10, 100
YEAR_MS = 365 * 86_400_000

(SHIFT,) = [
    script
    for script in files(f"zq.store.{KIND}").joinpath("migrations").iterdir()
    if script.name.endswith("_steady_aging.sql")
]


def longest_overtaken_ms(priority: int, most_urgent: int, aging_ms: int) -> int:
    """How long after a job others may become ready that come before it: D of `zq.model.aging`."""
    return max(priority - most_urgent + 1, 0) * aging_ms


def ages(ticker: Ticker, aging_ms: int | None, queue: str = "q") -> None:
    ticker.run(SetQueue(queue, QueueSettings(priority_aging_ms=aging_ms)))


def put(ticker: Ticker, priority: int = USUAL, **fields: object) -> int:
    (key,) = ticker.store(1, priority=priority, **fields)
    return key


def misplaced(ticker: Ticker) -> object:
    """How many ready jobs are not in a line of the way in which their queue ages."""
    return ticker.value(
        "SELECT count(*) FROM jobs LEFT JOIN lines ON lines.id = line"
        " LEFT JOIN queue_settings AS s ON s.queue = jobs.queue"
        " WHERE status = 1 AND coalesce(lines.aging_ms, 0) <> coalesce(s.aging_ms, 0)"
    )


@settings(max_examples=25, deadline=None)
@given(
    aging_ms=st.sampled_from([1, 7, 100]),
    arrivals=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=40),
    taken=st.integers(1, 3),
)
def test_jobs_come_by_priority_and_age_and_wait_no_longer_than_is_stated(
    aging_ms: int, arrivals: list[tuple[int, int]], taken: int
) -> None:
    with TemporaryDirectory() as folder:
        ticker = make_ticker(Path(folder) / "zq.db")
        ages(ticker, aging_ms)
        delivered = compared(ticker, aging_ms, arrivals, taken)
        ticker.close()

    most_urgent = min([priority for _, priority in arrivals], default=0)
    for nth, (priority, ready_at) in enumerate(delivered):
        bound = longest_overtaken_ms(priority, most_urgent, aging_ms)
        assert all(other <= ready_at + bound for _, other in delivered[:nth])


def compared(
    ticker: Ticker, aging_ms: int, arrivals: list[tuple[int, int]], taken: int
) -> list[tuple[int, int]]:
    """Store and take jobs, and compare the order with that of an exact model.

    The model looks at all jobs at each claim. Returns priorities and times of jobs as they came.
    """
    waiting: dict[int, tuple[int, int]] = {}
    delivered: list[tuple[int, int]] = []

    def take() -> None:
        def place(key: int) -> tuple[int, int]:
            priority, ready_at = waiting[key]
            gained = floor(Fraction(ticker.now, aging_ms)) - floor(Fraction(ready_at, aging_ms))
            return priority - gained, key

        expected = sorted(waiting, key=place)[:taken]
        assert ticker.take(taken) == expected
        delivered.extend([waiting.pop(key) for key in expected])

    for later, priority in arrivals:
        ticker.now += later
        waiting[put(ticker, priority)] = (priority, ticker.now)
        if later % 2:
            take()
    while waiting:
        ticker.now += 5
        take()
    return delivered


@pytest.mark.parametrize("aging_ms", [None, 1_000])
def test_a_flood_of_urgent_jobs_holds_others_up_for_a_stated_time(
    ticker: Ticker, aging_ms: int | None
) -> None:
    """Urgent jobs come as fast as workers take them: without the setting, others never come."""
    ages(ticker, aging_ms)
    patient = put(ticker)
    bound = longest_overtaken_ms(USUAL, URGENT, aging_ms or 1_000)
    waited = 0
    for _ in range(2 * bound // 1_000):
        put(ticker, URGENT)
        if ticker.take(1) == [patient]:
            break
        ticker.now += 1_000
        waited += 1_000

    assert (waited <= bound) is (aging_ms is not None)
    assert waited >= bound - 1_000


@pytest.mark.parametrize("is_within", [True, False])
def test_an_older_job_that_is_ready_later_comes_first_within_the_bound(
    ticker: Ticker, is_within: bool
) -> None:
    """Equally urgent jobs come by their ids: for this, the bound has one step more."""
    ages(ticker, 1_000)
    older, younger = ticker.store(2, priority=USUAL)
    assert ticker.take(1) == [older]
    later = longest_overtaken_ms(USUAL, USUAL, 1_000) - is_within
    ticker.run(Release((older,), leases={}, delay_ms=later))
    ticker.now += later
    ticker.run(promote=True)

    assert ticker.take(1) == [older if is_within else younger]


def test_what_waits_again_is_as_old_as_its_new_time(ticker: Ticker) -> None:
    ages(ticker, 1_000)
    retried, released, returned, dated = ticker.store(4, priority=3)
    held = ticker.take(4)
    assert held == [retried, released, returned, dated]
    ticker.run(
        Fail(retried, Failure("x", retry_at=NOW + 9_000)),
        Release((released,), leases={}, delay_ms=2_000),
        Release((returned,), leases={}),
        Release((dated,), leases={}),
    )
    ticker.run(PatchJob(dated, "dated", Patch(ready_at=NOW + 5_000)))
    ticker.now += 9_000
    ticker.run(promote=True)
    fresh = put(ticker, 2)

    assert ticker.take(9) == [returned, released, dated, fresh, retried]


def test_queues_are_compared_by_what_their_jobs_have_gained(ticker: Ticker) -> None:
    ages(ticker, 1_000, "slow")
    ages(ticker, 10, "fast")
    slow = put(ticker, USUAL, queue="slow")
    fast = put(ticker, USUAL + 90, queue="fast")
    plain = put(ticker, USUAL - 5, queue="plain")
    assert [slow, fast, plain] == sorted([slow, fast, plain])

    assert ticker.take(1) == [plain]
    plain = put(ticker, USUAL - 5, queue="plain")
    ticker.now += 1_000
    assert ticker.take(3) == [fast, plain, slow]


@pytest.mark.parametrize("queues", [None, ("q", "other")])
def test_a_claim_of_any_queues_meets_jobs_that_age(
    ticker: Ticker, queues: tuple[str, ...] | None
) -> None:
    ages(ticker, 1_000)
    aged = put(ticker, 50)
    ticker.now += 10_000
    before, after = put(ticker, 39, queue="other"), put(ticker, 40, queue="other")

    assert ticker.take(3, queues=queues) == [before, aged, after]


def test_fair_keys_share_what_has_the_same_urgency(ticker: Ticker) -> None:
    """A priority gets its turn by its oldest job; the key whose turn it is gets the job."""

    def keyed(key: str, priority: int) -> int:
        return put(ticker, priority, options=JobSettings(fair_key=key))  # type: ignore[call-arg]

    ages(ticker, 1_000)
    first = [keyed("a", USUAL) for _ in range(3)] + [keyed("b", USUAL)]
    ticker.now += 90_000
    urgent = [keyed("a", URGENT + 1), keyed("c", URGENT + 1)]

    taken = [key for _ in range(6) for key in ticker.take(1)]
    assert taken == [first[0], first[3], first[1], first[2], urgent[1], urgent[0]]


def test_keys_keep_their_turns_when_their_queue_begins_to_age(ticker: Ticker) -> None:
    def keyed(key: str) -> int:
        return put(ticker, USUAL, options=JobSettings(fair_key=key))  # type: ignore[call-arg]

    jobs = [keyed(key) for key in "aaab"]
    assert ticker.take(1) == jobs[:1]

    ages(ticker, 1_000)

    assert [key for _ in range(3) for key in ticker.take(1)] == [jobs[3], jobs[1], jobs[2]]


def test_jobs_whose_budget_cannot_pay_are_as_old_as_they_are_when_it_can(ticker: Ticker) -> None:
    ticker.run(CreateBudget("b", BudgetPolicy(1)))
    ages(ticker, 1_000)
    options = drawing((Draw("b"),))
    running, waiting = [put(ticker, USUAL, options=options) for _ in range(2)]
    assert ticker.take(9) == [running]
    ticker.now += 95_000
    urgent = put(ticker, URGENT)
    ticker.run(Release((running,), leases={}, delay_ms=60_000))

    assert ticker.take(9) == [waiting, urgent]


@pytest.mark.parametrize("change", [(None, 1_000), (1_000, None), (1_000, 50)])
def test_another_setting_leads_jobs_to_their_places_slice_by_slice_also_after_a_crash(
    ticker: Ticker, change: tuple[int | None, int | None]
) -> None:
    before, after = change
    ages(ticker, before)
    ticker.store(MOST_LED + 10)
    ticker.now += 500
    ticker.store(MOST_LED)
    assert misplaced(ticker) == 0

    ages(ticker, after)
    assert misplaced(ticker) == MOST_LED + 10
    ticker.restart()
    ticker.run()
    assert misplaced(ticker) == 10
    ticker.run()
    assert misplaced(ticker) == 0
    keys = sorted(ticker.jobs())
    assert ticker.take(2 * MOST_LED + 10) == keys
    assert ticker.value("SELECT count(*) FROM lines") == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda key: CancelJob(key),
        lambda key: DeleteJob(key),
        lambda key: PatchJob(key, "id", Patch(queue="other")),
        lambda key: PatchJob(key, "id", Patch(ready_at=NOW + 60_000)),
    ],
)
def test_the_next_job_is_taken_when_the_first_of_its_line_goes(
    ticker: Ticker, change: Callable[[int], AnyCommand]
) -> None:
    ages(ticker, 1_000)
    first, second = ticker.store(2)

    ticker.run(change(first))

    assert ticker.take(1, queues=("q",)) == [second]


def test_a_job_behind_its_group_keeps_the_place_of_its_key_when_its_queue_ages_no_more(
    ticker: Ticker,
) -> None:
    ages(ticker, 1_000)
    options = JobSettings(fair_key="k")  # type: ignore[call-arg]
    first, second = [put(ticker, options=options, group="g") for _ in range(2)]
    assert ticker.take(9) == [first]
    ages(ticker, None)
    ticker.run()

    ticker.run(Succeed([first]))

    assert ticker.take(9) == [second]


def test_jobs_that_are_led_come_in_the_new_order_in_the_same_transaction(ticker: Ticker) -> None:
    old = put(ticker, USUAL)
    ticker.now += 200_000
    urgent = put(ticker, URGENT)
    wanted = Claim(None, [(1, 2)])

    change = SetQueue("q", QueueSettings(priority_aging_ms=1_000))
    (taken,) = ticker.run(change, claims=[wanted]).claimed

    assert [job.key for job in taken] == [old, urgent]


def test_a_store_whose_queues_do_not_age_any_more_has_no_lines(ticker: Ticker) -> None:
    ages(ticker, 1_000)
    ticker.store(3)
    assert ticker.runner._hooks.lines.agings

    ages(ticker, None)
    ticker.run()
    ticker.run()

    assert not ticker.runner._hooks.lines.agings


@pytest.mark.parametrize("years", [1, -1])
def test_jobs_from_before_a_step_of_the_clock_are_as_old_as_they_are(
    ticker: Ticker, years: int
) -> None:
    ages(ticker, 1_000)
    older = put(ticker, USUAL)
    ticker.step(years * YEAR_MS)
    ticker.now += 50_000
    younger, fresh = put(ticker, USUAL - 49), put(ticker, USUAL - 51)
    plain = put(ticker, USUAL - 52, queue="plain")

    assert [key for _ in range(4) for key in ticker.take(1)] == [plain, fresh, older, younger]


@pytest.mark.parametrize("years", [1, -1])
def test_what_waits_again_after_a_step_of_the_clock_is_as_old_as_its_new_time(
    ticker: Ticker, years: int
) -> None:
    ages(ticker, 1_000)
    retried, dated = ticker.store(2, priority=USUAL)
    assert ticker.take(2) == [retried, dated]
    ticker.run(Release((retried,), leases={}, delay_ms=60_000))
    ticker.step(years * YEAR_MS)
    ticker.run(Release((dated,), leases={}))
    ticker.run(PatchJob(dated, "id", Patch(ready_at=ticker.now + 30_000)))
    ticker.now += 60_000
    ticker.run(promote=True)
    ticker.now += 10_000

    wanted = [put(ticker, USUAL - 71), dated, put(ticker, USUAL - 39), retried, put(ticker, USUAL)]
    assert [key for _ in range(5) for key in ticker.take(1)] == wanted


def test_jobs_that_come_to_a_line_after_the_clock_was_set_back_wait_no_longer_than_new_ones(
    ticker: Ticker,
) -> None:
    """What tells their age is a date that is still to come."""
    ages(ticker, 1_000)
    ticker.step(YEAR_MS)
    grouped, behind = [put(ticker, USUAL, group="g") for _ in range(2)]
    patched = put(ticker, USUAL + 50)
    assert ticker.take(1) == [grouped]
    ticker.step(-YEAR_MS)
    ticker.run(Succeed([grouped]), PatchJob(patched, "id", Patch(priority=USUAL)))
    ticker.now += 1_000
    fresh = put(ticker, USUAL)

    assert ticker.take(3) == [behind, patched, fresh]


def test_lines_of_an_earlier_version_are_as_old_as_their_jobs(ticker: Ticker) -> None:
    """Their priorities came from dates. The clock of the device was set by a year since then."""
    ages(ticker, 1_000)
    ticker.step(YEAR_MS)
    older = put(ticker, USUAL)
    ticker.now += 50_000
    younger = put(ticker, USUAL - 49)
    for statement in (
        f"UPDATE lines SET priority = priority + {YEAR_MS // 1_000}",
        "DELETE FROM meta WHERE name = 'clock'",
        f"INSERT INTO meta (name, value) VALUES ('clock', '[{-YEAR_MS},{NOW},null,0]')",
        *SHIFT.read_text().split(";\n"),
    ):
        ticker.connection.execute(statement)
    fresh = put(ticker, USUAL - 51)

    assert [key for _ in range(3) for key in ticker.take(1)] == [fresh, older, younger]
