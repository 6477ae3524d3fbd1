"""Logs: records are appended in the transaction of what they tell, and removed by retention."""

from zq.model.log import Bounds, Stored, outworn
from zq.store.api import BYTES_A_ROW
from zq.store.errors import RowsDiffer
from zq.tick.work import UnitOfWork

TRIMMED = 64
"""How many batches are removed at a time, so that acknowledgements pass in between."""


def append_records(
    work: UnitOfWork, log: str, statement: str, shared: object, **parameters: object
) -> int | None:
    """Append the records that a statement makes. Return the last number, None if it makes none."""
    tx = work.tx
    stamp = {"log": log, "now": work.now, "steady": work.steady}
    added = tx.rows_of(statement, **stamp, shared=shared, **parameters)
    if not added:
        if not tx.rows_of("extent", log=log):
            raise RowsDiffer  # the disk has changed the log's name, and nothing was appended
        return None
    ((count, size),) = added
    tx.rows += 1 + size // BYTES_A_ROW
    grown = tx.rows_of("extend_log", **stamp, count=count, bytes=size)
    ((min_seq, max_seq, is_over),) = grown
    if min_seq < 1:
        raise RowsDiffer  # so has it here, and all records would seem to be too many
    if max_seq - min_seq + 1 == count:
        work.retimed = True
    if is_over:
        _trim(work, log)
    last: int = max_seq
    return last


def trim_logs(work: UnitOfWork) -> None:
    """Remove records that are older than their retention."""
    for log in work.tx.names("to_be_trimmed", steady=work.steady):
        _trim(work, log)


def _trim(work: UnitOfWork, log: str) -> None:
    ((id, min_seq, max_seq, size, *bounds),) = work.tx.rows_of("extent", log=log)
    oldest = [Stored(*row) for row in work.tx.rows_of("oldest", id=id, limit=TRIMMED)]
    gone = oldest[: outworn(oldest, max_seq - min_seq + 1, size, Bounds(*bounds), work.steady)]
    if gone:
        upto = gone[-1].last_seq
        work.tx.write("trim", id=id, upto=upto)
        work.tx.write("note_trim", id=id, upto=upto, bytes=sum(batch.size for batch in gone))
