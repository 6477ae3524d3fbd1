"""The schemas of queues that stored jobs enter.

New jobs are compared before they come to the tick. A job that moves, comes back or dies is compared
here, in its transaction, so that no change of a schema or a payload can come in between.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from zq.features.schemas.errors import InvalidSchema, SchemaMismatch
from zq.features.schemas.model import PayloadSchema
from zq.model.errors import ZqError
from zq.store.api import Sliced
from zq.tick.work import UnitOfWork

SLICE = 10_000
"""The steps after which others are served: they take about 3 ms."""

MOST_PARSED = 32


def payload_rules(work: UnitOfWork, queues: Collection[str]) -> "SchemaRules | None":
    """The rules of those queues that have a schema."""
    found = work.tx.table("read_schemas_of", queues=sorted(queues))
    schemas = {queue: schema for queue, body in found if (schema := _parsed(body)) is not None}
    return SchemaRules(schemas) if schemas else None


class SchemaRules:
    """Compares payloads with the schemas of queues, in slices."""

    def __init__(self, schemas: Mapping[str, PayloadSchema]) -> None:
        self._schemas = schemas
        self._slice_ends = SLICE
        self.steps = 0

    def refusal(self, payload: str, queues: Iterable[str]) -> Sliced[ZqError | None]:
        """Why a payload may not come to all of these queues."""
        for queue in queues:
            if (schema := self._schemas.get(queue)) is None:
                continue
            try:
                for steps in schema.checking(payload):
                    self.steps += steps
                    if self.steps >= self._slice_ends:
                        self._slice_ends = self.steps + SLICE
                        yield None
            except SchemaMismatch as mismatch:
                return mismatch
        return None


@lru_cache(MOST_PARSED)
def _parsed(body: str) -> PayloadSchema | None:
    """A schema; None if this version cannot read it, so that no payload is compared with it."""
    try:
        return PayloadSchema(body)
    except InvalidSchema:
        return None
