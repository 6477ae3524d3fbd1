"""SIGKILL under mixed load: what was promised is kept.

`CRASH_SEED` repeats a run's choices, `CRASH_CYCLES` sets the number of kills.
"""

from collections import Counter
from pathlib import Path
from random import Random

from .actors import Notebook
from .history import Enqueue, Failure, History, Kill, Outcome, Success
from .lives import cycles, judge, seed
from .sigkill import kill_again_and_again


def assert_mixed(history: History, cycles: int) -> None:
    """The run has tried what it is for."""
    kinds = Counter(
        (type(event), event.outcome)
        for event in history
        if isinstance(event, Enqueue | Success | Failure)
    )
    for kind in (Enqueue, Success, Failure):
        assert kinds[kind, Outcome.OK] > cycles
    assert kinds[Enqueue, Outcome.REFUSED] > 0, "no duplicates"
    assert kinds[Success, Outcome.REFUSED] > 0, "no acknowledgement came too late"
    assert kinds[Enqueue, Outcome.UNKNOWN] + kinds[Success, Outcome.UNKNOWN] > 0, "nothing was cut"
    assert sum(isinstance(event, Kill) for event in history) == cycles


async def test_nothing_acknowledged_is_lost_and_nothing_done_comes_back(tmp_path: Path) -> None:
    notebook, kills = Notebook(), cycles(30)
    try:
        await kill_again_and_again(tmp_path / "data", notebook, Random(seed()), kills)
    finally:
        judge(notebook.history, tmp_path)  # also where the run itself could not go on
    assert_mixed(notebook.history, kills)
