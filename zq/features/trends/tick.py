"""The tick's phases of trends: a minute that is over is added to its row and to longer times."""

from collections.abc import Sequence

import msgspec

from zq.features.failures.tick import forget_old_counts
from zq.features.trends.model import (
    KEPT_MS,
    KEPT_TYPES_MS,
    MOST_QUEUES,
    MOST_TYPES,
    REST,
    REST_OF_TYPES,
    TOTAL,
    AddTrends,
    AddTypeTrends,
    Trend,
    TypeTrend,
)
from zq.store.api import Sliced
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.work import UnitOfWork


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """Trends go with all settings."""
    return Hooks(cleared=_clear)


def _clear(work: UnitOfWork, settings: bool) -> None:
    if settings:
        work.tx.write("clear_trends")
        work.tx.write("clear_type_trends")


def add_trends(work: UnitOfWork, commands: Sequence[AddTrends]) -> Sliced[list[object]]:
    """Store trends. With each new time, those of one time that are too old are deleted, and
    so are counts of failures.

    So they are forgotten as time passes, and a clock that is set far ahead takes hardly any along.
    """
    for command in commands:
        begun = set()
        for length, kept in KEPT_MS.items():
            if _add(work, length, command):
                begun.add(length)
                work.tx.write("forget_trends", length=length, before=work.now - kept)
            yield None
        forget_old_counts(work, begun)
    return [None] * len(commands)


def add_type_trends(work: UnitOfWork, commands: Sequence[AddTypeTrends]) -> Sliced[list[object]]:
    """Store trends of types, and delete those that are too old, as for queues."""
    for command in commands:
        for length, kept in KEPT_TYPES_MS.items():
            if _add_types(work, length, command):
                work.tx.write("forget_type_trends", length=length, before=work.now - kept)
            yield None
    return [None] * len(commands)


def _add(work: UnitOfWork, length: int, command: AddTrends) -> bool:
    """Add to the trends of this length. Return whether a new time begins.

    Queues without room are counted together.
    """
    at = command.at - command.at % length
    asked = [*command.trends, REST]
    rows = work.tx.table("read_trends", length=length, at=at, queues=asked)
    trends = {queue: msgspec.convert(fields, Trend, strict=False) for queue, fields in rows}
    known = work.tx.value("count_trends", length=length, at=at)
    room = MOST_QUEUES - known
    for queue, more in command.trends.items():
        if queue not in trends and queue not in (REST, TOTAL):
            if room <= 0:
                queue = REST
            room -= 1
        trends.setdefault(queue, Trend()).add(more)
    changed = {REST, *command.trends} & trends.keys()
    written = [(queue, trends[queue]) for queue in changed]
    work.tx.write("write_trends", length=length, at=at, rows=written)
    return not known


def _add_types(work: UnitOfWork, length: int, command: AddTypeTrends) -> bool:
    """Add to the trends of this length. Return whether a new time begins.

    Types without room are counted together.
    """
    at = command.at - command.at % length
    asked = [*command.trends, REST_OF_TYPES]
    rows = work.tx.table("read_type_trends", length=length, at=at, names=asked)
    trends = {
        (queue, type): msgspec.convert(fields, TypeTrend, strict=False)
        for queue, type, fields in rows
    }
    known = work.tx.value("count_type_trends", length=length, at=at)
    room = MOST_TYPES - known
    for name, more in command.trends.items():
        if name not in trends and name != REST_OF_TYPES:
            if room <= 0:
                name = REST_OF_TYPES
            room -= 1
        trends.setdefault(name, TypeTrend()).add(more)
    changed = {REST_OF_TYPES, *command.trends} & trends.keys()
    written = [(*name, trends[name]) for name in changed]
    work.tx.write("write_type_trends", length=length, at=at, rows=written)
    return not known


PHASES = (
    Phase(Stage.RECORD, add_trends, (AddTrends,)),
    Phase(Stage.RECORD, add_type_trends, (AddTypeTrends,)),
)
