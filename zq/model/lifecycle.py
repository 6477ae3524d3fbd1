"""The states of a job and the table of legal moves. `zq.tick.moves` has their other effects.

    enqueue ──► scheduled ──promote──► ready ──take──► in_flight ──succeed──► completed
                    ▲                    ▲ ◄─return, stall──┘ │ │
                    └────fail, release───┴────────────────────┘ └─────bury────► dead

A patch moves a job between scheduled and ready. A waiting job expires if nobody takes it in time,
and may be cancelled. A job in flight is cancelled only by force. A dying job is revived at once if
its queue has a dead-letter queue. A job that stalled, and that nobody has taken since, is resumed
by its worker's late report. A dead job is revived on request, and a job that waits in a dead-letter
queue goes back on request. A job that a sweep has cancelled waits again if the sweep is undone. A
job in any state may be deleted.
"""

from enum import Enum, IntEnum


class Status(IntEnum):
    """The states of a job. The numbers are stored; the lower-case names are sent."""

    SCHEDULED = 0
    READY = 1
    IN_FLIGHT = 2
    COMPLETED = 3
    DEAD = 4
    CANCELLED = 5
    EXPIRED = 6


class Move(Enum):
    """The changes of a stored job's state."""

    PROMOTE = "promote"
    PATCH = "patch"
    TAKE = "take"
    RETURN = "return"
    RELEASE = "release"
    STALL = "stall"
    RESUME = "resume"
    SUCCEED = "succeed"
    FAIL = "fail"
    BURY = "bury"
    REVIVE = "revive"
    EXPIRE = "expire"
    CANCEL = "cancel"
    FORCE = "cancel by force"
    UNDO = "undo"


MOVES: dict[Move, dict[Status, frozenset[Status]]] = {
    Move.PROMOTE: {Status.SCHEDULED: frozenset({Status.READY})},
    Move.PATCH: {
        Status.SCHEDULED: frozenset({Status.SCHEDULED, Status.READY}),
        Status.READY: frozenset({Status.READY, Status.SCHEDULED}),
        Status.IN_FLIGHT: frozenset({Status.IN_FLIGHT}),
    },
    Move.TAKE: {Status.READY: frozenset({Status.IN_FLIGHT})},
    Move.RETURN: {Status.IN_FLIGHT: frozenset({Status.READY})},
    Move.RELEASE: {Status.IN_FLIGHT: frozenset({Status.READY, Status.SCHEDULED})},
    Move.STALL: {Status.IN_FLIGHT: frozenset({Status.READY})},
    Move.RESUME: {Status.READY: frozenset({Status.IN_FLIGHT})},
    Move.SUCCEED: {Status.IN_FLIGHT: frozenset({Status.COMPLETED})},
    Move.FAIL: {Status.IN_FLIGHT: frozenset({Status.SCHEDULED})},
    Move.BURY: {Status.IN_FLIGHT: frozenset({Status.DEAD})},
    Move.REVIVE: {
        Status.SCHEDULED: frozenset({Status.READY}),
        Status.READY: frozenset({Status.READY}),
        Status.IN_FLIGHT: frozenset({Status.READY}),
        Status.DEAD: frozenset({Status.READY}),
    },
    Move.EXPIRE: {
        Status.SCHEDULED: frozenset({Status.EXPIRED}),
        Status.READY: frozenset({Status.EXPIRED}),
    },
    Move.CANCEL: {
        Status.SCHEDULED: frozenset({Status.CANCELLED}),
        Status.READY: frozenset({Status.CANCELLED}),
    },
    Move.FORCE: {
        Status.SCHEDULED: frozenset({Status.CANCELLED}),
        Status.READY: frozenset({Status.CANCELLED}),
        Status.IN_FLIGHT: frozenset({Status.CANCELLED}),
    },
    Move.UNDO: {Status.CANCELLED: frozenset({Status.SCHEDULED, Status.READY})},
}

TERMINAL = frozenset({Status.COMPLETED, Status.DEAD, Status.CANCELLED, Status.EXPIRED})

NAMES: dict[Status, str] = {status: status.name.lower() for status in Status}
BY_NAME: dict[str, Status] = {name: status for status, name in NAMES.items()}


def sources(move: Move) -> frozenset[Status]:
    """The states from which a move is legal."""
    return frozenset(MOVES[move])
