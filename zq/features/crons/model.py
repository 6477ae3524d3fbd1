"""Cron groups and their entries, the effects of changes, and the commands that store them.

A change is computed from the present state, one at a time, and the tick only writes it. A firing
runs beside changes, so it is guarded by everything that it was computed from.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from zq.features.batches.model_jobs import BatchPlan
from zq.features.crons.model_expression import CronExpression
from zq.model.commands import Command
from zq.model.errors import Conflict, Forbidden, NotFound, Unprocessable
from zq.model.job import NewJob
from zq.model.patching import UNSET, Unset
from zq.model.reach import BudgetMaker, Reach, reach_of
from zq.model.sharing import maker

NEXT_FIRING = "next_firing"
"""The statement that finds when the first entry is due."""

RETRY_MS = 1000
"""If there was no room for a firing, it is tried again after this time."""


class CronGroup(msgspec.Struct, frozen=True):
    """A group. Its `timezone` applies to entries without one. Times are in milliseconds."""

    name: str
    timezone: str | None = None
    paused: bool = False
    paused_at: int | None = None
    resumed_at: int | None = None


class Template(NewJob, frozen=True, gc=False):
    """The job of an entry, with the prefixes of the key that made the entry.

    Whatever a firing finds, such as the owner of a unique key, has to lie within them. Entries of
    keys without prefixes reach all queues.
    """

    prefixes: tuple[str, ...] = ()

    @property
    def reach(self) -> Reach:
        """The reach of its maker."""
        return reach_of(self.prefixes)


_template_of = maker(NewJob, Template, "prefixes")


class EntryState(msgspec.Struct, frozen=True):
    """An entry without its job. Times are in milliseconds.

    `next_at` was computed at `timed_at`. `last_at` is the time of its last firing.
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


class CronEntry(EntryState, frozen=True):
    """A schedule and the job that it enqueues.

    A `fault` says why its schedule cannot be evaluated here: then it has no `next_at` once it was
    due.
    """

    job: Template
    fault: str | None = None


class EntryDraft(msgspec.Struct, frozen=True):
    """An entry as a client sends it. `paused` of None keeps the present value."""

    name: str
    expression: CronExpression
    timezone: str | None
    paused: bool | None
    job: NewJob

    @property
    def queues_named(self) -> tuple[str, ...]:
        """The queues that its job names."""
        return self.job.queues_named


class GroupDraft(msgspec.Struct, frozen=True):
    """A group as a client sends it, with all its entries."""

    paused: bool | None
    timezone: str | None
    entries: Sequence[EntryDraft]

    @property
    def queues_named(self) -> list[str]:
        """The queues that the jobs of its entries name."""
        return [queue for entry in self.entries for queue in entry.queues_named]


class GroupPatch(msgspec.Struct, frozen=True):
    """A change of a group. Absent fields stay; a `timezone` of None clears it."""

    paused: bool | Unset = UNSET
    timezone: str | None | Unset = UNSET


class WriteCron(Command[None], frozen=True):
    """Write a group and these of its entries. `whole` removes all others.

    Entries in `kept` keep the `next_at` of the store, and all keep its `last_at`. The group is
    `Unprocessable` if one of its jobs draws from a budget that is missing or could never pay it,
    unless the jobs are the `same_jobs` as before. Budgets that its jobs bring count against the
    quota of the `maker`.
    """

    items: ClassVar[str | None] = "entries"

    group: CronGroup
    entries: Sequence[CronEntry] = ()
    kept: frozenset[str] = frozenset()
    whole: bool = False
    same_jobs: bool = False
    maker: BudgetMaker | None = None
    times: Sequence[tuple[str, int | None]] = ()
    """The names of further entries, of which only the next time changes, and these times."""


class DeleteCrons(Command[int], frozen=True):
    """Delete groups with their entries, or one `entry` of a group. Returns how many."""

    groups: Sequence[str]
    entry: str | None = None


class Firing(msgspec.Struct, frozen=True):
    """An entry that was due at `at` moves on to `then`. One that was set aside has no `at`.

    This applies only while the entry has this expression, this time and this effective `zone`
    (None: the server's). `key` is the key of its job; with None it moves on without a job.
    """

    group: str
    entry: str
    expression: str
    zone: str | None
    at: int | None
    then: int | None
    key: int | None
    job: Template | None = None
    """The job that `plan` is for. Without a plan, a job with a batch is not enqueued."""
    plan: BatchPlan | None = None


class Fire(Command[int], frozen=True):
    """Enqueue the jobs of entries that are due, and move these on, in one transaction.

    Paused entries, or entries of paused groups, move on without a job. An entry whose job finds no
    room stays due. Returns how many have moved on: entries that have changed are left alone. A job
    with a batch has a command of its own, which returns `StalePlan` if its plan is not valid.
    """

    brings_more: ClassVar[bool] = True
    items: ClassVar[str | None] = "firings"
    rows_each: ClassVar[int] = 2
    """An entry, and its job."""

    firings: Sequence[Firing]


class CronSchedule(msgspec.Struct, array_like=True, frozen=True):
    """The schedule of an entry, with its effective zone."""

    group: str
    entry: str
    expression: str
    zone: str | None
    next_at: int | None


class DueCron(msgspec.Struct, array_like=True, frozen=True):
    """The facts from which an entry's next time is computed. `size` is its job's, in bytes."""

    group: str
    entry: str
    expression: str
    zone: str | None
    at: int
    timed_at: int
    size: int
    batched: int = 0
    """True if its job comes with a batch."""


def paused_group(group: CronGroup, paused: bool, now: int) -> CronGroup:
    """The group, paused or resumed; unchanged if it is so already."""
    return msgspec.structs.replace(group, **_pause(group, paused, now))


def paused_entry(entry: CronEntry, paused: bool, now: int) -> CronEntry:
    """The entry, paused or resumed; unchanged if it is so already."""
    return msgspec.structs.replace(entry, **_pause(entry, paused, now))


def _pause(what: CronGroup | CronEntry, paused: bool, now: int) -> Mapping[str, object]:
    if paused == what.paused:
        return {}
    return {"paused": True, "paused_at": now} if paused else {"paused": False, "resumed_at": now}


def drafted_entry(
    draft: EntryDraft, before: EntryState | None, next_at: int | None, now: int, reach: Reach
) -> CronEntry:
    """The entry that a caller's draft makes, from the existing one if there is one."""
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
        job=_template_of(draft.job, prefixes=reach.prefixes),
    )
    return entry if draft.paused is None else paused_entry(entry, draft.paused, now)


class CronGroupNotFound(NotFound):
    """There is no group of schedules of this name."""

    code = "cron_group_not_found"

    def __init__(self, group: str) -> None:
        super().__init__(f"cron group '{group}' not found")


class CronEntryNotFound(NotFound):
    """The group has no entry of this name."""

    code = "cron_entry_not_found"

    def __init__(self, group: str, entry: str) -> None:
        super().__init__(f"cron entry '{entry}' not found in group '{group}'")


class CronOutOfReach(Forbidden):
    """The group is for queues outside the prefixes of the key."""

    code = "cron_out_of_reach"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is also for queues that this key may not use")


class CronEntryExists(Conflict):
    """The group has an entry of this name."""

    code = "cron_entry_exists"

    def __init__(self, group: str, entry: str) -> None:
        super().__init__(f"cron entry '{entry}' already exists in group '{group}'")


class InvalidSchedule(Unprocessable):
    """A schedule has an expression or a time zone that there is not."""

    code = "invalid_schedule"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"invalid cron schedule: {text!r}: {reason}")
