"""SIGKILL in the middle of folds: no acknowledged number is lost, and none is folded twice.

`CRASH_SEED` repeats a run's choices.
"""

from pathlib import Path
from random import Random

from tiers import sizes

from .folds import Ledger, kill_while_folding
from .lives import seed


@sizes("kills", 4, 200)
async def test_folds_that_were_acknowledged_are_kept_once(kills: int, tmp_path: Path) -> None:
    ledger = Ledger()
    await kill_while_folding(tmp_path / "data", ledger, Random(seed()), kills)
    ledger.judge()
    assert ledger.folds >= 20 * kills
    assert ledger.untold, "nothing was cut off"
    assert len(ledger.hosts) > kills
