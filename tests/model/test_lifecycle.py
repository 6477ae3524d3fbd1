"""The table of legal moves, against the known lifecycle and the code that decides."""

from random import Random

import pytest

from zq.model.job import JobSettings
from zq.model.lifecycle import BY_NAME, MOVES, NAMES, TERMINAL, Move, Status, sources
from zq.model.settling import Failure, Policy, after_failure

S = Status

# Every arrow of the lifecycle, as (from, to).
ARROWS = {
    Move.PROMOTE: {(S.SCHEDULED, S.READY)},
    Move.PATCH: {
        (S.SCHEDULED, S.SCHEDULED),
        (S.SCHEDULED, S.READY),
        (S.READY, S.READY),
        (S.READY, S.SCHEDULED),
        (S.IN_FLIGHT, S.IN_FLIGHT),
    },
    Move.TAKE: {(S.READY, S.IN_FLIGHT)},
    Move.RETURN: {(S.IN_FLIGHT, S.READY)},
    Move.RELEASE: {(S.IN_FLIGHT, S.READY), (S.IN_FLIGHT, S.SCHEDULED)},
    Move.STALL: {(S.IN_FLIGHT, S.READY)},
    Move.RESUME: {(S.READY, S.IN_FLIGHT)},
    Move.SUCCEED: {(S.IN_FLIGHT, S.COMPLETED)},
    Move.FAIL: {(S.IN_FLIGHT, S.SCHEDULED)},
    Move.BURY: {(S.IN_FLIGHT, S.DEAD)},
    Move.REVIVE: {
        (S.SCHEDULED, S.READY),
        (S.READY, S.READY),
        (S.IN_FLIGHT, S.READY),
        (S.DEAD, S.READY),
    },
    Move.EXPIRE: {(S.SCHEDULED, S.EXPIRED), (S.READY, S.EXPIRED)},
    Move.CANCEL: {(S.SCHEDULED, S.CANCELLED), (S.READY, S.CANCELLED)},
    Move.FORCE: {
        (S.SCHEDULED, S.CANCELLED),
        (S.READY, S.CANCELLED),
        (S.IN_FLIGHT, S.CANCELLED),
    },
    Move.UNDO: {(S.CANCELLED, S.SCHEDULED), (S.CANCELLED, S.READY)},
}


@pytest.mark.parametrize("move", Move)
def test_the_table_has_exactly_the_arrows_of_the_lifecycle(move: Move) -> None:
    arrows = {(start, end) for start, ends in MOVES[move].items() for end in ends}
    assert arrows == ARROWS[move]
    assert sources(move) == {start for start, _ in ARROWS[move]}


def test_only_a_revival_and_an_undo_leave_terminal_states_and_others_have_a_way_out() -> None:
    moves = set(Move) - {Move.REVIVE, Move.UNDO}
    leaving = {start for move in moves for start, end in ARROWS[move] if start is not end}
    assert leaving == set(Status) - TERMINAL
    assert {S.COMPLETED, S.DEAD, S.CANCELLED, S.EXPIRED} == TERMINAL
    assert {start for start, _ in ARROWS[Move.REVIVE]} & TERMINAL == {S.DEAD}


def test_every_state_is_reached_from_an_enqueue() -> None:
    reached = {S.SCHEDULED, S.READY}
    for _ in Status:
        reached |= {
            end for table in MOVES.values() for start in reached for end in table.get(start, ())
        }
    assert reached == set(Status)


def test_a_failure_decides_for_the_states_of_the_table_and_for_each_of_them() -> None:
    failures = [Failure("m"), Failure("m", kill=True), Failure("m", retry_at=5)]
    decided = {
        after_failure(attempts, JobSettings(retry_limit=1), failure, Policy(), Random(0)).status
        for failure in failures
        for attempts in (1, 2)
    }
    assert decided == MOVES[Move.FAIL][S.IN_FLIGHT] | MOVES[Move.BURY][S.IN_FLIGHT]


def test_the_names_on_the_wire() -> None:
    names = ["scheduled", "ready", "in_flight", "completed", "dead", "cancelled", "expired"]
    assert list(BY_NAME) == names
    assert {status: name for name, status in BY_NAME.items()} == NAMES


def test_the_stored_numbers_never_change() -> None:
    assert [status.value for status in Status] == [0, 1, 2, 3, 4, 5, 6]
    assert [status.name for status in Status] == [name.upper() for name in BY_NAME]
