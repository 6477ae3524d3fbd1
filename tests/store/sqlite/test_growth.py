"""No hot query does more work with a larger backlog."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from zq.features.waits import store as waits
from zq.model.commands import Claim
from zq.model.filters import EVERYTHING, Filter
from zq.model.reach import EVERYWHERE, reach_of
from zq.model.unique import Scope
from zq.store import lookups

from ..rig import NOW, Ticker
from .backlog import DEAD, QUEUES, fill, steps

HOT: dict[str, Callable[[Ticker], object]] = {
    "claim from all queues": lambda t: t.run(claims=[Claim(None, [(1, 5)])]),
    "claim from 3 queues": lambda t: t.run(claims=[Claim(QUEUES[:3], [(1, 5)])]),
    "claim by a prefix": lambda t: t.run(claims=[Claim(None, [(1, 5)], reach_of(["q0"]))]),
    "claim from 30 queues": lambda t: t.run(claims=[Claim(QUEUES, [(1, 5)])]),
    "look for what is due": lambda t: t.run(promote=True, purge=True),
    "enqueue a unique job": lambda t: t.store(1, unique_key="new", unique_while=Scope.QUEUED),
    "say why a job waits": lambda t: waits.waiting_job(
        t.snapshot("zq.features.waits"), t.store(1, queue="of one job")[0], EVERYWHERE, NOW
    ),
    "count by queue": lambda t: lookups.visible_counts(t.core, NOW),
    "list a page": lambda t: lookups.list_jobs(t.core, EVERYTHING, 0, False, 5, NOW),
    "list dead jobs": lambda t: lookups.list_jobs(
        t.core, Filter(statuses=(DEAD,)), 0, False, 5, NOW
    ),
}


@pytest.fixture(scope="module")
def small_and_large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ticker, Ticker]]:
    folder = tmp_path_factory.mktemp("steps")
    small, large = Ticker(folder / "small.db"), Ticker(folder / "large.db")
    fill(small, 600)
    fill(large, 9_000)
    yield small, large
    small.close()
    large.close()


@pytest.mark.parametrize("name", HOT)
def test_the_work_of_a_hot_query_does_not_grow_with_the_backlog(
    small_and_large: tuple[Ticker, Ticker], name: str
) -> None:
    few, many = (steps(t.connection, partial(HOT[name], t)) for t in small_and_large)
    assert 0 < many < few * 1.2, (few, many)
