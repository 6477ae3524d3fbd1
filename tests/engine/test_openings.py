"""When queues that their rate has shut open again."""

from zq.engine.openings import Openings
from zq.model.clock import ManualClock


def test_queues_are_named_once_when_their_time_has_come() -> None:
    clock = ManualClock()
    openings = Openings(clock)
    assert openings.delay() is None
    openings.note({"a": 2.0, "b": 1.0})
    assert openings.delay() == 1.0
    assert openings.due() == []
    clock.advance(1_000)
    assert openings.due() == ["b"]
    assert openings.delay() == 1.0
    clock.advance(5_000)
    assert openings.due() == ["a"]
    assert (openings.due(), openings.delay()) == ([], None)


def test_to_be_asked_again_puts_nothing_off() -> None:
    clock = ManualClock()
    openings = Openings(clock)
    openings.note({"a": 2.0})
    openings.note({"a": 3.0})
    assert openings.delay() == 2.0
    openings.note({"a": 1.0})
    assert openings.delay() == 1.0
