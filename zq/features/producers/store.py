"""What may be read of producers, whichever the store is."""

from zq.features.producers.model import Producer
from zq.store.snapshot import SnapshotLanes


class ProducerReads:
    """The reads of producers."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._looks = lanes.looks

    async def producers(self, after: str, limit: int) -> list[Producer]:
        """Up to `limit` producers whose names come after this text, in the order of their names."""
        return await self._looks.found(Producer, "producers", after=after, limit=limit)

    async def producer(self, name: str) -> Producer | None:
        """The producer of this name, if it has stored something."""
        return await self._looks.first(Producer, "producer", producer=name)


READS = (ProducerReads,)
