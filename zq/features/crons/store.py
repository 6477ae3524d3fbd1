"""The reads of cron, for every store."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from zq.features.crons.model import (
    NEXT_FIRING,
    CronEntry,
    CronGroup,
    CronSchedule,
    DueCron,
    EntryState,
    Template,
)
from zq.model.checksums import ChecksumMismatch, check_text
from zq.model.errors import TooLarge
from zq.store.api import Recovery
from zq.store.snapshot import Snapshot, SnapshotLanes


class EntryPlace(NamedTuple):
    """The place of an entry in the order of groups and names."""

    group: str
    entry: str


FIRST_PLACE = EntryPlace("", "")
"""The place before all entries."""


_template = msgspec.json.Decoder(Template)


class CronReads:
    """Each method sees one moment, and nothing that is not on the disk.

    They raise the errors of `zq.store.reads.Reads`.
    """

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._looks = lanes.looks
        self._scans = lanes.scans

    async def groups(self) -> list[str]:
        """The names of all groups, in byte order."""
        return await self._looks.found(str, "group_names")

    async def queues(self, group: str | None = None) -> list[tuple[str, str | None]]:
        """The queues of each group's jobs, or of one group's; None for a group without entries."""
        return await self._scans.found(tuple[str, str | None], "queues", cron=group)

    async def group(self, group: str) -> CronGroup | None:
        """A group without its entries."""
        return await self._looks(_group, group)

    async def entries(self, group: str, most: int) -> list[CronEntry]:
        """The entries of a group by name. Raises `TooLarge` beyond `most` bytes of templates."""
        return await self._scans(_entries, group, most)

    async def states(self, group: str) -> list[EntryState]:
        """The entries of a group without their jobs, which may be large."""
        return await self._scans(_states, group)

    async def entry(self, group: str, entry: str) -> tuple[CronGroup | None, CronEntry | None]:
        """An entry and its group, each None if it does not exist."""
        return await self._looks(get_entry, group, entry)

    async def count(self) -> int:
        """How many entries there are in all groups."""
        return int(await self._looks.value("count"))

    async def tally(self) -> list[str]:
        """The queue of each entry's job."""
        return await self._looks.found(str, "tally")

    async def due(self, now: int, limit: int) -> list[DueCron]:
        """Up to `limit` entries that are due at `now`, the earliest first."""
        return await self._looks.found(DueCron, "due", now=now, limit=limit)

    async def timed_ahead(self, now: int, after: EntryPlace, limit: int) -> list[DueCron]:
        """Up to `limit` entries beyond `after` whose next time was computed later than `now`."""
        place = {"cron": after.group, "entry": after.entry, "limit": limit}
        return await self._scans.found(DueCron, "timed_ahead", now=now, **place)

    async def schedules(self, after: EntryPlace, limit: int) -> list[CronSchedule]:
        """The schedules of up to `limit` entries beyond `after`."""
        place = {"cron": after.group, "entry": after.entry, "limit": limit}
        return await self._looks.found(CronSchedule, "schedules", **place)


def _group(snapshot: Snapshot, group: str) -> CronGroup | None:
    for name, timezone, paused, paused_at, resumed_at in snapshot.rows("group", cron=group):
        return CronGroup(name, timezone, bool(paused), paused_at, resumed_at)
    return None


def _entries(snapshot: Snapshot, group: str, most: int) -> list[CronEntry]:
    size = int(snapshot.value("size", cron=group))
    if size > most:
        raise TooLarge(
            f"the jobs of cron group {group!r} have {size} bytes, but at most {most} are"
            " shown at a time: ask for its entries one by one, or make several groups of it"
        )
    return list(_readable(snapshot, group, snapshot.rows("entries", cron=group)))


def _states(snapshot: Snapshot, group: str) -> list[EntryState]:
    return [
        EntryState(name, expression, timezone, bool(paused), *times)
        for name, expression, timezone, paused, *times in snapshot.rows("states", cron=group)
    ]


def get_entry(
    snapshot: Snapshot, group: str, entry: str
) -> tuple[CronGroup | None, CronEntry | None]:
    found = _readable(snapshot, group, snapshot.rows("entry", cron=group, entry=entry))
    return _group(snapshot, group), next(found, None)


def _readable(snapshot: Snapshot, group: str, rows: Any) -> Iterator[CronEntry]:
    """The entries in rows. Raises an error that names those that cannot be read."""
    unreadable = []
    for name, expression, timezone, paused, *times, job, stored in rows:
        try:
            check_text("its job", job, stored)
            template = _template.decode(job)
        except (ChecksumMismatch, msgspec.MsgspecError):
            unreadable.append((group, name))
            continue
        values = [name, expression, timezone, bool(paused), *times, template]
        yield CronEntry(*values)
    if unreadable:
        raise snapshot.unreadable("cron_entries", unreadable)


READS = (CronReads,)

RECOVERY = Recovery(found=(NEXT_FIRING,))
"""When the first entry was due."""

FORMS = {"cron_entries": {"job": Template}}
"""The forms of what columns hold, by table."""
