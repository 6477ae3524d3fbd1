"""Cron entries for programs: what they send and get, and the verbs of a server."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from zq.client.values import Submission


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cron expression and the job that it enqueues. Without a zone, the group's zone is used.

    `paused` of None keeps the present value.
    """

    name: str
    expression: str
    job: Submission
    timezone: str | None = None
    paused: bool | None = None


class ShownSchedule(msgspec.Struct, omit_defaults=True):
    """An entry as the server shows it. Times are in milliseconds since the epoch.

    A `fault` says why its schedule cannot be evaluated on the server's host.
    """

    name: str
    expression: str
    paused: bool
    job: dict[str, Any]
    timezone: str | None = None
    paused_at: int | None = None
    resumed_at: int | None = None
    next_enqueue_at: int | None = None
    last_enqueue_at: int | None = None
    fault: str | None = None


class ShownGroup(msgspec.Struct, omit_defaults=True):
    """A group with its entries as the server shows it."""

    name: str
    paused: bool
    entries: list[ShownSchedule]
    timezone: str | None = None
    paused_at: int | None = None
    resumed_at: int | None = None


class Schedules(Protocol):
    """The cron entries of one server. A missing group or entry raises a `BackendError`."""

    async def groups(self) -> list[str]:
        """The names of the groups."""

    async def group(self, group: str) -> ShownGroup:
        """A group with its entries by name."""

    async def replace(
        self, group: str, entries: Sequence[Schedule], timezone: str | None = None
    ) -> ShownGroup:
        """Replace a group and all its entries."""

    async def put(self, group: str, entry: Schedule) -> ShownSchedule:
        """Add an entry, or replace the entry with its name."""

    async def pause(self, group: str, entry: str | None, paused: bool) -> None:
        """Pause or resume an entry, or a whole group."""

    async def remove(self, group: str, entry: str | None = None) -> None:
        """Delete an entry, or a whole group."""
