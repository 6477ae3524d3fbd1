"""Cron groups and their entries, how changes of them come out, and the commands that bring them.

A change is worked out from what there is, one at a time; the tick only writes it. A firing is
another matter: it is guarded by all that it was computed from, and goes beside changes.
"""

from collections.abc import Mapping, Sequence

import msgspec

from zq.model.batch import BatchPlan
from zq.model.commands import Command
from zq.model.cron.expression import CronExpression
from zq.model.job import NewJob
from zq.model.patching import UNSET, Unset

RETRY_MS = 1000
"""After so long a firing is tried again for which there was no room."""


class CronGroup(msgspec.Struct, frozen=True):
    """A group. Its `timezone` holds for entries without one. Times in milliseconds."""

    name: str
    timezone: str | None = None
    paused: bool = False
    paused_at: int | None = None
    resumed_at: int | None = None


class CronEntry(msgspec.Struct, frozen=True):
    """A schedule and the job that it enqueues. Times in milliseconds.

    `next_at` was computed at `timed_at`; `last_at` is when it last enqueued.
    """

    name: str
    expression: str
    timezone: str | None
    paused: bool
    paused_at: int | None
    resumed_at: int | None
    next_at: int | None
    last_at: int | None
    timed_at: int
    job: NewJob


class EntryDraft(msgspec.Struct, frozen=True):
    """An entry as somebody sends it. `paused` of None keeps what there is."""

    name: str
    expression: CronExpression
    timezone: str | None
    paused: bool | None
    job: NewJob


class GroupDraft(msgspec.Struct, frozen=True):
    """A group as somebody sends it, with all its entries."""

    paused: bool | None
    timezone: str | None
    entries: Sequence[EntryDraft]


class GroupPatch(msgspec.Struct, frozen=True):
    """A change of a group. Absent keeps; a `timezone` of None is cleared."""

    paused: bool | Unset = UNSET
    timezone: str | None | Unset = UNSET


class WriteCron(Command[None], frozen=True):
    """Write a group and these of its entries; `whole` removes the others.

    Of those in `kept`, the store's own `next_at` goes on; `last_at` does so of all. A group of
    which a job draws from a budget that is missing or could never pay it is `Unprocessable`, unless
    these are the `same_jobs` as before.
    """

    group: CronGroup
    entries: Sequence[CronEntry] = ()
    kept: frozenset[str] = frozenset()
    whole: bool = False
    same_jobs: bool = False


class DeleteCrons(Command[int], frozen=True):
    """Delete groups with their entries, or one `entry` of a group. How many there were."""

    groups: Sequence[str]
    entry: str | None = None


class Firing(msgspec.Struct, frozen=True):
    """What is to become of an entry that was due at `at`: it moves on to `then`.

    It holds only while the entry has this expression, this time and this effective `zone` (None:
    the server's). `key` is for its job; None moves it on without one.
    """

    group: str
    entry: str
    expression: str
    zone: str | None
    at: int
    then: int | None
    key: int | None
    job: NewJob | None = None
    """The job that `plan` is for; without a plan, one of a batch is not enqueued."""
    plan: BatchPlan | None = None


class Fire(Command[int], frozen=True):
    """Enqueue the jobs of entries that are due, and move these on, in one transaction.

    Entries or groups that are paused move on alone. An entry whose job finds no room stays due.
    How many have moved on: those whose guards fail are left alone. A job that comes with a batch
    has a command of its own, which answers `StalePlan` where its plan no longer holds.
    """

    firings: Sequence[Firing]


class DueCron(msgspec.Struct, array_like=True, frozen=True):
    """What computing the next time of an entry needs. `size` is of its job, in bytes."""

    group: str
    entry: str
    expression: str
    zone: str | None
    at: int
    timed_at: int
    size: int
    batched: int = 0
    """Whether its job comes with a batch."""


def paused_group(group: CronGroup, paused: bool, now: int) -> CronGroup:
    """The group, paused or resumed; unchanged if it is so already."""
    return msgspec.structs.replace(group, **_pause(group, paused, now))


def paused_entry(entry: CronEntry, paused: bool, now: int) -> CronEntry:
    """The same of an entry."""
    return msgspec.structs.replace(entry, **_pause(entry, paused, now))


def _pause(what: CronGroup | CronEntry, paused: bool, now: int) -> Mapping[str, object]:
    if paused == what.paused:
        return {}
    return {"paused": True, "paused_at": now} if paused else {"paused": False, "resumed_at": now}


def drafted_entry(
    draft: EntryDraft, before: CronEntry | None, next_at: int | None, now: int
) -> CronEntry:
    """The entry that a draft makes of the one there is, if there is one."""
    entry = CronEntry(
        name=draft.name,
        expression=draft.expression.text,
        timezone=draft.timezone,
        paused=before.paused if before else False,
        paused_at=before.paused_at if before else None,
        resumed_at=before.resumed_at if before else None,
        next_at=next_at,
        last_at=before.last_at if before else None,
        timed_at=now,
        job=draft.job,
    )
    return entry if draft.paused is None else paused_entry(entry, draft.paused, now)
