"""Events, and histories with a breach, for tests of the checker."""

from typing import Any, NamedTuple

from .history import (
    NEVER,
    Cancel,
    Delivery,
    Enqueue,
    Event,
    Extend,
    Failure,
    Inspection,
    Kill,
    Listed,
    Listing,
    Outcome,
    Redrive,
    Release,
    Retry,
    Setting,
    Start,
    StreamEnd,
    StreamStart,
    Success,
)
from .world import Rule

OK, REFUSED, UNKNOWN = Outcome.OK, Outcome.REFUSED, Outcome.UNKNOWN

# Each operation takes from its time to half a millisecond later, unless a test says otherwise.


def enqueue(at: float, job: str = "j", outcome: Outcome = OK, **fields: Any) -> Enqueue:
    fields = {"id": f"id-{job}"} | fields if outcome is OK else fields
    return Enqueue(start=at, end=at + 0.5, job=job, outcome=outcome, **fields)


def deliver(
    at: float,
    job: str = "j",
    *,
    stream: int = 1,
    attempts: int = 0,
    id: str = "",
    seen: float = 0,
    intact: bool = True,
    lease: int = 0,
    until: float = NEVER,
    queue: str = "",
) -> Delivery:
    return Delivery(
        start=at,
        end=seen or at + 0.5,
        job=job,
        id=id or f"id-{job}",
        stream=stream,
        attempts=attempts,
        intact=intact,
        lease=lease,
        until=until,
        queue=queue,
    )


def succeed(at: float, job: str = "j", outcome: Outcome = OK, **fields: Any) -> Success:
    return Success(start=at, end=at + 0.5, job=job, outcome=outcome, **fields)


def fail(
    at: float, job: str = "j", outcome: Outcome = OK, *, attempts: int = 1, **fields: Any
) -> Failure:
    return Failure(start=at, end=at + 0.5, job=job, outcome=outcome, attempts=attempts, **fields)


def release(at: float, outcome: Outcome = OK, lease: int = 0, job: str = "j") -> Release:
    return Release(start=at, end=at + 0.5, job=job, outcome=outcome, lease=lease)


def extend(
    at: float, until: float, outcome: Outcome = OK, job: str = "j", lease_ms: int = 0
) -> Extend:
    return Extend(
        start=at, end=at + 0.5, job=job, outcome=outcome, until=until, lease=1, lease_ms=lease_ms
    )


def cancel(at: float, job: str = "j", outcome: Outcome = OK) -> Cancel:
    return Cancel(start=at, end=at + 0.5, job=job, outcome=outcome)


def configure(
    at: float, outcome: Outcome = OK, *, paused: bool = False, stalls: int = -1, **fields: float
) -> Event:
    return Setting(
        start=at,
        end=at + 0.5,
        queue="a",
        outcome=outcome,
        paused=paused,
        stall_limit=stalls,
        **fields,
    )


def redrive(at: float, outcome: Outcome = OK, limit: float = NEVER, queue: str = "dead") -> Redrive:
    return Redrive(start=at, end=at + 0.5, queue=queue, outcome=outcome, limit=limit)


def retry(at: float, job: str = "j", outcome: Outcome = OK) -> Retry:
    return Retry(start=at, end=at + 0.5, job=job, outcome=outcome)


def kill(at: float) -> Kill:
    return Kill(start=at, end=at + 0.5)


def start(at: float, limit: int = 0) -> Start:
    return Start(start=at, end=at + 0.5, in_flight_limit=limit)


def open_stream(
    at: float, stream: int = 1, window: int = 1, *queues: str, lease_ms: int = 0
) -> StreamStart:
    return StreamStart(
        start=at, end=at + 0.5, stream=stream, window=window, queues=queues, lease_ms=lease_ms
    )


def inspect(at: float, **deliveries: int) -> Inspection:
    return Inspection(start=at, end=at + 0.5, deliveries=deliveries)


def hang_up(at: float, stream: int = 1) -> StreamEnd:
    return StreamEnd(start=at, end=at + 0.5, stream=stream)


def listed(
    job: str = "j", status: str = "ready", attempts: int = 0, key: str = "", **fields: Any
) -> Listed:
    return Listed(id=f"id-{job}", status=status, attempts=attempts, unique_key=key, **fields)


def held(job: str, at: float, key: str) -> Enqueue:
    return enqueue(at, job, unique_key=key)


def grouped(at: float, job: str, **fields: Any) -> Enqueue:
    return enqueue(at, job, group="g", **fields)


def named(at: float, job: str, group: str = "") -> Enqueue:
    return enqueue(at, job, group=group, dedupe="n", window_ms=10)


def listing(at: float, *, count: int | None = None, **jobs: Listed) -> Listing:
    count = len(jobs) if count is None else count
    return Listing(start=at, end=at + 0.5, jobs=jobs, count=count)


class Planted(NamedTuple):
    """A history with one breach, the rule that is to find it, and its words."""

    rule: Rule
    words: str
    events: tuple[Event, ...]
