"""What a slice leaves behind of its sweep."""

from zq.features.sweeps.model import MOST_SWEEPS, SweepMark
from zq.tick.work import UnitOfWork


def note_slice(work: UnitOfWork, mark: SweepMark | None, changed: int) -> None:
    """Store what a sweep has done so far, in the transaction in which it did it."""
    if mark is None or not changed:
        return
    work.tx.run(
        "note_slice",
        id=mark.id,
        outline=mark.outline,
        changed=changed,
        passed=mark.passed,
        now=work.now,
    )
    work.tx.run("forget_sweeps", upto=mark.id - MOST_SWEEPS)
