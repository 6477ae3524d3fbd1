"""A claim may find many lines that cannot be paid. Nobody waits beside a job that can."""

from collections.abc import Iterable, Sequence

import pytest
from store.rig import Ticker, new_job

from zq.engine.delivery.streams import Streams
from zq.engine.delivery.takers import Stream, Subscription
from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget, HoldBudget, drawing
from zq.model.commands import AnyCommand, Return, SetQueue, Succeed
from zq.model.job import JobSettings, NewJob
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import FairRule, QueueSettings

DAY_MS = 86_400_000


def refuse(rest: Return) -> None:
    raise AssertionError(f"a job has no taker: {rest}")


class Served:
    """Streams, and ticks as the loop runs them: as long as any stream would claim jobs."""

    def __init__(self, ticker: Ticker) -> None:
        self._ticker = ticker
        self._streams = Streams(0, 0, refuse)

    def open(self, queues: Iterable[str], reach: Reach = EVERYWHERE, window: int = 1) -> Stream:
        return self._streams.open(queues, reach, Subscription(window=window), 0, lambda: 0)

    def run(self, *commands: AnyCommand) -> int:
        """Run ticks until nobody claims; how many."""
        ticks = 0
        waiting: Sequence[AnyCommand] = commands
        while waiting or self._streams.is_hungry:
            plan = self._streams.plan(waiting)
            result = self._ticker.run(*waiting, claims=plan.claims)
            assert not self._streams.apply(result, plan)
            waiting, ticks = (), ticks + 1
            assert ticks < 50, "a stream claims for ever"
        return ticks


def drawn(queue: str = "q", /, **draws: int) -> NewJob:
    """A job that draws from budgets."""
    named = drawing(tuple(Draw(key, cost) for key, cost in draws.items()))
    return new_job(queue=queue, options=named)


def keyed(key: str) -> NewJob:
    """A job of a queue that is shared."""
    return new_job(options=JobSettings(fair_key=key))  # type: ignore[call-arg]


@pytest.fixture
def served(ticker: Ticker) -> Served:
    """A budget that pays nothing for a day, and one that pays."""
    ticker.run(
        *(CreateBudget(key, BudgetPolicy(1_000)) for key in ("held", "paid")),
        HoldBudget("held", ticker.now + DAY_MS),
    )
    return Served(ticker)


@pytest.mark.parametrize("window", [1, 2])
def test_a_job_behind_hundreds_of_lines_that_cannot_be_paid_is_delivered(
    ticker: Ticker, served: Served, window: int
) -> None:
    jobs = [*(drawn(held=cost) for cost in range(1, 601)), drawn(paid=1)]
    stream = served.open(["q"], window=window)
    command = ticker.enqueue(jobs)
    served.run(command)
    assert [*stream.held] == [command.keys[-1]]
    # Nobody looks at lines in vain for ever.
    assert served.run() == 0


@pytest.mark.parametrize("named", [False, True])
def test_a_job_in_one_of_a_hundred_queues_that_cannot_pay_is_delivered(
    ticker: Ticker, served: Served, *, named: bool
) -> None:
    queues = [f"q{number}" for number in range(100)]
    command = ticker.enqueue(
        [*(drawn(queue, held=1) for queue in queues[:-1]), drawn("q99", paid=1)]
    )
    stream = served.open(queues if named else [], EVERYWHERE if named else Reach(("q",)))
    served.run(command)
    assert [*stream.held] == [command.keys[-1]]


def test_a_key_with_room_has_its_turn_behind_keys_that_have_none(
    ticker: Ticker, served: Served
) -> None:
    ticker.run(SetQueue("q", QueueSettings(fair=FairRule(max_in_flight=1))))
    busy = [f"busy-{number}" for number in range(300)]
    stream = served.open(["q"], window=301)
    served.run(ticker.enqueue(map(keyed, busy)))
    for _ in range(5):
        former = ticker.enqueue([keyed("idle")])
        served.run(former)
        served.run(Succeed(former.keys))
    command = ticker.enqueue(map(keyed, [*busy, "idle"]))
    served.run(command)
    assert command.keys[-1] in stream.held
    assert served.run() == 0
