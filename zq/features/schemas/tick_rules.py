"""The schemas of queues that stored jobs enter.

New jobs are compared before they come to the tick. A job that moves, comes back or dies is compared
here, in its transaction, so that no change of a schema or a payload can come in between.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from zq.features.schemas.model import PayloadSchema
from zq.model.errors import ZqError
from zq.model.queue_errors import InvalidSchema, NotCompared, SchemaMismatch
from zq.tick.work import UnitOfWork

MOST_COMPARED_AT_ONCE = 50_000
"""The comparisons for one change, and one more payload: they take 10 to 50 ms."""

BYTES_A_COMPARISON = 64
"""The bytes of a payload that are decoded in the time of a comparison."""

TOO_LARGE = (
    "it has more than 1 MiB, and such a payload is compared only with the schema of the queue that"
    " a new job names: enqueue it into that queue"
)

MOST_PARSED = 32


def payload_rules(work: UnitOfWork, queues: Collection[str]) -> "SchemaRules | None":
    """The rules of those queues that have a schema."""
    found = work.tx.table("read_schemas_of", queues=sorted(queues))
    schemas = {queue: schema for queue, body in found if (schema := _parsed(body)) is not None}
    return SchemaRules(schemas) if schemas else None


class SchemaRules:
    """Compares payloads with the schemas of queues, as long as that does not take too long."""

    def __init__(self, schemas: Mapping[str, PayloadSchema]) -> None:
        self._schemas = schemas
        self._left = MOST_COMPARED_AT_ONCE

    def refusal(self, payload: str | None, queues: Iterable[str]) -> ZqError | None:
        """Why a payload may not come to all of these queues. None is one too large."""
        for queue in queues:
            schema = self._schemas.get(queue)
            if schema is None:
                continue
            if payload is None:
                return SchemaMismatch(TOO_LARGE)
            if self._left <= 0:
                return NotCompared()
            compared, mismatch = schema.compare(payload)
            self._left -= compared + len(payload) // BYTES_A_COMPARISON
            if mismatch is not None:
                return mismatch
        return None


@lru_cache(MOST_PARSED)
def _parsed(body: str) -> PayloadSchema | None:
    """A schema; None if this version cannot read it, so that no payload is compared with it."""
    try:
        return PayloadSchema(body)
    except InvalidSchema:
        return None
