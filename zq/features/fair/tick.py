"""What fair shares bring to the tick: the hold on jobs with a key, and what is set for keys."""

from collections.abc import Sequence

import msgspec

from zq.features.fair.commands import DropFairLimit, PutFairLimit
from zq.features.fair.model import NO_LIMIT
from zq.features.fair.tick_hold import FairHold
from zq.features.fair.tick_keys import keyed
from zq.model.commands import Due
from zq.tick.holds import hold_of
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """New jobs get the keys that their queues take from a field, and jobs with keys are held."""
    due = {Due.SHARE: _open_due}
    return Hooks(hold=FairHold(), keyed=keyed, cleared=_clear, due=due)


def _open_due(work: UnitOfWork) -> None:
    """Let claims look again at keys whose rates let jobs through."""
    work.effects.woken.update(hold_of(work, FairHold).open_due())


def set_limits(work: UnitOfWork, commands: Sequence[PutFairLimit | DropFairLimit]) -> list[object]:
    """Set and drop what is set for keys, one command after the other."""
    replies = [_set(work, command) for command in commands]
    hold = hold_of(work, FairHold)
    if hold.is_used:
        # A limit may be higher than before.
        names = [(command.queue, command.key) for command in commands]
        work.effects.woken.update(hold.open_keys(names))
    return replies


def _set(work: UnitOfWork, command: PutFairLimit | DropFairLimit) -> object:
    place = {"queue": command.queue, "key": command.key}
    hold = hold_of(work, FairHold)
    if isinstance(command, DropFairLimit):
        hold.set_limit((command.queue, command.key), NO_LIMIT)
        return bool(work.tx.run("drop_fair_limit", **place))
    hold.set_limit((command.queue, command.key), command.limit)
    work.tx.write("put_fair_limit", **place, **msgspec.structs.asdict(command.limit))
    return command.limit


def _clear(work: UnitOfWork, settings: bool) -> None:
    hold = hold_of(work, FairHold)
    if hold.is_used:
        hold.clear()
    if settings:
        work.tx.write("clear_fair_limits")


PHASES = (Phase(Stage.CHANGE, by_slices(set_limits), (PutFairLimit, DropFairLimit)),)
"""The limits of keys change where other settings do."""
