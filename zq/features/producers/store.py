"""What may be read of producers, whichever the store is."""

from typing import Protocol

from zq.features.producers.model import Producer


class ProducerReads(Protocol):
    """The reads of producers."""

    async def producers(self, after: str, limit: int) -> list[Producer]:
        """Up to `limit` producers whose names come after this text, in the order of their names."""

    async def producer(self, name: str) -> Producer | None:
        """The producer of this name, if it has stored something."""
