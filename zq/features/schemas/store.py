"""What may be read of schemas, whichever the store is."""

from typing import Any

import msgspec

from zq.features.schemas.model import StoredSchema
from zq.store.snapshot import Snapshot, SnapshotLanes


class SchemaReads:
    """The reads of schemas. They raise what the methods of `zq.store.reads.Reads` raise."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def schemas(self) -> list[StoredSchema]:
        """The schemas of payloads, in the order of their queues."""
        return await self._lanes.looks(_schemas)


def _schemas(snapshot: Snapshot) -> list[StoredSchema]:
    found = [StoredSchema(*row) for row in snapshot.rows("schemas")]
    for schema in found:
        msgspec.json.decode(schema.body)
    return found


READS = (SchemaReads,)

FORMS = {"schemas": {"body": Any}}
"""The forms of what columns hold, by table."""
