"""What schemas bring to the tick.

New jobs are compared before they come to the tick. A job that moves, comes back or dies is compared
here, in its transaction, so that no change of a schema or a payload can come in between.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from zq.features.schemas.model import (
    DropSchema,
    InvalidSchema,
    PayloadSchema,
    PutSchema,
    SchemaMismatch,
    StoredSchema,
)
from zq.model.errors import ZqError
from zq.store.api import Sliced
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
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


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """Schemas are rules for jobs that enter queues, and go with all settings."""
    return Hooks(cleared=_clear, payload_rules=payload_rules)


def _clear(work: UnitOfWork, settings: bool) -> None:
    if settings:
        work.tx.write("clear_schemas")


def change_schemas(work: UnitOfWork, commands: Sequence[PutSchema | DropSchema]) -> list[object]:
    """Store and drop schemas, one command after the other."""
    return [_change(work, command) for command in commands]


def _change(work: UnitOfWork, command: PutSchema | DropSchema) -> StoredSchema | None:
    if isinstance(command, DropSchema):
        work.tx.write("drop_schema", queue=command.queue)
        return None
    version = work.tx.value("put_schema", queue=command.queue, body=command.body, now=work.now)
    return StoredSchema(command.queue, command.body, version, work.now)


PHASES = (Phase(Stage.CHANGE, by_slices(change_schemas), (PutSchema, DropSchema)),)
