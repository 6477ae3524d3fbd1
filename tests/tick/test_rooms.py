"""The tick knows no room: phases and hooks come from the list, and it works without any."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import zq.runtime  # noqa: F401 - so that every command has been declared
from zq.model.commands import Command, Enqueue
from zq.model.lifecycle import Move
from zq.tick.hooks import Hooks, HookTable
from zq.tick.phases import Phase, PhaseTable, Stage
from zq.tick.runner import PHASES, all_hooks, all_phases

WITHOUT_ROOMS = """
import sys
from pathlib import Path

import zq.rooms

zq.rooms.ROOMS = ()
from bench.ticks import Ticks, plain_job
from zq.model.commands import Fail, Succeed
from zq.model.settling import Failure

ticks = Ticks(Path(sys.argv[1]))
ticks.store([plain_job(number, "q") for number in range(5)])
keys = ticks.claim(3)
(reply,) = ticks.run(Succeed(keys[:2])).replies
assert not reply.missing, reply
(job,) = ticks.run(Fail(keys[2], Failure("no", None, None))).replies
assert job.attempts == 1, job
assert len(ticks.claim(9)) == 2
rooms = [name for name in sys.modules if name.startswith(("zq.doors.", "zq.operators."))]
assert not rooms, rooms
"""


def kinds_of(command: type) -> set[type]:
    """The commands below a class that no other extends."""
    subclasses: list[type] = command.__subclasses__()
    below = {kind for each in subclasses for kind in kinds_of(each)}
    return below or {command}


def test_a_job_lives_its_life_where_there_are_no_rooms(tmp_path: Path) -> None:
    asked = [sys.executable, "-c", WITHOUT_ROOMS, str(tmp_path / "zq.db")]

    done = subprocess.run(asked, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_every_command_has_a_phase() -> None:
    assert kinds_of(Command) - set(all_phases().of) == set()


def test_two_phases_cannot_apply_one_command() -> None:
    def phase(work: object, commands: object) -> Any:
        raise NotImplementedError

    with pytest.raises(ValueError, match="two phases apply Enqueue"):
        PhaseTable([*PHASES, Phase(Stage.RECORD, phase, (Enqueue,))])


def test_phases_come_by_their_stages_and_the_own_ones_first() -> None:
    def early(work: object, commands: object) -> Any:
        raise NotImplementedError

    class Order(Command[None], frozen=True):
        pass

    table = PhaseTable([*PHASES, Phase(Stage.CHANGE, early, (Order,))])

    own = [phase.apply for phase in PHASES]
    assert table.applies == [*own[:-1], early, own[-1]]


def test_a_hook_that_one_room_may_have_is_refused_to_a_second() -> None:
    with pytest.raises(ValueError, match="two rooms have one hook"):
        HookTable([Hooks(signature=str), Hooks(signature=repr)])


def test_a_store_without_a_history_asks_nothing_of_it() -> None:
    without, with_one = all_hooks({}), all_hooks({"device": "d"})

    assert without.moves[Move.SUCCEED] == ()
    assert len(with_one.moves[Move.SUCCEED]) == 1
