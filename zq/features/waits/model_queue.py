"""Why the jobs of a queue wait: what holds them now, and what would change that."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from zq.features.waits.model import BudgetWait, QueueTakers, WaitCode, budget_text
from zq.model.pauses import pause_text
from zq.model.settings import NO_SETTINGS, QueueSettings

NEAR = 0.9
"""A queue that delivers this share of its rate is at its rate."""


MOST_LINES = 3
"""The most combinations of budgets that are told of, those with most jobs first."""


class QueueGate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cause that holds the jobs of a queue: a `WaitCode`, a sentence, and when that ends (ms)."""

    kind: str
    text: str
    until: int | None = None


class WhyLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sentence, and the kind of what would change that: a `WaitCode`, if anything does."""

    text: str
    remedy: str | None = None


class QueueWhy(msgspec.Struct, frozen=True):
    """Why the jobs of a queue wait: the strongest reason first. `ahead` counts its ready jobs."""

    lines: list[WhyLine]
    gates: list[QueueGate]
    ahead: int
    slots_free: int
    workers: int


class BudgetLine(NamedTuple):
    """The ready jobs of a queue that draw the same, and the budgets that cannot pay one of them."""

    queue: str
    waiting: int
    since: int | None
    """When the first of them became ready (ms)."""
    waits: Sequence[BudgetWait]


class StoredWaits(NamedTuple):
    """The facts that the store has about a queue's waiting jobs."""

    settings: QueueSettings = NO_SETTINGS
    may_go: bool = False
    """True if neither a group nor a budget holds the first of them."""
    behind: int = 0
    """How many wait for a job of their group, up to `MOST_AHEAD`."""
    lines: Sequence[BudgetLine] = ()


class QueueWaitFacts(NamedTuple):
    """The facts behind the answer. Times are in milliseconds."""

    now: int
    stored: StoredWaits = StoredWaits()
    ready: int = 0
    in_flight: int = 0
    delivered_1m: float = 0.0
    takers: QueueTakers = QueueTakers()
    slots: int = 0
    """How many jobs its workers run at a time."""
    slots_free: int = 0
    opens_at: int | None = None
    """When its rate lets the next job through, if that is known."""
    is_full: bool = False
    """True if as many jobs are in flight as the server allows."""


def queue_why(facts: QueueWaitFacts) -> QueueWhy:
    """Why the jobs of a queue wait."""
    gates = list(_gates(facts)) if facts.ready else []
    lines = [
        WhyLine(_advised(gate, facts), gate.kind if gate.kind in _MENDABLE else None)
        for gate in gates
    ]
    if not lines:
        text = "Nothing holds its jobs: workers get them as they ask" if facts.ready else _IDLE
        lines = [WhyLine(f"{text}.")]
    return QueueWhy(lines, gates, facts.ready, facts.slots_free, facts.takers.all)


_IDLE = "No job waits"

_MENDABLE = frozenset(WaitCode) - {WaitCode.SERVER_LIMIT}
"""The causes that hold jobs until somebody changes something that the page can lead to."""


def _gates(facts: QueueWaitFacts) -> Iterator[QueueGate]:
    stored, takers = facts.stored, facts.takers
    settings = stored.settings
    if settings.paused:
        text = f"It is {pause_text(settings)}"
        yield QueueGate(WaitCode.PAUSED, text, settings.paused_until)
    if not takers.all:
        yield QueueGate(WaitCode.NO_WORKER, "Nobody takes its jobs")
    for line in stored.lines[:MOST_LINES]:
        for wait in line.waits:
            text = f"{_jobs(line.waiting)}: {budget_text(wait)}"
            yield QueueGate(WaitCode.BUDGET, text, wait.pays_at)
    if stored.behind and not stored.may_go:
        text = f"{_jobs(stored.behind)} for the job of their group that comes first"
        yield QueueGate(WaitCode.GROUP, text)
    most, rate = settings.concurrency, settings.rate
    if most is not None and facts.in_flight >= most:
        text = f"It has {facts.in_flight:,} of at most {most:,} jobs in flight"
        yield QueueGate(WaitCode.CONCURRENCY, text)
    if rate is not None and _is_at(rate, facts):
        yield QueueGate(WaitCode.RATE, f"It is at its rate of {rate:g} jobs a second")
    if facts.is_full:
        text = "As many jobs are in flight as --global-in-flight-limit allows"
        yield QueueGate(WaitCode.SERVER_LIMIT, text)
    if takers.all and not takers.open:
        yield QueueGate(WaitCode.WORKERS_BUSY, _busy(facts))


def _advised(gate: QueueGate, facts: QueueWaitFacts) -> str:
    """A gate as a sentence that says what would help."""
    match gate.kind:
        case WaitCode.PAUSED:
            more = ": resume it to have its jobs delivered."
        case WaitCode.NO_WORKER:
            more = ": start a worker for it."
        case WaitCode.CONCURRENCY | WaitCode.RATE if facts.slots_free:
            more = f". Its workers have {_slots(facts.slots_free)}: a higher limit would use them."
        case WaitCode.CONCURRENCY | WaitCode.RATE:
            more = ". Its workers have no free slot either."
        case WaitCode.WORKERS_BUSY:
            more = ": more workers, or more slots of a worker, would take more."
        case _:
            more = "."
    return gate.text + more


def _is_at(rate: float, facts: QueueWaitFacts) -> bool:
    waits = facts.opens_at is not None and facts.opens_at > facts.now
    return waits or facts.delivered_1m >= NEAR * rate


def _busy(facts: QueueWaitFacts) -> str:
    takers = facts.takers
    text = f"All its {takers.all:,} workers are busy" if takers.all > 1 else "Its worker is busy"
    if facts.slots:
        text += f" in {facts.slots - facts.slots_free:,} of {facts.slots:,} slots"
    if takers.draining:
        text += f"; {takers.draining:,} drained"
    if takers.choked:
        text += f"; {takers.choked:,} slow to read"
    return text


def _jobs(count: int) -> str:
    return f"{count:,} jobs wait" if count > 1 else "1 job waits"


def _slots(count: int) -> str:
    return f"{count:,} free slots" if count > 1 else "1 free slot"
