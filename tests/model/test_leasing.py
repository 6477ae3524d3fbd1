"""The length of leases, stalls that kill, and the clock of leases."""

from itertools import product

import pytest

from zq.model.clock import ManualClock, SteadyClock
from zq.model.leasing import DEFAULT_LEASE_MS, Terms, lease_time, stalls_too_often


def test_the_first_who_says_how_long_a_lease_lasts_decides() -> None:
    for asked, job, queue, claimant in product((None, 1), (None, 2), (None, 3), (None, "c")):
        default = DEFAULT_LEASE_MS if claimant else None
        expected = next((ms for ms in (asked, job, queue) if ms is not None), default)
        assert lease_time(Terms(asked, claimant), job, queue) == expected


@pytest.mark.parametrize(
    ("stalls", "limit", "expected"),
    [(1, 0, True), (1, 1, False), (2, 1, True), (10**6, None, False)],
)
def test_a_job_may_stall_as_often_as_the_limit_says(
    stalls: int, limit: int | None, expected: bool
) -> None:
    assert stalls_too_often(stalls, limit) is expected


def test_steady_time_does_not_follow_steps_until_it_is_told_to() -> None:
    clock = ManualClock(1_000)
    steady = SteadyClock(clock)
    clock.advance(7)
    clock.step(60_000)
    assert steady.now_ms() == 1_007
    clock.advance(3)
    assert steady.now_ms() == 1_010
    steady.rebase()
    assert steady.now_ms() == clock.now_ms() == 61_010


def test_the_time_of_leases_is_never_ahead_of_the_clock() -> None:
    class BusyClock(ManualClock):
        """Whoever looks at it loses the processor for a while."""

        def now_ms(self) -> int:
            self.advance(8)
            return super().now_ms()

        def monotonic(self) -> float:
            self.advance(8)
            return super().monotonic()

    clock = BusyClock()
    steady = SteadyClock(clock)
    assert steady.now_ms() <= ManualClock.now_ms(clock)
