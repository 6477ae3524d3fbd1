"""What topics bring to the tick."""

from typing import get_args

from zq.doors.topics.commands import Append, LayAside
from zq.doors.topics.tick_numbers import AnyNumbering, note_expired, number_jobs
from zq.doors.topics.tick_records import AnyRouterChange, append, change_routers
from zq.doors.topics.tick_topics import (
    AnyTopicChange,
    change_topics,
    clear_topics,
    forget_writes,
    trim_topics,
)
from zq.model.commands import Due
from zq.model.lifecycle import Move
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.work import UnitOfWork


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """The topics' part in a tick: numbers of expired jobs, and trimming in time."""
    return Hooks(
        moves={Move.EXPIRE: note_expired},
        cleared=clear_topics,
        due={Due.RECORDS: trim_topics, Due.WRITES: forget_writes},
    )


PHASES = (
    Phase(Stage.RECORD, change_topics, get_args(AnyTopicChange)),
    Phase(Stage.RECORD, change_routers, get_args(AnyRouterChange)),
    Phase(Stage.RECORD, append, (Append, LayAside)),
    Phase(Stage.RECORD, number_jobs, get_args(AnyNumbering)),
)
