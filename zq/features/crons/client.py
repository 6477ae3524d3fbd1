"""Cron entries for programs: what they send and get, and the verbs of a server."""

from collections.abc import Sequence
from types import NoneType
from typing import Any

import msgspec

from zq.client.asking import Ask
from zq.client.values import Submission
from zq.features.crons import verbs


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


class Schedules:
    """The cron entries of one server. A missing group or entry raises a `BackendError`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def groups(self) -> list[str]:
        """The names of the groups."""
        return (await self._ask(verbs.LIST)).crons

    async def group(self, group: str) -> ShownGroup:
        """A group with its entries by name."""
        return await self._ask(verbs.GET_GROUP.read_as(ShownGroup), group=group)

    async def replace(
        self, group: str, entries: Sequence[Schedule], timezone: str | None = None
    ) -> ShownGroup:
        """Replace a group and all its entries."""
        body = {"entries": entries, "timezone": timezone}
        return await self._ask(verbs.PUT_GROUP.read_as(ShownGroup), body, group=group)

    async def put(self, group: str, entry: Schedule) -> ShownSchedule:
        """Add an entry, or replace the entry with its name."""
        verb = verbs.PUT_ENTRY.read_as(ShownSchedule)
        return await self._ask(verb, entry, group=group, entry=entry.name)

    async def pause(self, group: str, entry: str | None, paused: bool) -> None:
        """Pause or resume an entry, or a whole group."""
        body = {"paused": paused}
        if entry is None:
            await self._ask(verbs.PATCH_GROUP.read_as(NoneType), body, group=group)
        else:
            await self._ask(verbs.PATCH_ENTRY.read_as(NoneType), body, group=group, entry=entry)

    async def remove(self, group: str, entry: str | None = None) -> None:
        """Delete an entry, or a whole group."""
        if entry is None:
            await self._ask(verbs.DELETE_GROUP, group=group)
        else:
            await self._ask(verbs.DELETE_ENTRY, group=group, entry=entry)
