"""All features under SIGKILL: no damage, no broken law of the file, nothing lost or done twice.

`CRASH_SEED` repeats a run's choices.
"""

from pathlib import Path
from random import Random

from rooms import needs
from tiers import sizes

from .features import Ledger, breaches, live_and_die
from .lives import seed

pytestmark = [needs("doors.topics"), needs("doors.queue_ti")]

ANSWERS = 600
"""About so many requests are answered before each kill."""


@sizes("kills", 2, 200)
async def test_whatever_is_asked_for_the_file_is_sound_after_each_kill(
    kills: int, tmp_path: Path
) -> None:
    root, ledger, random = tmp_path / "data", Ledger(), Random(seed())
    for kill in range(kills):
        # `-s` shows how far a long run has come.
        print(f"{kill} of {kills} kills, {ledger.statuses.total()} answers", flush=True)
        await live_and_die(root, ledger, random, ANSWERS)
        assert [*breaches(root, ledger)] == [], kill
    done = {status for _, _, status in ledger.statuses}
    assert {200, 201, 204, 400, 404, 422} <= done, done
    assert ledger.done and ledger.stored
    print(*sorted(ledger.statuses.items()), sep="\n")
