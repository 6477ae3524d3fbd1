"""The table of lanes, and which queues leave by them."""

import msgspec

from zq.features.forward.commands import PauseLane, PutLane
from zq.features.forward.errors import LaneNotFound, LanesMeet, TooManyLanes
from zq.features.forward.model import MOST_LANES, ForwardLane
from zq.model.queue_patterns import QueuePatterns
from zq.store.api import Transaction, as_json
from zq.tick.work import UnitOfWork


def lanes_in(tx: Transaction) -> list[ForwardLane]:
    """All lanes by name."""
    return msgspec.convert(tx.table("lanes"), list[ForwardLane])


def patterns_in(tx: Transaction) -> QueuePatterns:
    """The queues of all lanes."""
    return QueuePatterns.of(queue for lane in lanes_in(tx) for queue in lane.rule.queues)


def lane_named(work: UnitOfWork, name: str) -> ForwardLane:
    """A lane. Raises `LaneNotFound`."""
    text = work.tx.value("lane", lane=name)
    if text is None:
        raise LaneNotFound(name)
    return msgspec.json.decode(text, type=ForwardLane)


def put_lane(work: UnitOfWork, command: PutLane) -> ForwardLane:
    """Make or change a lane. Raises `LanesMeet` or `TooManyLanes`."""
    name, patterns = command.name, command.rule.patterns
    others = [lane for lane in lanes_in(work.tx) if lane.name != name]
    for other in others:
        if other.rule.patterns.meets(patterns):
            raise LanesMeet(name, command.rule.queues, other.name)
    if len(others) >= MOST_LANES:
        raise TooManyLanes(MOST_LANES)
    work.tx.run(
        "put_lane",
        lane=name,
        rule=as_json(command.rule),
        epoch=command.epoch,
        declared=command.declared,
    )
    reread(work)
    return lane_named(work, name)


def pause_lane(work: UnitOfWork, command: PauseLane) -> ForwardLane:
    """Pause a lane, or let it go on. Raises `LaneNotFound`."""
    lane_named(work, command.name)
    work.tx.run("pause_lane", lane=command.name, paused=command.paused)
    return lane_named(work, command.name)


def drop_lane(work: UnitOfWork, lane: ForwardLane) -> None:
    """Forget a lane and its numbers."""
    work.tx.run("drop_batches", id=lane.id, upto=lane.next)
    work.tx.run("drop_lane", id=lane.id)
    reread(work)


def reread(work: UnitOfWork) -> None:
    """Let the queues of all lanes leave, and no others. Workers may take from the others now."""
    before = work.rulebook.leaving
    work.rulebook = work.rulebook.with_leaving(patterns_in(work.tx))
    for beginning in before.beginnings:
        for statement in ("ready_queues", "line_queues"):
            work.effects.woken.update(work.tx.names(statement, prefix=beginning))
