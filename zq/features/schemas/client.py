"""The schemas of a server's queues, for programs."""

from zq.client.asking import Ask
from zq.features.schemas import verbs
from zq.features.schemas.verbs import AvroSchema, QueueSchemaDocument


class ServerSchemas:
    """The schemas of the queues of one server."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def get(self, queue: str) -> QueueSchemaDocument:
        """The schema of a queue. Raises `BackendError` if it has none."""
        return await self._ask(verbs.GET, queue=queue)

    async def put(self, queue: str, schema: AvroSchema) -> QueueSchemaDocument:
        """Have the new jobs of a queue match a schema."""
        return await self._ask(verbs.PUT, {"schema": schema}, queue=queue)

    async def drop(self, queue: str) -> None:
        """Take the schema of a queue away, if it has one."""
        await self._ask(verbs.DELETE, queue=queue)
