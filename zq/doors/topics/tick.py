"""What topics bring to the tick."""

from typing import get_args

from zq.doors.topics.commands import Append, LayAside
from zq.doors.topics.tick_numbers import AnyNumbering, number_jobs
from zq.doors.topics.tick_records import append
from zq.doors.topics.tick_routers import AnyRouterChange, change_routers
from zq.doors.topics.tick_topics import AnyTopicChange, change_topics
from zq.tick.phases import Phase, Stage

PHASES = (
    Phase(Stage.RECORD, change_topics, get_args(AnyTopicChange)),
    Phase(Stage.RECORD, change_routers, get_args(AnyRouterChange)),
    Phase(Stage.RECORD, append, (Append, LayAside)),
    Phase(Stage.RECORD, number_jobs, get_args(AnyNumbering)),
)
