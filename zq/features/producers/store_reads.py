"""The reads of producers."""

from zq.features.producers.model import Producer
from zq.features.producers.store import ProducerReads
from zq.store.snapshot import SnapshotLanes


class StoredProducerReads(ProducerReads):
    """The reads of producers by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._looks = lanes.looks

    async def producers(self, after: str, limit: int) -> list[Producer]:
        return await self._looks.found(Producer, "producers", after=after, limit=limit)

    async def producer(self, name: str) -> Producer | None:
        return await self._looks.first(Producer, "producer", producer=name)


READS = {ProducerReads: StoredProducerReads}
