"""Visits that share moments: none is lost, and none comes too early."""

import asyncio
from functools import partial
from typing import Any

import pytest
from manual_clock import ManualClock

from zq.http.transport.heartbeats import Visits

STEP_MS = 100


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def visits(clock: ManualClock) -> Visits:
    return Visits(clock, STEP_MS / 1000)


def test_visits_of_one_step_are_made_together_and_not_too_early(
    clock: ManualClock, visits: Visits
) -> None:
    made: list[str] = []
    for name, seconds in (("a", 0.11), ("b", 0.19), ("c", 0.21)):
        visits.book(seconds, partial(made.append, name))
    clock.advance(199)
    assert made == []
    clock.advance(1)
    assert sorted(made) == ["a", "b"]
    clock.advance(STEP_MS)
    assert sorted(made) == ["a", "b", "c"]


def test_what_is_booked_later_may_come_sooner(clock: ManualClock, visits: Visits) -> None:
    made: list[str] = []
    visits.book(1.0, lambda: made.append("late"))
    visits.book(0.1, lambda: made.append("soon"))
    clock.advance(STEP_MS)
    assert made == ["soon"]
    clock.advance(1000)
    assert made == ["soon", "late"]


def test_a_visit_books_the_next_one_never_for_the_same_moment(
    clock: ManualClock, visits: Visits
) -> None:
    made: list[float] = []

    def visit() -> None:
        made.append(clock.monotonic())
        visits.book(0.0, visit)

    visits.book(0.0, visit)
    clock.advance(3 * STEP_MS)
    assert made == pytest.approx([0.1, 0.2, 0.3])


def test_a_visit_cancels_another_of_its_moment(clock: ManualClock, visits: Visits) -> None:
    made: list[str] = []
    moments: dict[str, int] = {}

    def visitor(name: str, other: str) -> Any:
        def visit() -> None:
            made.append(name)
            visits.cancel(moments[other], visitors[other])

        return visit

    visitors = {"a": visitor("a", "b"), "b": visitor("b", "a")}
    moments |= {name: visits.book(0.1, visit) for name, visit in visitors.items()}
    clock.advance(10 * STEP_MS)
    assert len(made) == 1
    visits.cancel(moments["a"], visitors["a"])  # long over: harmless


async def test_a_visit_that_fails_costs_the_others_nothing(
    clock: ManualClock, visits: Visits
) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: failures.append(context["exception"])
    )
    made: list[str] = []

    def fails() -> None:
        raise OSError("its socket is gone")

    visits.book(0.1, lambda: made.append("before"))
    visits.book(0.1, fails)
    visits.book(0.1, lambda: made.append("after"))
    visits.book(0.2, lambda: made.append("later"))
    clock.advance(2 * STEP_MS)
    assert sorted(made) == ["after", "before", "later"]
    assert [str(failure) for failure in failures] == ["its socket is gone"]
