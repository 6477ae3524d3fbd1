"""Thousands who wait for the same news: a few of them are woken in each turn of the event loop."""

import asyncio

import pytest
from manual_clock import ManualClock

from zq.engine.subscribers.waking import AT_ONCE, LONGEST_REST_S, SHARE, WakeLine


class Woken:
    """Counts those who were woken, by turns of the event loop."""

    def __init__(self, clock: ManualClock, *, costs_ms: int = 0) -> None:
        self.numbers: list[int] = []
        self._clock = clock
        self._costs_ms = costs_ms

    def __call__(self, number: int) -> None:
        self.numbers.append(number)
        self._clock.advance(self._costs_ms)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def crowd(size: int) -> dict[int, None]:
    return dict.fromkeys(range(size))


async def test_one_who_waits_alone_is_woken_at_once(clock: ManualClock) -> None:
    line, woken = WakeLine(clock), Woken(clock)
    line.wake({7: None}, woken)
    assert woken.numbers == [7]


async def test_a_crowd_is_woken_over_many_turns_of_the_loop(clock: ManualClock) -> None:
    line, woken = WakeLine(clock), Woken(clock)
    line.wake(crowd(10 * AT_ONCE), woken)
    for turn in range(1, 11):
        assert len(woken.numbers) == turn * AT_ONCE
        await asyncio.sleep(0)
    assert sorted(woken.numbers) == [*range(10 * AT_ONCE)]


async def test_crowds_are_woken_one_after_the_other(clock: ManualClock) -> None:
    line, first, second = WakeLine(clock), Woken(clock), Woken(clock)
    line.wake(crowd(2 * AT_ONCE), first)
    line.wake(crowd(1), second)
    assert (len(first.numbers), len(second.numbers)) == (AT_ONCE, 0)
    await asyncio.sleep(0)
    assert (len(first.numbers), len(second.numbers)) == (2 * AT_ONCE, 0)
    await asyncio.sleep(0)
    assert len(second.numbers) == 1


async def test_many_crowds_of_one_share_a_turn(clock: ManualClock) -> None:
    line, woken = WakeLine(clock), Woken(clock)
    for number in range(3 * AT_ONCE):
        line.wake({number: None}, woken)
    before = len(woken.numbers)
    await asyncio.sleep(0)
    assert len(woken.numbers) - before == AT_ONCE


async def test_who_has_left_its_crowd_is_not_woken(clock: ManualClock) -> None:
    line, woken, waiting = WakeLine(clock), Woken(clock), crowd(AT_ONCE + 2)
    line.wake(waiting, woken)
    gone, other = waiting
    del waiting[gone]
    await asyncio.sleep(0)
    assert woken.numbers[AT_ONCE:] == [other]


async def test_followers_leave_the_larger_part_of_the_time_to_others(clock: ManualClock) -> None:
    line, woken = WakeLine(clock, SHARE), Woken(clock, costs_ms=1)
    line.wake(crowd(3 * AT_ONCE), woken)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(woken.numbers) == AT_ONCE
    clock.advance(AT_ONCE * (SHARE - 1) - 1)
    assert len(woken.numbers) == AT_ONCE
    clock.advance(1)
    assert len(woken.numbers) == 2 * AT_ONCE


async def test_no_rest_is_longer_than_its_bound(clock: ManualClock) -> None:
    line, woken = WakeLine(clock, SHARE), Woken(clock, costs_ms=1000)
    line.wake(crowd(AT_ONCE + 1), woken)
    await asyncio.sleep(0)
    clock.advance(round(LONGEST_REST_S * 1000))
    assert len(woken.numbers) == AT_ONCE + 1
