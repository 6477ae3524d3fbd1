"""The tick's phases of lanes: their table, and the jobs that get numbers and arrive.

All of a lane is in the database. A phase handles one command after the other, since a server has
few lanes. What it does to jobs, it does to many at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

from zq.features.forward.commands import (
    Arrive,
    BeginEpoch,
    DropLane,
    NameHeir,
    NumberLane,
    PauseLane,
    PutLane,
    ReadLane,
    TrimLane,
)
from zq.features.forward.tick_bounds import BoundLanes, trim
from zq.features.forward.tick_lane import arrive, begin_epoch, number, read, release
from zq.features.forward.tick_table import (
    backlog_lane,
    drop_lane,
    lane_named,
    pause_lane,
    put_lane,
)
from zq.model.errors import ZqError
from zq.store.api import Sliced
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.work import UnitOfWork


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """The queues of lanes leave, and new jobs meet their bounds."""
    return BoundLanes().hooks


def _table(work: UnitOfWork, command: PutLane | PauseLane | DropLane) -> Sliced[object]:
    if isinstance(command, PutLane):
        return put_lane(work, command)
    if isinstance(command, PauseLane):
        return pause_lane(work, command)
    lane = lane_named(work, command.name)
    for each in filter(None, (lane, backlog_lane(work, lane.name))):
        yield from release(work, each)
        drop_lane(work, each)
    return None


def _jobs(
    work: UnitOfWork, command: NumberLane | ReadLane | Arrive | NameHeir | BeginEpoch
) -> Sliced[object]:
    if isinstance(command, NumberLane):
        return (yield from number(work, command))
    if isinstance(command, ReadLane):
        return (yield from read(work, lane_named(work, command.name)))
    lane = lane_named(work, command.lane)
    if isinstance(command, NameHeir):
        work.tx.write("name_heir", id=lane.id, heir=command.heir)
        work.effects.promised = True
        return None
    if lane.epoch != command.epoch:
        return 0 if isinstance(command, Arrive) else False
    if isinstance(command, Arrive):
        return (yield from arrive(work, lane, command.last))
    return (yield from begin_epoch(work, lane, command))


def _each(
    do: Callable[[UnitOfWork, Any], Sliced[object]],
) -> Callable[[UnitOfWork, Sequence[Any]], Sliced[list[object]]]:
    """A phase that handles one command after the other. An error of the tree is its reply."""

    def phase(work: UnitOfWork, commands: Sequence[Any]) -> Sliced[list[object]]:
        replies: list[object] = []
        for command in commands:
            try:
                replies.append((yield from do(work, command)))
            except ZqError as error:
                replies.append(error)
        return replies

    return phase


PHASES = (
    Phase(Stage.SETTLE, _each(_jobs), (Arrive, ReadLane, NameHeir, BeginEpoch)),
    Phase(Stage.CHANGE, _each(_table), (PutLane, PauseLane, DropLane)),
    Phase(Stage.CHANGE, _each(trim), (TrimLane,)),
    Phase(Stage.RECORD, _each(_jobs), (NumberLane,)),
)
"""Jobs get numbers last, so that one commit can store a job and have it sent."""
