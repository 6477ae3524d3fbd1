"""The tick's phases of the inbox: a row becomes a job in one transaction, or says why it cannot."""

from collections.abc import Sequence

from zq.features.inbox.model import RefuseRow, RowsChanged, TakeRows
from zq.model.commands import EnqueueResult
from zq.store.api import Sliced
from zq.tick.intake import enqueue
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork


def take_rows(work: UnitOfWork, commands: Sequence[TakeRows]) -> Sliced[list[object]]:
    """Store the jobs of rows that are still there, and delete the rows of those that are stored."""
    named = [row for command in commands for row in command.rows]
    left = set(work.tx.keys("lock_inbox", rows=named))
    whole = [command for command in commands if left.issuperset(command.rows)]
    stored = (yield from enqueue(work, whole)) if whole else []
    replies: dict[int, object] = dict(zip(map(id, whole), stored, strict=True))
    taken = [
        row
        for command in whole
        if isinstance(replies[id(command)], EnqueueResult)
        for row in command.rows
    ]
    if taken:
        work.tx.run("delete_from_inbox", rows=taken)
    return [replies.get(id(command)) or RowsChanged() for command in commands]


def refuse_rows(work: UnitOfWork, commands: Sequence[RefuseRow]) -> list[object]:
    """Note why rows cannot become jobs."""
    refusals = [(command.row, command.reason) for command in commands]
    work.tx.run("refuse_in_inbox", refusals=refusals)
    return [None] * len(commands)


PHASES = (
    Phase(Stage.ENQUEUE, take_rows, (TakeRows,)),
    Phase(Stage.CHANGE, by_slices(refuse_rows), (RefuseRow,)),
)
