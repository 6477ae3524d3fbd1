"""The reads of cron. Each uses the lane in which it delays no shorter read."""

import sqlite3

from zq.features.crons import sqlite_lookups as cron_lookups
from zq.features.crons.model import CronEntry, CronGroup, CronSchedule, DueCron
from zq.features.crons.store import CronReads, EntryPlace
from zq.features.schemas.model import StoredSchema
from zq.model.errors import TooLarge
from zq.store.sqlite.lanes import ReadLanes


class SqliteCronReads(CronReads):
    """The reads of cron by the connections of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._looks = lanes.looks
        self._scans = lanes.scans

    async def groups(self) -> list[str]:
        return await self._looks(cron_lookups.group_names)

    async def queues(self, group: str | None = None) -> list[tuple[str, str | None]]:
        return await self._scans(cron_lookups.group_queues, group)

    async def group(self, group: str) -> CronGroup | None:
        return await self._looks(cron_lookups.get_group, group)

    async def entries(self, group: str, most: int) -> list[CronEntry]:
        def read(connection: sqlite3.Connection) -> list[CronEntry]:
            size = cron_lookups.group_size(connection, group)
            if size > most:
                raise TooLarge(
                    f"the jobs of cron group {group!r} have {size} bytes, but at most {most} are"
                    " shown at a time: ask for its entries one by one, or make several groups of it"
                )
            return cron_lookups.get_entries(connection, group)

        return await self._scans(read)

    async def entry(self, group: str, entry: str) -> tuple[CronGroup | None, CronEntry | None]:
        def read(connection: sqlite3.Connection) -> tuple[CronGroup | None, CronEntry | None]:
            found = cron_lookups.get_entry(connection, group, entry)
            return cron_lookups.get_group(connection, group), found

        return await self._looks(read)

    async def count(self) -> int:
        return await self._looks(cron_lookups.count_entries)

    async def tally(self) -> list[str]:
        return await self._looks(cron_lookups.tally_entries)

    async def due(self, now: int, limit: int) -> list[DueCron]:
        return await self._looks(cron_lookups.due_entries, now, limit)

    async def timed_ahead(self, now: int, after: EntryPlace, limit: int) -> list[DueCron]:
        return await self._scans(cron_lookups.timed_ahead, now, after, limit)

    async def schedules(self, after: EntryPlace, limit: int) -> list[CronSchedule]:
        return await self._scans(cron_lookups.schedules, after, limit)

    async def note(self, name: str) -> str | None:
        return await self._looks(cron_lookups.note, name)

    async def schemas(self) -> list[StoredSchema]:
        return await self._scans(cron_lookups.schemas)


READS = {CronReads: SqliteCronReads}
