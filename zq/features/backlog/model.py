"""What could run now, what is left out and why, and how many workers that needs.

    jobs = ready + running                           ready: jobs that could run now

With a target of jobs a worker:

    workers = ceil(jobs / target)

Without a target, ready jobs are to be gone in a minute. By Little's law (J. D. C. Little, "A Proof
for the Queuing Formula: L = λW", Operations Research 1961), n jobs in T seconds that run for `mean`
seconds each keep n · mean / T slots busy. Those in flight keep theirs:

    slots_needed = running + ready · min(mean / 60 s, 1)
    slots_needed = at most max(running, rate · mean)   if the queue has a rate
    workers = ceil(slots_needed / slots)               slots: jobs that a worker runs at a time

A queue of which nothing ended in the last hour has no mean, and needs a slot for each of its jobs.
A worker has one slot where none is connected.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from zq.features.budgets.model import Draw
from zq.features.waits.model import WaitCode
from zq.model.settings import NO_SETTINGS, QueueSettings

DRAIN_MS = 60_000
"""The time in which ready jobs are to be gone, in milliseconds."""

UNCOUNTED = "uncounted"
"""Stands among the gates for ready jobs of which it would take too long to find theirs."""


class KeyRoom(NamedTuple):
    """How many more jobs of a fair key its limits let through now. None: any number."""

    key: str
    jobs: int | None


class LineFacts(NamedTuple):
    """A line: how many of its jobs no group holds, what each draws, and the room of its key."""

    waiting: int
    draws: Sequence[Draw] = ()
    room: KeyRoom | None = None

    @property
    def is_limited(self) -> bool:
        """True if anything could hold its jobs."""
        return bool(self.draws) or (self.room is not None and self.room.jobs is not None)


class StoredBacklog(NamedTuple):
    """The facts that the store has about the ready jobs of a queue.

    `free` jobs are in no line and held by no group. `tokens` has what budgets can pay now. If not
    `is_all`, there are more jobs or lines than those that were counted.
    """

    settings: QueueSettings = NO_SETTINGS
    ready: int = 0
    running: int = 0
    free: int = 0
    has_groups: bool = False
    lines: Sequence[LineFacts] = ()
    tokens: Mapping[str, int] = {}
    is_all: bool = True


class QueueBacklog(NamedTuple):
    """The jobs of a queue: those that could run now, those in flight, and the others by gates.

    `ready` and all of `held` together are the ready jobs of the queue.
    """

    ready: int
    running: int
    held: Counter[str]

    @property
    def all(self) -> int:
        """The jobs that could run now, and those in flight."""
        return self.ready + self.running


def summed(backlogs: Sequence[QueueBacklog]) -> QueueBacklog:
    """The sum of the backlogs of queues."""
    held = Counter[str]()
    for each in backlogs:
        held.update(each.held)
    ready, running = sum(each.ready for each in backlogs), sum(each.running for each in backlogs)
    return QueueBacklog(ready, running, held)


def leaving_backlog(stored: StoredBacklog) -> QueueBacklog:
    """That of a queue whose jobs leave for another server: workers get none, and run none."""
    return QueueBacklog(0, 0, +Counter[str]({WaitCode.LEAVES: stored.ready}))


def backlog_of(stored: StoredBacklog) -> QueueBacklog:
    """What of a queue could run now.

    A job is counted at the first gate that holds it: a pause, its group, the limits of its fair
    key, its budgets, the concurrency of its queue.
    """
    held: Counter[str] = Counter()
    ready = 0 if stored.settings.paused else stored.free + _paid(stored, held)
    if stored.settings.paused:
        held[WaitCode.PAUSED] = stored.ready
    else:
        rest = stored.ready - stored.free - sum(line.waiting for line in stored.lines)
        if stored.is_all:
            held[WaitCode.GROUP] = rest
        elif stored.has_groups or any(line.is_limited for line in stored.lines):
            held[UNCOUNTED] = rest
        else:
            ready += rest
    most = stored.settings.concurrency
    if most is not None:
        beyond = max(ready - max(most - stored.running, 0), 0)
        held[WaitCode.CONCURRENCY] = beyond
        ready -= beyond
    return QueueBacklog(ready, stored.running, +held)


def _paid(stored: StoredBacklog, held: Counter[str]) -> int:
    """How many jobs in lines could run, as claims would take them: line by line."""
    tokens = dict(stored.tokens)
    rooms: dict[str, int] = {}
    found = 0
    for line in stored.lines:
        passed = line.waiting
        if line.room is not None and line.room.jobs is not None:
            passed = min(passed, rooms.setdefault(line.room.key, line.room.jobs))
        limits = [tokens[draw.key] // draw.cost for draw in line.draws if draw.key in tokens]
        paid = max(min([passed, *limits]), 0)
        held[WaitCode.FAIR] += line.waiting - passed
        held[WaitCode.BUDGET] += passed - paid
        for draw in line.draws:
            if draw.key in tokens:
                tokens[draw.key] -= paid * draw.cost
        if line.room is not None and line.room.key in rooms:
            rooms[line.room.key] -= paid
        found += paid
    return found


def mean_of(times: Mapping[int, int]) -> float | None:
    """The mean in milliseconds of times that are counted by powers of two; None without times.

    Each counts as the middle of its power, so the true mean is within a third of the answer.
    """
    count = sum(times.values())
    return sum(n * 0.75 * 2.0**power for power, n in times.items()) / count if count else None


def slots_needed(jobs: QueueBacklog, mean_ms: float | None, rate: float | None) -> float:
    """How many slots of workers a queue needs, by its mean running time and its rate a second."""
    if mean_ms is None:
        return jobs.all
    needed = jobs.running + jobs.ready * min(mean_ms / DRAIN_MS, 1.0)
    return needed if rate is None else min(needed, max(jobs.running, rate * mean_ms / 1000))


def workers_by_target(jobs: int, target: float) -> int:
    """How many workers these jobs need at `target` jobs a worker."""
    return ceil(jobs / target)


def workers_by_slots(needed: Iterable[float], slots: float | None) -> int:
    """How many workers several queues need together, by their slots and those of a worker."""
    return ceil(sum(needed) / (slots or 1.0))
