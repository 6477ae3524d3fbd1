"""The times at which the tick loop wakes up by itself, and what is due then."""

import pytest
from manual_clock import ManualClock

from zq.engine.loop import Openings, Timetable
from zq.model.clock import SteadyClock
from zq.model.commands import Due

NOW = 1_750_000_000_000
UNSEEN = [Due.PURGE, Due.NAMES]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


def test_it_sleeps_until_the_first_deadline(clock: ManualClock) -> None:
    table = Timetable(
        clock, SteadyClock(clock), {Due.PROMOTION: NOW + 500, Due.NAMES: NOW + 200}, 30
    )
    assert table.delay() == 0.2
    assert table.due(NOW + 199, NOW + 199) == set()
    assert table.due(NOW + 200, NOW + 200) == {Due.NAMES}
    assert table.due(NOW + 500, NOW + 500) == {Due.NAMES, Due.PROMOTION}
    table.set({})
    assert table.delay() is None


@pytest.mark.parametrize("kind", UNSEEN)
def test_what_nobody_sees_is_cleared_away_at_most_once_in_a_while(
    clock: ManualClock, kind: Due
) -> None:
    (other,) = set(UNSEEN) - {kind}
    table = Timetable(clock, SteadyClock(clock), {kind: NOW, other: NOW}, 30)
    table.set({kind: NOW + 1, other: NOW})
    table.note(frozenset({kind}), NOW)
    assert table.due(NOW + 1, NOW + 1) == {other}
    table.set({kind: NOW + 1})
    assert table.delay() == 30
    clock.advance(30_000)
    assert table.due(clock.now_ms(), clock.now_ms()) == {kind}


@pytest.mark.parametrize("kind", UNSEEN)
def test_a_clearance_that_left_something_goes_on_at_once(clock: ManualClock, kind: Due) -> None:
    table = Timetable(clock, SteadyClock(clock), {kind: NOW}, 30)
    table.note(frozenset({kind}), NOW)
    assert table.due(NOW, NOW) == {kind}


def test_promotions_never_rest(clock: ManualClock) -> None:
    table = Timetable(clock, SteadyClock(clock), {Due.PROMOTION: NOW}, 30)
    table.set({Due.PROMOTION: NOW + 1})
    table.note(frozenset({Due.PROMOTION}), NOW)
    assert table.due(NOW + 1, NOW + 1) == {Due.PROMOTION}


def test_queues_open_once_when_their_time_has_come(clock: ManualClock) -> None:
    openings = Openings(clock)
    assert openings.delay() is None
    now = clock.monotonic()
    openings.note({"a": now + 2.0, "b": now + 1.0})
    assert openings.delay() == 1.0
    assert openings.due() == []
    clock.advance(1_000)
    assert openings.due() == ["b"]
    assert openings.delay() == 1.0
    clock.advance(5_000)
    assert openings.due() == ["a"]
    assert (openings.due(), openings.delay()) == ([], None)


def test_to_be_asked_again_puts_no_opening_off(clock: ManualClock) -> None:
    openings = Openings(clock)
    now = clock.monotonic()
    openings.note({"a": now + 2.0})
    openings.note({"a": now + 3.0})
    assert openings.delay() == 2.0
    openings.note({"a": now + 1.0})
    assert openings.delay() == 1.0
