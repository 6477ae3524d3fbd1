"""The reads of groups of failures."""

from collections.abc import Sequence

from zq.features.failures.model import FailureRow
from zq.features.failures.store import FailureReads
from zq.store.snapshot import Snapshot, SnapshotLanes


class StoredFailureReads(FailureReads):
    """The reads of failures by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._views = lanes.views

    async def failures(self, since: int, bar: int, length: int) -> list[FailureRow]:
        asked = {"since": since, "bar": bar, "length": length}
        return await self._views.found(FailureRow, "failures_since", **asked)

    async def dead_of(
        self, signatures: Sequence[str], queues: Sequence[str] | None, most: int
    ) -> dict[str, tuple[int, bool]]:
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


READS = {FailureReads: StoredFailureReads}
