"""The phases of a tick, each with the commands that it applies.

The runner has phases for the life of a job. Each room brings its own ones in the constant `PHASES`
of its module `tick`. All commands of a tick waited at the same time, so any serial order of them is
correct. The stages are the order that is taken.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from zq.store.api import Sliced
from zq.tick.work import UnitOfWork

Apply = Callable[[UnitOfWork, Sequence[Any]], Sliced[list[object]]]
"""Applies commands, and returns their replies in order: results, or errors of the tree."""


class Stage(IntEnum):
    """The stages of a tick in their order. In a stage, the runner's phases come first, then those
    of rooms in the order of the list of rooms."""

    SETTLE = 1
    """Workers report of jobs in flight."""
    RETURN = 2
    """Jobs in flight stay with their workers for longer, or leave them unfinished."""
    CHANGE = 3
    """Stored jobs, settings and schedules change."""
    ENQUEUE = 4
    """New jobs arrive."""
    RECORD = 5
    """Something that is no job is stored: users, records of topics, trends."""


class Phase(NamedTuple):
    """A phase of a tick: what it does, in which stage, and to which types of commands."""

    stage: Stage
    apply: Apply
    commands: tuple[type, ...]


class PhaseTable:
    """All phases in order, and the phase of each type of command."""

    def __init__(self, phases: Iterable[Phase]) -> None:
        """Raises ValueError if two phases want one type of command."""
        ordered = sorted(phases, key=lambda phase: phase.stage)
        self.applies: list[Apply] = [phase.apply for phase in ordered]
        self.of: dict[type, Apply] = {}
        for phase in ordered:
            for command in phase.commands:
                if command in self.of:
                    raise ValueError(f"two phases apply {command.__name__}")
                self.of[command] = phase.apply
