"""What fair shares bring to the tick: the hold on jobs with a key, and what is set for keys."""

from collections.abc import Sequence

import msgspec

from zq.features.fair.model import NO_LIMIT, key_from
from zq.features.fair.model_jobs import DropFairLimit, PutFairLimit, fair_key_of
from zq.features.fair.tick_hold import FairHold
from zq.model.commands import Due, Enqueue
from zq.model.job import NO_OPTIONS, NewJob
from zq.model.lifecycle import Move
from zq.model.places import place_at
from zq.model.settings import BY_PRODUCER
from zq.store.api import Sliced
from zq.tick.hooks import Hooks, Jobs, Options
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork, hold_of

SLICE_BYTES = 256 * 1024
"""So many bytes of payloads are read, in about a millisecond, before other tasks have a turn."""

MOST_READ = 1024 * 1024
"""Larger payloads are not looked into: that takes more than 2 ms a MiB."""


def keyed(work: UnitOfWork, command: Enqueue) -> Sliced[Enqueue]:
    """The command with the keys of its jobs, as far as they bring none and their queues say where.

    A job keeps the key that it got when it came, whatever becomes of the setting.
    """
    queues = work.rulebook.keyed
    jobs: list[NewJob] = []
    passed = 0
    for job in command.jobs:
        if job.queue in queues and fair_key_of(job.options) is None:
            jobs.append(_with_key(work, job, command.sender))
            passed += job.payload_size
            if passed > SLICE_BYTES:
                passed = 0
                yield None
        else:
            jobs.append(job)
    return msgspec.structs.replace(command, jobs=jobs)


def _with_key(work: UnitOfWork, job: NewJob, sender: str | None) -> NewJob:
    rule = work.settings_of(job.queue).fair
    assert rule is not None and rule.key is not None
    found: str | None = None
    if rule.key == BY_PRODUCER:
        found = sender
    elif job.payload_size <= MOST_READ:
        meta = None if job.extras is None else job.extras.meta
        found = key_from(place_at(rule.key).read(job.payload, meta))
    options = msgspec.structs.replace(job.options or NO_OPTIONS, fair_key=found or "")
    return msgspec.structs.replace(job, options=options)


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """New jobs get the keys that their queues take from a field, and jobs with keys are held."""
    due = {Due.SHARE: _open_due}
    moves = {Move.REVIVE: _come_back, Move.UNDO: _come_back}
    return Hooks(hold=FairHold(), keyed=keyed, cleared=_clear, due=due, moves=moves)


def _come_back(work: UnitOfWork, jobs: Jobs, after: Jobs | None) -> None:
    """Count the shares of jobs that have ended and wait again, as those of new jobs."""
    hold_of(work, FairHold).count_from(work, jobs)


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
