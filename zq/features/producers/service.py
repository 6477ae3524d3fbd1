"""The verbs about producers: looking at what they have stored, and forgetting them."""

from typing import Self

from zq.engine.inbox import Inbox
from zq.features.producers.model import ForgetProducer, Producer, ProducerNotFound, check_producer
from zq.features.producers.store import ProducerReads
from zq.service.services import Services


class Producers:
    """Producers by name. They belong to no queue, so callers need a reach of all queues."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store.reads.of(ProducerReads), services.engine.inbox)

    def __init__(self, reads: ProducerReads, inbox: Inbox) -> None:
        self._reads = reads
        self._inbox = inbox

    async def page(self, after: str, limit: int) -> list[Producer]:
        """Up to `limit` producers whose names come after this text."""
        return await self._reads.producers(after, limit)

    async def get(self, name: str) -> Producer:
        """One producer. Raises `InvalidRequest` or `ProducerNotFound`."""
        check_producer(name)
        found = await self._reads.producer(name)
        if found is None:
            raise ProducerNotFound(name)
        return found

    async def forget(self, name: str) -> None:
        """Delete a producer: the next request of this name begins anew. Raises `ProducerNotFound`.

        What it has stored so far would be stored again if it were repeated.
        """
        check_producer(name)
        await self._inbox.ask(ForgetProducer(name))
