"""The reads of groups of failures."""

from collections.abc import Sequence

import msgspec

from zq.features.failures.model import FailureRow
from zq.features.failures.store import FailureReads
from zq.store.postgres.connection import Connection
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.queries import load
from zq.store.postgres.readers import PostgresLanes

QUERIES = load(__name__)


class PostgresFailureReads(FailureReads):
    """The reads of failures by the lanes of a store."""

    def __init__(self, lanes: PostgresLanes) -> None:
        self._lanes = lanes

    async def failures(self, since: int, bar: int, length: int) -> list[FailureRow]:
        asked = {"since": since, "bar": bar, "length": length}
        found = await self._lanes.views(rows_of, QUERIES["failures_since"], asked)
        return msgspec.convert(found, list[FailureRow])

    async def dead_of(
        self, signatures: Sequence[str], queues: Sequence[str] | None, most: int
    ) -> dict[str, tuple[int, bool]]:
        return await self._lanes.views(_dead_of, signatures, queues, most)


def _dead_of(
    connection: Connection,
    signatures: Sequence[str],
    queues: Sequence[str] | None,
    most: int,
) -> dict[str, tuple[int, bool]]:
    """How many jobs are dead of each group, and whether it has more failures than `most`."""
    found = {}
    for signature in signatures:
        asked = {"queues": queues, "most": most, "signature": signature}
        ((dead, looked),) = rows_of(connection, QUERIES["dead_of_cause"], asked)
        found[signature] = dead, looked == most
    return found


READS = {FailureReads: PostgresFailureReads}
