"""The tick's phase of the audit."""

from collections.abc import Sequence

from zq.features.audit.model import AUDIT_LOG, RecordActions
from zq.tick.logs import append_records
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork


def record_actions(work: UnitOfWork, commands: Sequence[RecordActions]) -> list[object]:
    """Append the actions of all commands together."""
    actions = [action for command in commands for action in command.actions]
    append_records(work, AUDIT_LOG, "append_actions", {}, actions=actions)
    return [None] * len(commands)


PHASES = (Phase(Stage.RECORD, by_slices(record_actions), (RecordActions,)),)
