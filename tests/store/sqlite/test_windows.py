"""Windows on lists of jobs: the indexes that they use, and the cost of a read."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from zq.operators.admin import store as windows
from zq.operators.admin.model import (
    Anchor,
    AnchorKind,
    Direction,
    JobSearch,
    ListName,
    ListsView,
    WindowRequest,
)

from ..rig import NOW, Ticker
from .backlog import HOUR_MS, fill, plans_of, steps

READY_INDEX = "INDEX ready_by_priority"
SCHEDULED_INDEX = "INDEX scheduled_by_time"
IN_FLIGHT_INDEX = "INDEX not_ready"
INDEX = {
    ListName.READY: READY_INDEX,
    ListName.SCHEDULED: SCHEDULED_INDEX,
    ListName.IN_FLIGHT: IN_FLIGHT_INDEX,
}

NOTHING = WindowRequest(limit=0)

ADMIN = "zq.operators.admin"


def view(anchor: Anchor, limit: int = 20) -> ListsView:
    """Ready and scheduled jobs: those in flight are sorted at each look."""
    request = WindowRequest(anchor, limit)
    return ListsView(request, NOTHING, request)


@pytest.fixture(scope="module")
def small_and_large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ticker, Ticker]]:
    folder = tmp_path_factory.mktemp("windows")
    small, large = Ticker(folder / "small.db"), Ticker(folder / "large.db")
    for ticker, jobs in ((small, 600), (large, 9_000)):
        fill(ticker, jobs)
        ticker.store(jobs, ready_at=NOW + HOUR_MS)
    yield small, large
    small.close()
    large.close()


@pytest.mark.parametrize("kind", [AnchorKind.HEAD, AnchorKind.TAIL])
def test_a_look_at_an_end_costs_the_same_however_many_jobs_wait(
    small_and_large: tuple[Ticker, Ticker], kind: AnchorKind
) -> None:
    looked = view(Anchor(kind))
    few, many = (
        steps(t.connection, partial(windows.see, t.snapshot(ADMIN), looked))
        for t in small_and_large
    )
    assert 0 < many < few * 1.2, (few, many)


@pytest.mark.parametrize("list", ListName)
def test_a_place_inside_is_found_by_the_index_alone(
    small_and_large: tuple[Ticker, Ticker], list: ListName
) -> None:
    ticker, _ = small_and_large
    request = WindowRequest(Anchor(AnchorKind.OFFSET, offset=40), 5)
    plans = plans_of(
        ticker, lambda: windows.see(ticker.snapshot(ADMIN), ListsView().changed(list, request))
    )
    lines = [line for lines in plans for line in lines]
    found = [line for line in lines if "jobs" in line and "rowid=?" not in line]
    assert found
    assert all(any(name in line for name in INDEX.values()) for line in found)
    # Only jobs in flight are sorted.
    for lines in plans:
        if "USE TEMP B-TREE FOR ORDER BY" in lines:
            assert any(IN_FLIGHT_INDEX in line for line in lines)


def test_a_search_walks_the_list_in_its_order(tmp_path: Path) -> None:
    ticker = Ticker(tmp_path / "zq.db")
    (first, second, third) = ticker.store(3, queue="mail", priority=3)
    ahead = JobSearch(ListName.READY, Direction.FORWARD, first, ("ai",), (), 2)
    plans = plans_of(ticker, lambda: windows.search(ticker.snapshot(ADMIN), ahead))
    assert not [line for lines in plans for line in lines if "TEMP B-TREE" in line]

    found = windows.search(ticker.snapshot(ADMIN), ahead)
    assert found.position == 1
    assert [job.key for job in found.window.jobs] == [first, second]
    last = JobSearch(ListName.READY, Direction.BACKWARD, None, (), (), 1)
    assert [job.key for job in windows.search(ticker.snapshot(ADMIN), last).window.jobs] == [third]
    ticker.close()
