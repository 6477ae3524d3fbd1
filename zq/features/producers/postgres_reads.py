"""The reads of producers."""

import msgspec

from zq.features.producers.model import Producer
from zq.features.producers.store import ProducerReads
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.readers import PostgresLanes

_COLUMNS = "SELECT name, epoch, last, at, first, key, step FROM producers"


class PostgresProducerReads(ProducerReads):
    """The reads of producers by the lanes of a store."""

    def __init__(self, lanes: PostgresLanes) -> None:
        self._looks = lanes.looks

    async def producers(self, after: str, limit: int) -> list[Producer]:
        sql = f"{_COLUMNS} WHERE name > :after ORDER BY name LIMIT :limit"
        found = await self._looks(rows_of, sql, {"after": after, "limit": limit})
        return msgspec.convert(found, list[Producer])

    async def producer(self, name: str) -> Producer | None:
        found = await self._looks(rows_of, f"{_COLUMNS} WHERE name = :name", {"name": name})
        return msgspec.convert(found[0], Producer) if found else None


READS = {ProducerReads: PostgresProducerReads}
