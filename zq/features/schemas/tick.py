"""What schemas bring to the tick."""

from collections.abc import Sequence

from zq.features.schemas.model import DropSchema, PutSchema, StoredSchema
from zq.features.schemas.tick_rules import payload_rules
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork


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
