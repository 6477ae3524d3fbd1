"""Quantiles of what a histogram has observed in the last five minutes."""

from zq.engine.subscribers.figures import Histogram, Recent, RecentTimes

BOUNDS = (1.0, 2.0, 5.0)


class Watched:
    """A histogram and its recent part, at times that the test says."""

    def __init__(self) -> None:
        self.histogram = Histogram(BOUNDS)
        self.recent = Recent(self.histogram)

    def observe(self, now: float, value: float, times: int = 1) -> None:
        for _ in range(times):
            self.recent.mark(now)
            self.histogram.observe(value)


def test_nothing_was_observed_yet() -> None:
    assert Watched().recent.read(0.0) == RecentTimes(0)


def test_half_and_99_percent_keep_the_bounds_that_are_told() -> None:
    watched = Watched()
    watched.observe(0.0, 0.5, times=98)
    watched.observe(1.0, 1.5)
    assert watched.recent.read(2.0) == RecentTimes(99, 1.0, 2.0)
    watched.observe(2.0, 1.5)
    assert watched.recent.read(2.0) == RecentTimes(100, 1.0, 2.0)
    watched.observe(3.0, 9.0, times=200)
    assert watched.recent.read(3.0) == RecentTimes(300, 5.0, 5.0)


def test_what_is_older_than_five_minutes_is_left_out() -> None:
    watched = Watched()
    watched.observe(0.0, 4.0, times=1000)
    for minute in range(1, 8):
        watched.observe(60.0 * minute, 0.5)
    assert watched.recent.read(420.0) == RecentTimes(6, 1.0, 1.0)


def test_an_idle_server_has_no_recent_times() -> None:
    watched = Watched()
    watched.observe(0.0, 4.0)
    watched.observe(59.0, 4.0)
    assert watched.recent.read(359.0).observed == 2
    assert watched.recent.read(360.0) == RecentTimes(0)
    watched.observe(4000.0, 0.5)
    assert watched.recent.read(4000.0) == RecentTimes(1, 1.0, 1.0)


def test_no_more_marks_are_kept_than_minutes_count() -> None:
    watched = Watched()
    for second in range(0, 7200, 10):
        watched.observe(float(second), 0.5)
    assert len(watched.recent._marks) <= 7
