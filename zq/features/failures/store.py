"""What may be read of groups of failures, whichever the store is."""

from collections.abc import Sequence

from zq.features.failures.model import FailureRow
from zq.store.snapshot import Snapshot, SnapshotLanes


class FailureReads:
    """The reads of failures. They raise what the methods of `zq.store.reads.Reads` raise."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._views = lanes.views

    async def failures(self, since: int, bar: int, length: int) -> list[FailureRow]:
        """The groups of failures by queue that have come since a time. Their number is bounded.

        Their bars of `bar` milliseconds begin at that time, and come from counts of `length`.
        """
        asked = {"since": since, "bar": bar, "length": length}
        return await self._views.found(FailureRow, "failures_since", **asked)

    async def dead_of(
        self, signatures: Sequence[str], queues: Sequence[str] | None, most: int
    ) -> dict[str, tuple[int, bool]]:
        """How many jobs of these queues (None: of all) are dead of each group of failures.

        Of each, the latest `most` failures are looked at; true if there are more.
        """
        return await self._views(_dead_of, signatures, queues, most)


def _dead_of(
    snapshot: Snapshot,
    signatures: Sequence[str],
    queues: Sequence[str] | None,
    most: int,
) -> dict[str, tuple[int, bool]]:
    """How many jobs are dead of each group, and whether it has more failures than `most`."""
    asked = {"queues": None if queues is None else list(queues), "most": most}
    found = {}
    for signature in signatures:
        ((dead, looked),) = snapshot.rows("dead_of_cause", signature=signature, **asked)
        found[signature] = dead, looked == most
    return found


READS = (FailureReads,)

FORMS = {"error_groups": {"types": list[str]}}
"""The forms of what columns hold, by table."""
