"""How many rows the next tick may have."""

import pytest

from zq.engine.loop import GOAL_S, LEAST_ROWS, MOST_ROWS, SHARED_GOAL_S, SHARED_S, Pace


def test_a_tick_that_takes_too_long_makes_the_next_one_smaller() -> None:
    pace = Pace()
    pace.note(0, 2 * GOAL_S, 0, MOST_ROWS, new=True, rest=False)
    assert pace.rows == MOST_ROWS // 2
    pace.note(0, 1_000 * GOAL_S, 0, MOST_ROWS, new=True, rest=False)
    assert pace.rows == LEAST_ROWS


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("rest", [False, True])
def test_new_jobs_and_others_beside_them_make_ticks_shorter_for_a_while(
    new: bool, rest: bool
) -> None:
    pace = Pace()
    pace.note(0, 0.001, 0, 1, new=True, rest=False)
    pace.note(SHARED_S / 2, 2 * SHARED_GOAL_S, 0, MOST_ROWS, new=False, rest=rest)
    assert pace.rows == (MOST_ROWS // 2 if rest else MOST_ROWS)
    pace = Pace()
    pace.note(0, 0.001, 0, 1, new=False, rest=True)
    pace.note(SHARED_S / 2, 2 * SHARED_GOAL_S, 0, MOST_ROWS, new=new, rest=False)
    assert pace.rows == (MOST_ROWS // 2 if new else MOST_ROWS)
    pace.note(SHARED_S, GOAL_S, 0, MOST_ROWS, new=True, rest=False)
    assert pace.rows == MOST_ROWS


def test_only_full_ticks_make_the_next_ones_larger() -> None:
    pace = Pace()
    pace.note(0, 4 * GOAL_S, 0, MOST_ROWS, new=True, rest=False)
    few = pace.rows
    pace.note(0, GOAL_S / 2, 0, few // 2 - 1, new=True, rest=False)
    assert pace.rows == few
    pace.note(0, GOAL_S / 2, 0, few // 2, new=True, rest=False)
    assert pace.rows == 2 * few


def test_the_disks_own_time_does_not_count() -> None:
    pace = Pace()
    pace.note(0, 9 * GOAL_S, 9 * GOAL_S, 1, new=True, rest=False)
    pace.note(0, 9.9 * GOAL_S, 9 * GOAL_S, MOST_ROWS, new=True, rest=False)
    assert pace.rows == MOST_ROWS
    # But what a COMMIT takes longer than the shortest one lies in what was written.
    pace.note(0, 11 * GOAL_S, 11 * GOAL_S, MOST_ROWS, new=True, rest=False)
    assert pace.rows < MOST_ROWS


def test_what_takes_no_longer_than_the_disk_rides_with_anything() -> None:
    pace = Pace()
    pace.note(0, GOAL_S, GOAL_S / 2, MOST_ROWS, new=True, rest=False)
    assert pace.beside == MOST_ROWS // 2
    pace.note(0, 2 * SHARED_GOAL_S, SHARED_GOAL_S / 10, MOST_ROWS, new=True, rest=True)
    assert pace.beside == pace.rows // 10


def test_beside_a_slow_disk_shared_ticks_may_take_as_long_again() -> None:
    pace = Pace()
    slow = 2 * SHARED_GOAL_S
    pace.note(0, 2 * slow, slow, MOST_ROWS, new=True, rest=True)
    assert pace.rows == MOST_ROWS
    pace.note(0, 4 * slow, slow, MOST_ROWS, new=True, rest=True)
    assert pace.rows < MOST_ROWS
