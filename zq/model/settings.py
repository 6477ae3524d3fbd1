"""The settings of a queue: gates, limits, and defaults for its jobs.

A queue is a name, so it may have settings before its first job and after its last. A job's own
settings come before those of its queue, and these before the server's policy.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from zq.model.errors import InvalidRequest
from zq.model.job import (
    MAX_TIME,
    MAX_UINT32,
    NO_OPTIONS,
    BackoffRule,
    JobRecord,
    JobSettings,
    NewJob,
    Reason,
    Retention,
    UInt32,
    is_dead_letter,
)
from zq.model.names import check_name
from zq.model.patching import UNSET, RetentionPatch, Unset, merged_retention
from zq.model.places import check_place
from zq.model.settling import Policy

MAX_RATE = 1_000_000
MAX_TARGETS = 64

LONGEST_MS = MAX_TIME // 2
"""Longer lives are cut to this, so that the sum of one and a date can be stored."""

Some = Annotated[int, Meta(ge=1, le=MAX_UINT32)]
TtlMillis = Annotated[int, Meta(ge=0, le=MAX_TIME)]
PauseText = Annotated[str, Meta(min_length=1, max_length=200)]
Rate = Annotated[float, Meta(gt=0, le=MAX_RATE)]


class FairRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a queue is shared between the fair keys of its jobs: see `zq.features.fair.model`.

    `key` is the place of the fair key of jobs that bring none: `payload.tenant`, `meta.user`, or
    `producer` for the sender that numbers them, up to a slash in its name. Each key has at most
    `max_in_flight` jobs in flight and `rate` deliveries a second.
    """

    key: str | None = None
    max_in_flight: Some | None = None
    rate: Rate | None = None


NO_FAIR_RULE = FairRule()

BY_PRODUCER = "producer"
"""The fair key that is no field of a job. The lanes of a device, `NAME/LANE`, have one key."""


class QueueSettings(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The settings of one queue. None leaves a setting open. Durations are in milliseconds.

    Claims ask the gates: `paused`, `rate` (deliveries a second) and `concurrency` (jobs in flight
    at once). `max_depth` limits the unfinished jobs. `ttl_ms` is how long a job may wait for a
    worker (0: forever). `dead_letter` names the queue that dying jobs move to, `dead_letter_after`
    the number of failures (see `grave_of`). `registered` makes a queue known that has
    no other settings: see `Enqueue`. `fan_out` names the targets (see `zq.features.targets.model`).
    `priority_aging_ms` is the time in which a waiting job gains a step of priority (see
    `zq.model.aging`). A pause may have a reason, somebody who made it, and an end, in milliseconds
    since the epoch. `fair` says how its keys share it.
    """

    paused: bool | None = None
    max_depth: UInt32 | None = None
    rate: Rate | None = None
    concurrency: Some | None = None
    retry_limit: UInt32 | None = None
    stall_limit: UInt32 | None = None
    backoff: BackoffRule | None = None
    retention: Retention | None = None
    ttl_ms: TtlMillis | None = None
    dead_letter: str | None = None
    dead_letter_after: UInt32 | None = None
    lease_ms: Some | None = None
    leases_survive: bool | None = None
    priority_aging_ms: Some | None = None
    registered: bool | None = None
    fan_out: tuple[str, ...] | None = None
    pause_reason: PauseText | None = None
    paused_by: PauseText | None = None
    paused_until: TtlMillis | None = None
    fair: FairRule | None = None

    @property
    def is_limited(self) -> bool:
        """True if its rate or concurrency limits claims."""
        return self.rate is not None or self.concurrency is not None

    @property
    def queues_named(self) -> tuple[str, ...]:
        """The dead-letter queue and the targets that are set."""
        return _named(self.dead_letter, self.fan_out)

    @property
    def archived_ms(self) -> int | None:
        """How long it keeps completed jobs by its own settings; None or 0 if not at all."""
        return None if self.retention is None else self.retention.completed_ms


NO_SETTINGS = QueueSettings()


_NO_PAUSE = {"pause_reason": None, "paused_by": None, "paused_until": None}


class SettingsPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of settings. Absent keeps, None clears; `retention` changes field by field."""

    paused: bool | None | Unset = UNSET
    max_depth: UInt32 | None | Unset = UNSET
    rate: Rate | None | Unset = UNSET
    concurrency: Some | None | Unset = UNSET
    retry_limit: UInt32 | None | Unset = UNSET
    stall_limit: UInt32 | None | Unset = UNSET
    backoff: BackoffRule | None | Unset = UNSET
    retention: RetentionPatch | None | Unset = UNSET
    ttl_ms: TtlMillis | None | Unset = UNSET
    dead_letter: str | None | Unset = UNSET
    dead_letter_after: UInt32 | None | Unset = UNSET
    lease_ms: Some | None | Unset = UNSET
    leases_survive: bool | None | Unset = UNSET
    priority_aging_ms: Some | None | Unset = UNSET
    registered: bool | None | Unset = UNSET
    fan_out: tuple[str, ...] | None | Unset = UNSET
    pause_reason: PauseText | None | Unset = UNSET
    paused_by: PauseText | None | Unset = UNSET
    paused_until: TtlMillis | None | Unset = UNSET
    fair: FairRule | None | Unset = UNSET

    @property
    def queues_named(self) -> tuple[str, ...]:
        """The dead-letter queue and the targets that it sets."""
        return _named(self.dead_letter, self.fan_out)


def _named(
    dead_letter: str | None | Unset, targets: tuple[str, ...] | None | Unset
) -> tuple[str, ...]:
    letters = (dead_letter,) if isinstance(dead_letter, str) else ()
    return (*letters, *(targets if isinstance(targets, tuple) else ()))


def checked(settings: QueueSettings) -> QueueSettings:
    """The settings in normal form. Raises `InvalidRequest` for faults that no type forbids."""
    if settings.dead_letter is not None:
        check_name("dead_letter", settings.dead_letter)
    if settings.fan_out is not None:
        _check_targets(settings.fan_out)
        if not settings.fan_out:
            settings = msgspec.structs.replace(settings, fan_out=None)
    if settings.fair is not None:
        if (key := settings.fair.key) is not None and key != BY_PRODUCER:
            check_place("fair.key", key)
        if settings.fair == NO_FAIR_RULE:
            settings = msgspec.structs.replace(settings, fair=None)
    if not settings.paused and settings != msgspec.structs.replace(settings, **_NO_PAUSE):
        settings = msgspec.structs.replace(settings, **_NO_PAUSE)
    if settings.retention == Retention():
        return msgspec.structs.replace(settings, retention=None)
    return settings


def _check_targets(targets: tuple[str, ...]) -> None:
    for target in targets:
        check_name("fan_out", target)
    if len(set(targets)) < len(targets):
        raise InvalidRequest("fan_out must name each target once")
    if len(targets) > MAX_TARGETS:
        raise InvalidRequest(
            f"fan_out has {len(targets)} targets, but at most {MAX_TARGETS} are allowed"
        )


def merged(settings: QueueSettings, patch: SettingsPatch) -> QueueSettings:
    """The settings after the patch. Raises `InvalidRequest`."""
    changes = {
        field: value
        for field in SettingsPatch.__struct_fields__
        if (value := getattr(patch, field)) is not UNSET
    }
    changes["retention"] = merged_retention(settings.retention, patch.retention)
    return checked(msgspec.structs.replace(settings, **changes))


def changed_between(before: QueueSettings, after: QueueSettings) -> dict[str, Any]:
    """The settings that differ, as they were; None where there was none. As a patch it undoes."""
    was: dict[str, Any] = msgspec.to_builtins(before)
    now: dict[str, Any] = msgspec.to_builtins(after)
    changed = {name: was.get(name) for name in was | now if was.get(name) != now.get(name)}
    if (retention := changed.get("retention")) is not None:
        # A patch changes it field by field.
        changed["retention"] = {name: retention.get(name) for name in Retention.__struct_fields__}
    return changed


def policy_for(settings: QueueSettings, policy: Policy) -> Policy:
    """The server's policy, with a queue's settings in place of its values."""
    retention = settings.retention or Retention()
    completed_ms, dead_ms = retention.completed_ms, retention.dead_ms
    return Policy(
        retry_limit=policy.retry_limit if settings.retry_limit is None else settings.retry_limit,
        backoff=settings.backoff or policy.backoff,
        completed_ms=policy.completed_ms if completed_ms is None else completed_ms,
        dead_ms=policy.dead_ms if dead_ms is None else dead_ms,
    )


class DeadLetter(NamedTuple):
    """The queue that a dying job moves to, if there is one, and after how many failures.

    `after` of None means whenever the job dies, 0 means never.
    """

    queue: str | None = None
    after: int | None = None


def dead_letter_of(options: JobSettings | None, settings: QueueSettings) -> DeadLetter:
    """The rule for a job of a queue with these settings."""
    if options is not None and options.dead_letter is not None:
        return DeadLetter(options.dead_letter, options.dead_letter_after)
    return DeadLetter(settings.dead_letter, settings.dead_letter_after)


def is_last_failure(letter: DeadLetter, queue: str, failures: int) -> bool:
    """True if a job in a queue dies of this many failures, whatever its limit is.

    A job with a dead-letter queue of its own has a single attempt there.
    """
    if letter.queue is None:
        return False
    return letter.queue == queue or bool(letter.after and failures >= letter.after)


def grave_of(letter: DeadLetter, queue: str, failures: int, reason: Reason) -> str | None:
    """The queue that a job dying in `queue` moves to; None if it is dead where it is."""
    if letter.queue == queue or letter.after == 0:
        return None
    if reason is Reason.EXHAUSTED and failures < (letter.after or 0):
        return None
    return letter.queue


def fixed(job: NewJob, settings: QueueSettings, defaults: QueueSettings) -> NewJob:
    """A new job with the limits, time to live and dead-letter queue that apply when it comes.

    Those are its queue's, or else the sender's `defaults`. Without defaults, what a job leaves open
    follows the settings of its queue as they change.
    """
    return msgspec.structs.replace(
        job,
        options=fixed_options(job.options, settings, defaults),
        ttl_ms=fixed_ttl(settings, defaults) if job.ttl_ms is None else job.ttl_ms,
    )


def fixed_options(
    options: JobSettings | None, settings: QueueSettings, defaults: QueueSettings
) -> JobSettings:
    """Options with the limit and the dead-letter queue that apply, unless they have their own."""
    own = options or NO_OPTIONS
    limit, letter, after = own.retry_limit, own.dead_letter, own.dead_letter_after
    if limit is None:
        limit = defaults.retry_limit if settings.retry_limit is None else settings.retry_limit
    if letter is None:
        says = settings.dead_letter is not None or settings.dead_letter_after is not None
        letter = settings.dead_letter or defaults.dead_letter
        after = (settings if says else defaults).dead_letter_after
    return msgspec.structs.replace(
        own, retry_limit=limit, dead_letter=letter, dead_letter_after=after
    )


def fixed_ttl(settings: QueueSettings, defaults: QueueSettings) -> int | None:
    """How long a job may wait for a worker; 0 means forever."""
    return defaults.ttl_ms if settings.ttl_ms is None else settings.ttl_ms


def ttl_of(job: JobRecord, settings: QueueSettings) -> int | None:
    """How long a stored job may wait for a worker when its time begins anew; None means forever.

    Its own limit comes before its queue's. A dead letter has none of its own.
    """
    own = None if job.extras is None or is_dead_letter(job) else job.extras.ttl_ms
    ttl_ms = settings.ttl_ms if own is None else own
    return min(ttl_ms, LONGEST_MS) if ttl_ms else None


def pause_text(settings: QueueSettings) -> str:
    """The description of a pause: who made it, until when, and why."""
    text = "paused"
    if settings.paused_by is not None:
        text += f" by {settings.paused_by}"
    if settings.paused_until is not None:
        text += f" until {moment_text(settings.paused_until)}"
    return text if settings.pause_reason is None else f"{text} ({settings.pause_reason})"


def moment_text(ms: int) -> str:
    """A time in UTC to the second, from milliseconds since 1970."""
    try:
        return f"{datetime.fromtimestamp(min(ms, MAX_TIME) // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms since 1970"
