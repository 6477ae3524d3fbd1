"""The reads of producers."""

import sqlite3

import msgspec

from zq.features.producers.model import Producer
from zq.features.producers.store import ProducerReads
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.queries import load

QUERIES = load("zq.features.producers.sqlite_tick")

_producer = msgspec.json.Decoder(Producer)
_producers = msgspec.json.Decoder(list[Producer])


class SqliteProducerReads(ProducerReads):
    """Reads by the connections of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._looks = lanes.looks

    async def producers(self, after: str, limit: int) -> list[Producer]:
        return await self._looks(_page, after, limit)

    async def producer(self, name: str) -> Producer | None:
        return await self._looks(_one, name)


def _page(connection: sqlite3.Connection, after: str, limit: int) -> list[Producer]:
    (text,) = connection.execute(QUERIES["producers"], {"after": after, "limit": limit}).fetchone()
    return _producers.decode(text)


def _one(connection: sqlite3.Connection, name: str) -> Producer | None:
    row = connection.execute(QUERIES["producer"], {"producer": name}).fetchone()
    return None if row is None else _producer.decode(row[0])


READS = {ProducerReads: SqliteProducerReads}
