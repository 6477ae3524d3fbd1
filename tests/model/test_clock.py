"""The clocks: one that the machine moves, one that a test moves."""

import asyncio
import time

import pytest
from manual_clock import ManualClock

from zq.model.clock import SLIGHT_MS, ClockStep, SteadyClock, SteadyMark, SystemClock


def test_the_system_clock_tells_the_machines_time() -> None:
    clock = SystemClock()
    before, now, after = time.time() * 1000, clock.now_ms(), time.time() * 1000
    assert before - 1 <= now <= after
    first, second = clock.monotonic(), clock.monotonic()
    assert first <= second <= time.monotonic()


async def test_the_system_clocks_timers_run_in_the_event_loop() -> None:
    rang = asyncio.Event()
    SystemClock().call_later(0, rang.set)
    await asyncio.wait_for(rang.wait(), 60)


async def test_a_cancelled_timer_of_the_system_clock_stays_silent() -> None:
    clock, rang, later = SystemClock(), asyncio.Event(), asyncio.Event()
    clock.call_later(0, rang.set).cancel()
    clock.call_later(0, later.set)
    await asyncio.wait_for(later.wait(), 60)
    assert not rang.is_set()


def test_a_manual_clock_stands_still_until_it_is_told() -> None:
    clock = ManualClock(1_000)
    assert (clock.now_ms(), clock.monotonic()) == (1_000, 0.0)
    clock.advance(2_500)
    assert (clock.now_ms(), clock.monotonic()) == (3_500, 2.5)


def test_a_step_moves_the_wall_clock_alone() -> None:
    clock = ManualClock(1_000)
    rang: list[int] = []
    clock.call_later(1, lambda: rang.append(clock.now_ms()))
    clock.step(60_000)
    assert (clock.now_ms(), clock.monotonic(), rang) == (61_000, 0.0, [])
    clock.step(-60_500)
    clock.advance(1_000)
    assert (clock.now_ms(), rang) == (1_500, [1_500])


def test_timers_fire_in_their_order_at_their_own_times() -> None:
    clock = ManualClock(0)
    rang: list[tuple[str, int, float]] = []

    def note(name: str) -> None:
        rang.append((name, clock.now_ms(), clock.monotonic()))

    clock.call_later(0.3, lambda: note("third"))
    clock.call_later(0.1, lambda: note("first"))
    clock.call_later(0.1, lambda: note("second, set later for the same time"))
    clock.call_later(0.9, lambda: note("never: not yet due"))
    clock.advance(300)
    assert rang == [
        ("first", 100, 0.1),
        ("second, set later for the same time", 100, 0.1),
        ("third", 300, 0.3),
    ]


def test_a_timer_set_by_a_timer_fires_within_the_same_advance_if_due() -> None:
    clock = ManualClock(0)
    rang: list[int] = []

    def again() -> None:
        rang.append(clock.now_ms())
        clock.call_later(0.2, again)

    clock.call_later(0.2, again)
    clock.advance(500)
    assert rang == [200, 400]
    assert clock.now_ms() == 500


def test_after_a_jump_each_timer_fires_once_and_late() -> None:
    clock = ManualClock(0)
    rang: list[int] = []

    def again() -> None:
        rang.append(clock.now_ms())
        clock.call_later(0.2, again)

    clock.call_later(0.2, again)
    clock.jump(3_600_000)
    assert rang == [3_600_000]
    clock.advance(200)
    assert rang == [3_600_000, 3_600_200]


def test_a_late_timer_fires_now_and_time_does_not_run_backwards() -> None:
    clock = ManualClock(0)
    rang: list[tuple[int, float]] = []
    clock.call_later(0.1, lambda: clock.call_later(-5, lambda: rang.append(_times(clock))))
    clock.advance(400)
    assert rang == [(100, 0.1)]
    assert _times(clock) == (400, 0.4)


def test_a_cancelled_timer_never_fires_and_cancelling_again_is_harmless() -> None:
    clock = ManualClock()
    rang: list[str] = []
    timer = clock.call_later(0.1, lambda: rang.append("cancelled"))
    timer.cancel()
    other = clock.call_later(0.1, lambda: rang.append("kept"))
    clock.advance(100)
    timer.cancel()
    other.cancel()
    assert rang == ["kept"]


def _times(clock: ManualClock) -> tuple[int, float]:
    return clock.now_ms(), clock.monotonic()


HOUR_MS = 3_600_000

either_way = pytest.mark.parametrize("step", [6 * HOUR_MS, -HOUR_MS])


@either_way
def test_steady_time_goes_on_when_the_clock_is_set(step: int) -> None:
    clock = ManualClock(10 * HOUR_MS)
    steady = SteadyClock(clock)
    clock.advance(7)
    clock.step(step)
    assert steady.read() == (10 * HOUR_MS + 7 + step, 10 * HOUR_MS + 7)
    assert steady.ahead == -step
    assert steady.last_step == ClockStep(step, 10 * HOUR_MS + 7, 10 * HOUR_MS + 7 + step)
    clock.advance(3)
    assert steady.read()[1] == 10 * HOUR_MS + 10


def test_steady_time_follows_slow_corrections_and_never_runs_backwards() -> None:
    clock = ManualClock(HOUR_MS)
    steady = SteadyClock(clock)
    for _ in range(100):
        clock.step(SLIGHT_MS - 1)
        assert steady.read() == (clock.now_ms(), clock.now_ms())
    before = steady.read()[1]
    clock.step(1 - SLIGHT_MS)
    assert steady.read() == (clock.now_ms(), before)
    clock.advance(2 * SLIGHT_MS)
    assert steady.read() == (clock.now_ms(), clock.now_ms())
    assert (steady.ahead, steady.last_step) == (0, None)


@either_way
@pytest.mark.parametrize("reboot", [False, True])
def test_a_start_goes_on_from_the_mark_of_the_last_one(step: int, reboot: bool) -> None:
    clock = ManualClock(10 * HOUR_MS)
    mark = SteadyClock(clock).mark()
    clock.advance(5_000)
    clock.step(step)
    if reboot:
        clock.reboot()
    steady = SteadyClock(clock, mark)
    if not reboot:
        assert steady.read()[1] == 10 * HOUR_MS + 5_000
    elif step > 0:
        # Only the wall clock tells how long the machine was off.
        assert steady.read() == (clock.now_ms(), clock.now_ms())
    else:
        assert steady.read()[1] == 10 * HOUR_MS
    assert steady.read()[1] >= mark.steady


@either_way
def test_time_without_power_counts_for_nothing_if_it_pauses(step: int) -> None:
    clock = ManualClock(10 * HOUR_MS)
    mark = SteadyClock(clock).mark()
    clock.reboot()
    clock.step(step)
    steady = SteadyClock(clock, mark, off_counts=False)
    clock.advance(2_000)
    assert steady.read()[1] == 10 * HOUR_MS + 2_000


def test_a_clock_that_is_right_again_after_a_reboot_gives_no_time_back() -> None:
    clock = ManualClock(10 * HOUR_MS)
    mark = SteadyClock(clock).mark()
    clock.reboot()
    clock.step(-6 * HOUR_MS)
    steady = SteadyClock(clock, mark)
    clock.advance(2_000)
    clock.step(6 * HOUR_MS)
    assert steady.read()[1] == 10 * HOUR_MS + 2_000
    assert steady.ahead == 0


def test_a_processor_that_is_away_between_two_looks_is_no_step() -> None:
    class BusyClock(ManualClock):
        """Whoever looks at it loses the processor for a while, now and then."""

        away = 0

        def elapsed_ms(self) -> int:
            seen = super().elapsed_ms()
            away, self.away = self.away, 0
            self.advance(away)
            return seen

    clock = BusyClock()
    steady = SteadyClock(clock)
    clock.away = 5 * SLIGHT_MS
    assert steady.read() == (clock.now_ms(), clock.now_ms())
    assert (steady.ahead, steady.last_step) == (0, None)


def test_a_mark_is_stored_after_a_step_and_once_a_minute() -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)

    def stores() -> SteadyMark | None:
        steady.read()
        mark = steady.unstored()
        if mark is not None:
            steady.stored(mark)
        return mark

    assert stores() == steady.mark()
    assert stores() is None
    clock.advance(59_999)
    assert stores() is None
    clock.advance(1)
    assert stores() == steady.mark()
    clock.step(-HOUR_MS)
    assert stores() == steady.mark()
    assert steady.mark().ahead == HOUR_MS


@pytest.mark.parametrize("by", [3_600_000, -3_600_000])
def test_how_long_ago_a_date_was_is_known_though_the_clock_was_set(by: int) -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    before = clock.now_ms()
    clock.advance(5_000)
    clock.step(by)
    assert steady.since(before) == 5_000

    after = clock.now_ms()
    clock.advance(2_000)
    assert (steady.since(before), steady.since(after)) == (7_000, 2_000)
