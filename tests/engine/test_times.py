"""How long jobs of each queue have waited and run since the start."""

from zq.features.trends.engine import MOST_NAMED, OpenTrends, QueueTimes
from zq.features.trends.model import REST, Trend


def waits(times: QueueTimes) -> dict[str, dict[int, int]]:
    return {queue: trend.wait for queue, trend in times.sums().items()}


def test_the_steps_that_are_over_and_the_open_one_add_up() -> None:
    step = OpenTrends()
    times = QueueTimes(step)
    assert waits(times) == {}
    step.trends = {"a": Trend(wait={3: 1})}
    assert waits(times) == {"a": {3: 1}}
    times.add(step.trends)
    step.trends = {"a": Trend(wait={3: 2, 5: 1}), "b": Trend(wait={0: 4})}
    assert waits(times) == {"a": {3: 3, 5: 1}, "b": {0: 4}}
    assert step.trends["a"].wait == {3: 2, 5: 1}


def test_a_queue_keeps_its_name_and_those_without_one_are_the_rest() -> None:
    step = OpenTrends()
    times = QueueTimes(step)
    first = {f"q{n}": Trend(wait={1: 1}) for n in range(MOST_NAMED - 1)}
    step.trends = first
    assert waits(times).keys() == first.keys()
    times.add(first)
    step.trends = {name: Trend(wait={1: 1}) for name in ("last", "x", "y")}
    for _ in range(2):
        found = waits(times)
        assert found.keys() == {*first, "last", REST}
        assert found[REST] == {1: 2}
        times.add(step.trends)
        step.trends = {}
