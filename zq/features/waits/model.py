"""Why jobs of a queue wait: the reasons, the strongest first, from the facts of one moment."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from zq.model.job import JobRecord
from zq.model.lifecycle import NAMES, Status
from zq.model.settings import NO_SETTINGS, QueueSettings, moment_text, pause_text

MOST_AHEAD = 1_000
"""The most jobs ahead of another that are counted."""


class WaitCode(StrEnum):
    """The names of the reasons. Programs may rely on them."""

    FINISHED = "finished"
    IN_FLIGHT = "in_flight"
    SCHEDULED = "scheduled"
    BACKING_OFF = "backing_off"
    EXPIRING = "expiring"
    PAUSED = "paused"
    GROUP = "group"
    FAIR = "fair"
    BUDGET = "budget"
    CONCURRENCY = "concurrency"
    RATE = "rate"
    SERVER_LIMIT = "server_limit"
    LEAVES = "leaves"
    NO_WORKER = "no_worker"
    WORKERS_BUSY = "workers_busy"
    AHEAD = "ahead"
    NEXT = "next"


class TimePlace(NamedTuple):
    """The place of a scheduled job in the order of times."""

    ready_at: int
    key: int


class WaitReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reason: its code, a sentence for people, and fields that go with the code.

    `queue`, `job`, `worker`, `budget` and `fair_key` are names. `until` is a time in milliseconds.
    `count` is a number of jobs, workers or keys. `share` is a part of a queue, up to 1.
    """

    code: str
    """A `WaitCode`; newer servers may have others."""
    text: str
    queue: str | None = None
    job: str | None = None
    worker: str | None = None
    budget: str | None = None
    fair_key: str | None = None
    share: float | None = None
    until: int | None = None
    count: int | None = None


class BudgetWait(NamedTuple):
    """A budget that can pay fewer tokens than a job draws, out of `capacity` at most.

    `pays_at` is None if a job must end first. `held_until` is there while it is held.
    """

    key: str
    cost: int
    available: int
    capacity: int
    pays_at: int | None = None
    held_until: int | None = None


class FairWait(NamedTuple):
    """The turn of a job's fair key. `place` is 1 if it is the next one of `keys` that wait."""

    key: str
    place: int
    keys: int
    share: float
    """The part of the queue that the key gets, up to 1, while all these keys wait."""
    in_flight: int
    most: int | None = None
    """How many jobs it may have in flight, if that is limited."""
    opens_at: int | None = None
    """When its rate lets the next job through, if that is what holds it."""


class Canceller(NamedTuple):
    """Who has cancelled a job, and why, as far as that is known."""

    actor: str | None = None
    reason: str | None = None


NOBODY = Canceller()


class WaitingJob(NamedTuple):
    """A job, and the facts in the store that may keep it waiting."""

    job: JobRecord
    settings: QueueSettings = NO_SETTINGS
    in_flight: int = 0
    """How many jobs of its queue are in flight."""
    head: int | None = None
    """The key of the job of its group for which it waits."""
    budgets: Sequence[BudgetWait] = ()
    fair: FairWait | None = None
    ahead: int = 0
    """How many jobs of its queue come first, up to `MOST_AHEAD`."""
    canceller: Canceller = NOBODY


class OpenGroup(NamedTuple):
    """A group of a queue, and its open job: the one that has to end before the others come.

    Times are in milliseconds.
    """

    name: str
    key: int
    type: str
    status: Status
    attempts: int
    ready_at: int
    dequeued_at: int | None
    behind: int
    """How many jobs wait for it, up to `MOST_AHEAD`."""


class QueueTakers(NamedTuple):
    """The takers of one queue at a moment."""

    all: int = 0
    """Streams and claims."""
    open: int = 0
    """Takers with room for another job."""
    draining: int = 0
    choked: int = 0
    """Streams whose peers do not read."""


class WaitFacts(NamedTuple):
    """The facts behind the reasons. Times are in milliseconds."""

    now: int
    waiting: WaitingJob
    takers: QueueTakers = QueueTakers()
    head: str | None = None
    """The id of the group's job for which this one waits."""
    worker: str | None = None
    """The worker that has the job, if it is in flight."""
    opens_at: int | None = None
    """When the rate of its queue lets the next job through, if that is known."""
    is_full: bool = False
    """True if as many jobs are in flight as the server allows."""
    leaves: bool = False
    """True if its queue is for no worker here."""


def wait_reasons(facts: WaitFacts) -> list[WaitReason]:
    """Why a job does not run now: at least one reason, the strongest first."""
    job = facts.waiting.job
    if job.status is Status.SCHEDULED:
        return [_of_time(facts)]
    if job.status is Status.IN_FLIGHT:
        return [_of_running(facts)]
    if job.status is Status.CANCELLED and any(facts.waiting.canceller):
        actor, reason = facts.waiting.canceller
        text = f"it was cancelled{f' by {actor}' if actor else ''}{f': {reason}' if reason else ''}"
        return [WaitReason(WaitCode.FINISHED, text)]
    if job.status is not Status.READY:
        text = f"the job is {NAMES[job.status]}: it waits for nothing"
        return [WaitReason(WaitCode.FINISHED, text)]
    found = [*_of_gates(facts), *_of_takers(facts)]
    ahead = facts.waiting.ahead
    if ahead and facts.head is None:
        number = f"{ahead:,} or more" if ahead >= MOST_AHEAD else f"{ahead:,}"
        does = "jobs of its queue come" if ahead > 1 else "job of its queue comes"
        text = f"{number} {does} first{_gained(facts)}"
        found.append(WaitReason(WaitCode.AHEAD, text, job.queue, count=ahead))
    return found or [WaitReason(WaitCode.NEXT, "nothing holds the job: it is next in its queue")]


def _gained(facts: WaitFacts) -> str:
    """By how much a job that waits has become more urgent, if its queue has priorities that age."""
    aging_ms, job = facts.waiting.settings.priority_aging_ms, facts.waiting.job
    if aging_ms is None:
        return ""
    gained = max(facts.now // aging_ms - job.ready_at // aging_ms, 0)
    return f": by waiting it has come from priority {job.priority:,} to {job.priority - gained:,}"


def _of_time(facts: WaitFacts) -> WaitReason:
    job = facts.waiting.job
    failures = job.attempts - job.forgiven
    until = job.ready_at
    if failures > 0:
        text = f"the job backs off until {moment_text(until)}: attempt {job.attempts} has failed"
        return WaitReason(WaitCode.BACKING_OFF, text, until=until, count=failures)
    text = f"the job is scheduled for {moment_text(until)}"
    return WaitReason(WaitCode.SCHEDULED, text, until=until)


def _of_running(facts: WaitFacts) -> WaitReason:
    job, worker = facts.waiting.job, facts.worker
    if facts.leaves:
        text = f"the job is on its way to another server since {moment_text(job.dequeued_at or 0)}"
        return WaitReason(WaitCode.IN_FLIGHT, text)
    who = "a worker without a name" if worker is None else f"worker {_quoted(worker)}"
    text = f"{who} has the job since {moment_text(job.dequeued_at or 0)}"
    if job.lease_until is not None:
        text += f", and its lease ends at {moment_text(job.lease_until)}"
    return WaitReason(WaitCode.IN_FLIGHT, text, worker=worker, until=job.lease_until)


def _of_gates(facts: WaitFacts) -> Iterator[WaitReason]:
    around = facts.waiting
    queue, settings = around.job.queue, around.settings
    name = _quoted(queue)
    expires_at = around.job.expires_at
    if expires_at is not None and expires_at <= facts.now:
        text = f"no worker took the job by {moment_text(expires_at)}: it is about to expire"
        yield WaitReason(WaitCode.EXPIRING, text, until=expires_at)
    if settings.paused:
        text = f"queue {name} is {pause_text(settings)}: resume it to have its jobs delivered"
        yield WaitReason(WaitCode.PAUSED, text, queue, until=settings.paused_until)
    if facts.head is not None:
        text = f"job {facts.head} of its group has to end first"
        yield WaitReason(WaitCode.GROUP, text, job=facts.head)
    if around.fair is not None:
        yield from _of_key(around.fair, queue)
    for budget in around.budgets:
        yield _of_budget(budget)
    most = settings.concurrency
    if most is not None and around.in_flight >= most:
        text = f"queue {name} has {around.in_flight:,} jobs in flight and may have {most:,}"
        yield WaitReason(WaitCode.CONCURRENCY, text, queue, count=around.in_flight)
    if settings.rate is not None and facts.opens_at is not None and facts.opens_at > facts.now:
        text = f"queue {name} is at its rate of {settings.rate:g} jobs a second"
        yield WaitReason(WaitCode.RATE, text, queue, until=facts.opens_at)
    if facts.is_full and not facts.leaves:
        text = "as many jobs are in flight as --global-in-flight-limit allows"
        yield WaitReason(WaitCode.SERVER_LIMIT, text)


def _of_key(fair: FairWait, queue: str) -> Iterator[WaitReason]:
    """What holds a fair key, if it is not its turn."""
    key, until = _quoted(fair.key), None
    if fair.most is not None and fair.in_flight >= fair.most:
        text = f"fair key {key} has {fair.in_flight:,} jobs in flight and may have {fair.most:,}"
    elif fair.opens_at is not None:
        text, until = f"fair key {key} is at its rate", fair.opens_at
    elif fair.place > 1:
        text = f"fair key {key} is number {fair.place:,} of {fair.keys:,} keys that wait"
        text += f", with {fair.share:.1%} of the queue"
    else:
        return
    yield WaitReason(
        WaitCode.FAIR,
        text,
        queue,
        fair_key=fair.key,
        share=round(fair.share, 6),
        until=until,
        count=fair.place,
    )


def _of_budget(budget: BudgetWait) -> WaitReason:
    text = budget_text(budget)
    return WaitReason(WaitCode.BUDGET, text, budget=budget.key, until=budget.pays_at)


def _of_takers(facts: WaitFacts) -> Iterator[WaitReason]:
    takers, queue = facts.takers, facts.waiting.job.queue
    name = _quoted(queue)
    if facts.leaves:
        text = f"jobs of queue {name} leave for another server, and no worker here gets them"
        yield WaitReason(WaitCode.LEAVES, f"{text}{_LEAVES_ADVICE}", queue)
    elif not takers.all:
        yield WaitReason(WaitCode.NO_WORKER, f"nobody takes jobs of queue {name}", queue)
    elif not takers.open:
        text = f"all {takers.all:,} workers of queue {name} are busy"
        if takers.all == 1:
            text = f"the only worker of queue {name} is busy"
        if takers.draining:
            text += f"; {takers.draining:,} drained"
        if takers.choked:
            text += f"; {takers.choked:,} slow to read"
        yield WaitReason(WaitCode.WORKERS_BUSY, text, queue, count=takers.all)


_LEAVES_ADVICE = (
    ": `zq forward status` tells why a hub does not have them, and `zq devices list` when a device"
    " was there"
)


def budget_text(budget: BudgetWait) -> str:
    """The text about a budget without tokens: how many it has, how many a job takes, and when."""
    if budget.held_until is not None:
        return f"budget {_quoted(budget.key)} is held until {moment_text(budget.held_until)}"
    tokens = "token" if budget.capacity == 1 else "tokens"
    text = f"budget {_quoted(budget.key)} has {budget.available:,} of {budget.capacity:,} {tokens}"
    text += f" free, and a job takes {budget.cost:,}"
    if budget.pays_at is not None:
        return f"{text}: it can pay at {moment_text(budget.pays_at)}"
    return text if budget.cost > budget.capacity else f"{text}: a job has to end first"


def _quoted(name: str) -> str:
    return f'"{name}"'


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
    leaves: bool = False
    """True if its jobs are for no worker here."""


def queue_why(facts: QueueWaitFacts) -> QueueWhy:
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
    if facts.leaves:
        text = "Its jobs leave for another server, and no worker here gets them"
        yield QueueGate(WaitCode.LEAVES, text)
    elif not takers.all:
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
    if facts.is_full and not facts.leaves:
        text = "As many jobs are in flight as --global-in-flight-limit allows"
        yield QueueGate(WaitCode.SERVER_LIMIT, text)
    if takers.all and not takers.open and not facts.leaves:
        yield QueueGate(WaitCode.WORKERS_BUSY, _busy(facts))


def _advised(gate: QueueGate, facts: QueueWaitFacts) -> str:
    """A gate as a sentence that says what would help."""
    match gate.kind:
        case WaitCode.PAUSED:
            more = ": resume it to have its jobs delivered."
        case WaitCode.LEAVES:
            more = f"{_LEAVES_ADVICE}."
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
