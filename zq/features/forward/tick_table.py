"""The table of lanes, and which queues leave by them."""

import msgspec

from zq.features.forward.commands import PauseLane, PutLane
from zq.features.forward.errors import LaneNotFound, LanesMeet, TooManyLanes
from zq.features.forward.model import MOST_LANES, ForwardLane, backlog_of
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
    """Make or change a lane, and that of its backlog. Raises `LanesMeet` or `TooManyLanes`.

    What a lane of a backlog has under way is sent to its end, also once a rule has none.
    """
    name, patterns = command.name, command.rule.patterns
    had = backlog_lane(work, name)
    own = {name} if had is None else {name, had.name}
    others = [lane for lane in lanes_in(work.tx) if lane.name not in own]
    for other in others:
        if other.rule.patterns.meets(patterns):
            raise LanesMeet(name, command.rule.queues, other.name)
    if len(others) >= MOST_LANES:
        raise TooManyLanes(MOST_LANES)
    rules = {name: command.rule}
    if command.rule.backlog == "behind" or (had is not None and _is_under_way(work, had)):
        rules[backlog_of(name)] = command.rule.of_backlog()
    elif had is not None:
        work.tx.write("drop_lane", id=had.id)
    for lane, rule in rules.items():
        work.tx.write(
            "put_lane",
            lane=lane,
            rule=as_json(rule),
            epoch=command.epoch,
            declared=command.declared,
        )
    reread(work)
    return lane_named(work, name)


def _is_under_way(work: UnitOfWork, lane: ForwardLane) -> bool:
    return bool(work.tx.table("batches_of_lane", id=lane.id, upto=lane.next))


def pause_lane(work: UnitOfWork, command: PauseLane) -> ForwardLane:
    """Pause a lane with its backlog, or let it go on. Raises `LaneNotFound`."""
    for lane in filter(None, (lane_named(work, command.name), backlog_lane(work, command.name))):
        work.tx.write("pause_lane", lane=lane.name, paused=command.paused)
    return lane_named(work, command.name)


def backlog_lane(work: UnitOfWork, name: str) -> ForwardLane | None:
    """The lane of the backlog of a lane, if it has one."""
    try:
        found = lane_named(work, backlog_of(name))
    except LaneNotFound:
        return None
    return found if found.is_backlog else None


def drop_lane(work: UnitOfWork, lane: ForwardLane) -> None:
    """Forget a lane and its numbers."""
    work.tx.write("drop_batches", id=lane.id, upto=lane.next)
    work.tx.write("drop_lane", id=lane.id)
    reread(work)


def reread(work: UnitOfWork) -> None:
    """Let the queues of all lanes leave, and no others. Workers may take from the others now."""
    before = work.rulebook.leaving
    work.rulebook = work.rulebook.with_leaving(patterns_in(work.tx))
    for beginning in before.beginnings:
        for statement in ("ready_queues", "line_queues"):
            work.effects.woken.update(work.tx.names(statement, prefix=beginning))
