"""What a worker reports of a job, the state that follows from it, and what waiters are told. Pure
rules."""

import math
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import msgspec

from zq.model.job import (
    MAX_TIME,
    NO_OPTIONS,
    BackoffRule,
    ErrorRecord,
    JobSettings,
    Millis,
    Retention,
    UInt32,
)
from zq.model.lifecycle import TERMINAL, Status


class Policy(msgspec.Struct, frozen=True):
    """The server's defaults for settings that jobs leave open. Durations are in milliseconds.

    They are read when a job fails or succeeds, not fixed when it is stored.
    """

    retry_limit: int = 25
    backoff: BackoffRule = BackoffRule(exponent=4.0, base_ms=15_000, jitter_ms=30_000)
    completed_ms: int = 0
    dead_ms: int = 604_800_000


MAX_MESSAGE = 16 * 1024
MAX_ERROR_TYPE = 512
MAX_BACKTRACE = 128 * 1024
"""How many bytes of the texts of a failure are kept."""


class Failure(msgspec.Struct, frozen=True):
    """A worker's report of a failure. `retry_at` overrides limit and back-off; `kill` overrides
    all. With `at_once` the next attempt waits for no back-off; the limit applies.

    `lease` names the delivery that has failed: the job's `deliveries`.
    """

    message: str
    error_type: str | None = None
    backtrace: str | None = None
    retry_at: Millis | None = None
    kill: bool | None = None
    lease: UInt32 | None = None
    at_once: bool | None = None


def bounded(failure: Failure) -> Failure:
    """A report with its texts shortened to what is kept.

    A long report is not refused: a worker that could not report a failure would keep the job.
    """
    return msgspec.structs.replace(
        failure,
        message=shortened(failure.message, MAX_MESSAGE),
        error_type=failure.error_type and shortened(failure.error_type, MAX_ERROR_TYPE),
        backtrace=failure.backtrace and shortened(failure.backtrace, MAX_BACKTRACE),
    )


def shortened(text: str, most: int) -> str:
    """A text of at most `most` bytes. A longer text keeps its beginning, its end and its length."""
    data = text.encode()
    if len(data) <= most:
        return text
    gap = f"\n[… shortened: it had {len(data)} bytes …]\n"
    half = (most - len(gap.encode())) // 2
    begin, end = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    return f"{begin}{gap}{end}"


class Verdict(NamedTuple):
    """A failed job's next state, scheduled or dead.

    If it is scheduled, it waits for the date `ready_at`, or for `delay_ms`.
    """

    status: Status
    ready_at: int | None = None
    delay_ms: int = 0


def purge_time(now: int, retention_ms: int) -> int | None:
    """When a job that finishes `now` is to be purged; None means at once. Times are steady."""
    return min(now + retention_ms, MAX_TIME) if retention_ms > 0 else None


def kept_until(
    status: Status,
    options: JobSettings | None,
    now: int,
    policy: Policy,
    said: Retention | None = None,
) -> int | None:
    """The `purge_at` of a job that finishes at the steady time `now`; None if it is not kept.

    What is `said` now comes before the job's own options, and these before the policy. A cancelled
    or expired job is kept as long as a dead one.
    """
    if status is Status.COMPLETED:
        field, default = "completed_ms", policy.completed_ms
    else:
        field, default = "dead_ms", policy.dead_ms
    for retention in (said, options.retention if options else None):
        chosen: int | None = getattr(retention, field) if retention else None
        if chosen is not None:
            return purge_time(now, chosen)
    return purge_time(now, default)


def after_failure(
    attempts: int,
    options: JobSettings | None,
    failure: Failure,
    policy: Policy,
    random: Random,
) -> Verdict:
    """Retry or die. `attempts` includes the present failure, but no forgiven ones.

    The first of these decides: `kill`, `retry_at` (even past the limit or in the past), the limit,
    the back-off.
    """
    options = options or NO_OPTIONS
    limit = policy.retry_limit if options.retry_limit is None else options.retry_limit
    if failure.kill or (failure.retry_at is None and attempts > limit):
        return Verdict(Status.DEAD)
    if failure.retry_at is not None:
        return Verdict(Status.SCHEDULED, min(failure.retry_at, MAX_TIME))
    if failure.at_once:
        return Verdict(Status.SCHEDULED)
    delay = backoff_delay(attempts, options.backoff or policy.backoff, random)
    return Verdict(Status.SCHEDULED, None, delay)


def backoff_delay(attempts: int, backoff: BackoffRule, random: Random) -> int:
    """Milliseconds until the next attempt.

    ``trunc(attempts**exponent * 1000 + base_ms + random[0, 1) * jitter_ms * attempts)``, with the
    power in seconds. This is the formula in the source of Zizq 0.6.1 and in its help.
    """
    try:
        power = math.pow(attempts, backoff.exponent) * 1000
        delay = power + backoff.base_ms + random.random() * backoff.jitter_ms * attempts
        return min(math.trunc(delay), MAX_TIME)
    except OverflowError:
        return MAX_TIME


MOST_WAIT_MS = 30_000
"""Proxies and clients cut off a silent connection at some time. Ask again instead."""


class Completion(msgspec.Struct, frozen=True):
    """A worker's report of a success. `result` is JSON text of `result_size` bytes.

    None means no result; a result that is null is the text ``null``. `lease` names the delivery:
    the job's `deliveries`. `retention` overrides the job's own. `used` is what the job has used of
    what holds gave it, by name, where that differs from what it drew.
    """

    result: str | None = None
    result_size: int = 0
    retention: Retention | None = None
    lease: int | None = None
    used: Mapping[str, int] | None = None


class Ending(msgspec.Struct, frozen=True):
    """A job's state, with the result of a completed job and the last failure of a dead one.

    A job that died without a failure has a `reason` instead, and how often it has stalled.
    """

    status: Status
    result: str | None = None
    error: ErrorRecord | None = None
    reason: str | None = None
    stalls: int = 0

    @property
    def is_final(self) -> bool:
        """True if the job is finished."""
        return self.status in TERMINAL
