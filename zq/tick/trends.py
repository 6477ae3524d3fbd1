"""The tick's phase of trends: a minute that is over is added to its row and to that of its hour."""

from collections.abc import Sequence

import msgspec

from zq.model.trends import KEPT_MS, MOST_QUEUES, REST, TOTAL, AddTrends, Trend
from zq.store.api import Sliced
from zq.tick.failures import forget_old_counts
from zq.tick.work import UnitOfWork


def add_trends(work: UnitOfWork, commands: Sequence[AddTrends]) -> Sliced[list[object]]:
    """Store trends. With each command, those of one time that are too old are deleted, and so
    are counts of failures.
    """
    for command in commands:
        for length, kept in KEPT_MS.items():
            _add(work, length, command)
            work.tx.run("forget_trends", length=length, before=work.now - kept)
            yield None
        forget_old_counts(work)
    return [None] * len(commands)


def _add(work: UnitOfWork, length: int, command: AddTrends) -> None:
    """Add to the trends of this length. Queues without room are counted together."""
    at = command.at - command.at % length
    asked = [*command.trends, REST]
    rows = work.tx.table("read_trends", length=length, at=at, queues=asked)
    trends = {queue: msgspec.convert(fields, Trend, strict=False) for queue, fields in rows}
    room = MOST_QUEUES - work.tx.value("count_trends", length=length, at=at)
    for queue, more in command.trends.items():
        if queue not in trends and queue not in (REST, TOTAL):
            if room <= 0:
                queue = REST
            room -= 1
        trends.setdefault(queue, Trend()).add(more)
    changed = {REST, *command.trends} & trends.keys()
    written = [(queue, trends[queue]) for queue in changed]
    work.tx.run("write_trends", length=length, at=at, rows=written)
