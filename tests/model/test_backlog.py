"""The formula of workers, and what of a queue could run."""

import pytest

from zq.features.backlog.model import (
    KeyRoom,
    LineFacts,
    QueueBacklog,
    StoredBacklog,
    backlog_of,
    mean_of,
    slots_needed,
    workers_by_slots,
    workers_by_target,
)
from zq.features.budgets.model import Draw
from zq.model.settings import QueueSettings


def jobs(ready: int, running: int = 0) -> QueueBacklog:
    return backlog_of(StoredBacklog(ready=ready, running=running, free=ready))


@pytest.mark.parametrize(
    ("ready", "running", "mean_ms", "rate", "slots"),
    [
        (60, 0, None, None, 60),
        (60, 2, 1_000.0, None, 3),
        (60, 2, 10.0, None, 2.01),
        (60, 0, 60_000.0, None, 60),
        (60, 0, 600_000.0, None, 60),
        (600, 1, 6_000.0, 0.5, 3),
        (600, 9, 6_000.0, 0.5, 9),
        (0, 0, 6_000.0, 0.5, 0),
        (60, 0, None, 0.5, 60),
    ],
)
def test_slots_follow_running_times_and_the_rate(
    ready: int, running: int, mean_ms: float | None, rate: float | None, slots: float
) -> None:
    assert slots_needed(jobs(ready, running), mean_ms, rate) == pytest.approx(slots)


def test_workers_are_rounded_up() -> None:
    assert [workers_by_target(n, 5) for n in (0, 1, 5, 6)] == [0, 1, 1, 2]
    assert [workers_by_slots([n, 0.25], 4) for n in (0, 3.75, 4)] == [1, 1, 2]
    assert workers_by_slots([2.0, 1.0], None) == 3
    assert workers_by_slots([], 4) == 0


def test_the_mean_is_within_a_third_of_the_times() -> None:
    assert mean_of({}) is None
    assert mean_of({11: 2}) == 1536
    assert mean_of({11: 1, 13: 1}) == 3840


def test_a_budget_pays_lines_one_after_another() -> None:
    lines = [LineFacts(4, (Draw("a", 2),)), LineFacts(9, (Draw("a"), Draw("gone")))]
    stored = StoredBacklog(ready=13, lines=lines, tokens={"a": 5})
    found = backlog_of(stored)
    assert (found.ready, found.held) == (3, {"budget": 10})


def test_a_budget_below_zero_pays_nothing() -> None:
    stored = StoredBacklog(ready=2, lines=[LineFacts(2, (Draw("a"),))], tokens={"a": -3})
    assert backlog_of(stored).held == {"budget": 2}


def test_what_a_budget_holds_leaves_room_of_its_fair_key_to_others() -> None:
    room = KeyRoom("=a", 3)
    lines = [LineFacts(5, (Draw("x"),), room), LineFacts(5, (), room)]
    found = backlog_of(StoredBacklog(ready=10, lines=lines, tokens={"x": 1}))
    assert (found.ready, found.held) == (3, {"fair": 5, "budget": 2})


def test_a_pause_holds_all() -> None:
    stored = StoredBacklog(QueueSettings(paused=True, concurrency=1), ready=5, running=1)
    assert backlog_of(stored) == QueueBacklog(0, 1, backlog_of(stored).held)
    assert backlog_of(stored).held == {"paused": 5}
