"""The work of ticks with fair keys and budgets, counted: statements, and rows that are written."""

from collections.abc import Callable
from functools import partial

import pytest
from store.rig import Ticker, new_job

from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget, drawing
from zq.features.fair import tick_hold
from zq.features.fair.model import FairLimit
from zq.features.fair.model_jobs import DropFairLimit, PutFairLimit, fair_key_of
from zq.features.fair.tick_hold import MOST_FORGOTTEN, MOST_OPENED
from zq.features.sweeps.model import SweepMark, UndoSlice
from zq.model.commands import (
    AnyCommand,
    CancelSlice,
    Claim,
    Clear,
    Entered,
    Fail,
    PatchJob,
    ReviveSlice,
    SetQueue,
    Succeed,
)
from zq.model.filters import EVERYTHING, Filter
from zq.model.job import JobSettings, NewJob
from zq.model.patching import Patch
from zq.model.settings import FairRule, QueueSettings
from zq.model.settling import Failure

from .test_tick import statements

FEW, MANY = 10, 400


def keyed(number: int, keys: int) -> NewJob:
    options = JobSettings(fair_key=f"key-{number % keys}")  # type: ignore[call-arg]
    return new_job(options=options)


def budgeted(number: int, budgets: int) -> NewJob:
    return new_job(options=drawing((Draw(f"budget-{number % budgets}"),)))


def with_keys(ticker: Ticker, jobs: int, keys: int) -> None:
    ticker.run(ticker.enqueue([keyed(n, keys) for n in range(jobs)]))


def with_budgets(ticker: Ticker, jobs: int, budgets: int) -> None:
    ticker.run(*[CreateBudget(f"budget-{n}", BudgetPolicy(1_000)) for n in range(budgets)])
    ticker.run(ticker.enqueue([budgeted(n, budgets) for n in range(jobs)]))


@pytest.mark.parametrize(("prepare", "most"), [(with_keys, 17), (with_budgets, 16)])
@pytest.mark.parametrize("lines_in_ten_jobs", [1, 3, 10])
def test_the_statements_of_a_tick_grow_with_neither_jobs_nor_lines(
    ticker: Ticker,
    prepare: Callable[[Ticker, int, int], None],
    lines_in_ten_jobs: int,
    most: int,
) -> None:
    for jobs in (FEW, MANY):
        prepare(ticker, 3 * jobs, lines_in_ten_jobs * jobs // 10)
        held = ticker.take(jobs)
        tick = ticker.tick([Succeed(held)], [Claim(None, [(1, jobs)])])
        ran = statements(ticker, partial(ticker.runner.run, tick))
        assert len(ran) <= most, ran
        ticker.run(Clear())


def test_a_tick_writes_a_key_and_a_line_once_for_all_of_their_jobs(ticker: Ticker) -> None:
    with_keys(ticker, 300, 1)
    held = ticker.take(100)

    result = ticker.run(Succeed(held), claims=[Claim(None, [(1, 100)])])

    assert len(result.claimed[0]) == 100
    # Jobs are deleted and taken; the rest are two places of the line, a key, a queue, and counts.
    assert result.rows <= 200 + 2 + 1 + 1 + 2


def test_a_tick_does_not_read_again_what_it_knows_of_keys(ticker: Ticker) -> None:
    with_keys(ticker, 30, 3)
    ticker.run(Succeed(ticker.take(3)))
    held = ticker.take(3)
    tick = ticker.tick([Succeed(held)], [Claim(None, [(1, 3)])])

    ran = statements(ticker, partial(ticker.runner.run, tick))

    assert not [sql for sql in ran if "fair_limits" in sql or "SELECT EXISTS" in sql]


def test_keys_beyond_a_number_are_read_again(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick_hold, "MOST_KNOWN", 2)
    with_keys(ticker, 30, 5)
    taken: list[int] = []
    for _ in range(15):
        held = ticker.take(2)
        taken += [sorted(ticker.jobs()).index(key) for key in held]
    for turn in range(0, 30, 5):
        assert sorted(n % 5 for n in taken[turn : turn + 5]) == [*range(5)]

    ticker.run(Succeed(list(ticker.jobs())))
    assert ticker.value("SELECT count(*) FROM shares WHERE unfinished > 0") == 0


def test_a_limit_of_a_known_key_holds_at_once(ticker: Ticker) -> None:
    with_keys(ticker, 6, 1)
    ticker.run(Succeed(ticker.take(1)))

    ticker.run(PutFairLimit("q", "key-0", FairLimit(max_in_flight=2)))
    limited = ticker.take(5)
    ticker.run(DropFairLimit("q", "key-0"))

    assert (len(limited), len(ticker.take(5))) == (2, 3)


def test_a_job_in_flight_counts_where_it_moves_to(ticker: Ticker) -> None:
    ticker.run(SetQueue("q", QueueSettings(fair=FairRule(max_in_flight=1))))
    with_keys(ticker, 2, 1)
    (moved,) = ticker.take(9)

    ticker.run(PatchJob(moved, "id", Patch(queue="other")))
    counts = "SELECT queue, waiting, in_flight FROM shares ORDER BY queue"

    assert len(ticker.take(9)) == 1
    assert ticker.connection.execute(counts).fetchall() == [("other", 0, 1), ("q", 0, 1)]
    ticker.run(Succeed(list(ticker.jobs())))
    assert ticker.value("SELECT count(*) FROM shares WHERE unfinished > 0") == 0


@pytest.mark.parametrize(
    "beside",
    [
        [],
        [CreateBudget("a", BudgetPolicy(1))],
        [SetQueue("another", QueueSettings(priority_aging_ms=1_000))],
    ],
    ids=["alone", "beside a budget", "beside aging priorities"],
)
@pytest.mark.parametrize("comes_back", ["revived", "undone"])
@pytest.mark.parametrize("restarts", [False, True])
def test_jobs_that_come_back_after_the_last_one_of_all_keys_share_as_before(
    ticker: Ticker, beside: list[AnyCommand], comes_back: str, restarts: bool
) -> None:
    ticker.run(SetQueue("q", QueueSettings(fair=FairRule(max_in_flight=1))), *beside)
    with_keys(ticker, 3, 1)
    jobs = list(ticker.jobs())
    back: AnyCommand
    if comes_back == "undone":
        ticker.run(CancelSlice(jobs, EVERYTHING, True, SweepMark(7, "{}", 1.0)))
        back = UndoSlice(jobs, Filter(swept=7))
    else:
        for _ in jobs:
            (job,) = ticker.take(9)
            ticker.run(Fail(job, Failure("no", kill=True)))
        back = ReviveSlice(jobs, Filter(revivable=True))
    assert ticker.value("SELECT count(*) FROM shares") == 0
    if restarts:
        ticker.restart()

    assert ticker.run(back).replies == [Entered(3)]
    for job in jobs:
        assert ticker.take(9) == [job], "the key may have one job in flight"
        ticker.run(Succeed([job]))


def test_a_tick_forgets_a_number_of_keys_and_the_next_ones_go_on(ticker: Ticker) -> None:
    keys = 2 * MOST_FORGOTTEN + 100
    with_keys(ticker, keys, keys)
    *others, last = ticker.take(keys)
    ticker.run(Succeed(others))
    assert ticker.value("SELECT count(*) FROM shares") == keys

    left = []
    ticker.run(Succeed([last]))
    while count := ticker.value("SELECT count(*) FROM shares"):
        left.append(keys - count)
        ticker.run()

    assert left == [MOST_FORGOTTEN + 2, 2 * MOST_FORGOTTEN + 2]
    assert ticker.value("SELECT count(*) FROM shared_queues") == 0


def test_keys_that_are_to_be_forgotten_are_known_after_a_restart(ticker: Ticker) -> None:
    keys = MOST_FORGOTTEN + 100
    with_keys(ticker, keys, keys)
    *others, last = ticker.take(keys)
    ticker.run(Succeed(others))
    ticker.run(Succeed([last]))

    ticker.restart()
    ticker.run()

    assert ticker.value("SELECT count(*) FROM shares") == 0


def test_another_limit_of_a_queue_opens_its_full_keys_at_once(ticker: Ticker) -> None:
    ticker.run(SetQueue("q", QueueSettings(fair=FairRule(max_in_flight=1))))
    with_keys(ticker, 30, 10)
    assert len(ticker.take(30)) == 10
    assert ticker.take(30) == []

    wider = SetQueue("q", QueueSettings(fair=FairRule(max_in_flight=2)))
    result = ticker.run(wider, claims=[Claim(None, [(1, 30)])])

    assert len(result.claimed[0]) == 10


def test_full_keys_open_a_number_at_a_time_when_the_limit_of_their_queue_goes(
    ticker: Ticker,
) -> None:
    keys = MOST_OPENED + 500
    ticker.run(SetQueue("q", QueueSettings(fair=FairRule(max_in_flight=1))))
    with_keys(ticker, 2 * keys, keys)
    while ticker.take(keys):
        pass

    ticker.run(SetQueue("q", QueueSettings()))
    assert ticker.value("SELECT count(*) FROM lines WHERE shut_by IS NOT NULL") == 500
    ticker.run()
    assert ticker.value("SELECT count(*) FROM lines WHERE shut_by IS NOT NULL") == 0


def test_a_job_that_took_what_its_key_was_charged_with_moves_no_line(ticker: Ticker) -> None:
    with_keys(ticker, 60, 10)
    held = ticker.take(10)

    ran = statements(ticker, partial(ticker.run, Succeed(held)))
    assert not any(sql.startswith("UPDATE lines SET place") for sql in ran)
    held = ticker.take(10)
    ticker.now += 5_000
    ran = statements(ticker, partial(ticker.run, Succeed(held)))
    assert any(sql.startswith("UPDATE lines SET place") for sql in ran)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("hours", [1, -1, 24 * 365 * 50])
def test_a_clock_that_is_set_while_a_job_runs_takes_no_turns_from_its_key(
    ticker: Ticker, hours: int, restarts: bool
) -> None:
    with_keys(ticker, 80, 2)
    for _ in range(10):
        held = ticker.take(1)
        ticker.now += 100
        ticker.run(Succeed(held))
    held = ticker.take(1)
    ticker.now += 50
    ticker.step(hours * 3_600_000)
    if restarts:
        ticker.restart()
    ticker.now += 50
    ticker.run(Succeed(held))

    jobs, taken = ticker.jobs(), list[int]()
    for _ in range(20):
        held = ticker.take(1)
        ticker.now += 100
        ticker.run(Succeed(held))
        taken += held
    keys = [fair_key_of(jobs[key].options) for key in taken]
    assert keys.count("key-0") == keys.count("key-1")
