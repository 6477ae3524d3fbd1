"""The reads of cron. Each uses the lane in which it delays no shorter read."""

from typing import Any

import msgspec

from zq.features.crons.model import CronEntry, CronGroup, CronSchedule, DueCron
from zq.features.crons.store import CronReads, EntryPlace
from zq.features.schemas.model import StoredSchema
from zq.model.errors import TooLarge
from zq.model.job import NewJob
from zq.store.postgres.connection import Connection
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.queries import load
from zq.store.postgres.readers import PostgresLanes

QUERIES = load(__name__)

_HEAD = (
    *("name", "expression", "timezone", "paused", "paused_at", "resumed_at"),
    *("next_at", "last_at", "timed_at"),
)
_template = msgspec.json.Decoder(NewJob).decode


class PostgresCronReads(CronReads):
    """The reads of cron by the lanes of a store."""

    def __init__(self, lanes: PostgresLanes) -> None:
        self._looks = lanes.looks
        self._scans = lanes.scans

    async def groups(self) -> list[str]:
        return [name for (name,) in await self._looks(_rows, "group_names")]

    async def queues(self, group: str | None = None) -> list[tuple[str, str | None]]:
        return await self._scans(_rows, "queues", cron=group)

    async def group(self, group: str) -> CronGroup | None:
        return await self._looks(_group, group)

    async def entries(self, group: str, most: int) -> list[CronEntry]:
        return await self._scans(_entries, group, most)

    async def entry(self, group: str, entry: str) -> tuple[CronGroup | None, CronEntry | None]:
        return await self._looks(_entry, group, entry)

    async def count(self) -> int:
        ((count,),) = await self._looks(_rows, "count")
        return int(count)

    async def tally(self) -> list[str]:
        return [queue for (queue,) in await self._looks(_rows, "tally")]

    async def due(self, now: int, limit: int) -> list[DueCron]:
        return _due(await self._looks(_rows, "due", now=now, limit=limit))

    async def timed_ahead(self, now: int, after: EntryPlace, limit: int) -> list[DueCron]:
        place = {"cron": after.group, "entry": after.entry, "limit": limit}
        return _due(await self._scans(_rows, "timed_ahead", now=now, **place))

    async def schedules(self, after: EntryPlace, limit: int) -> list[CronSchedule]:
        place = {"cron": after.group, "entry": after.entry, "limit": limit}
        return msgspec.convert(await self._scans(_rows, "schedules", **place), list[CronSchedule])

    async def note(self, name: str) -> str | None:
        found = await self._looks(_rows, "note", name=name)
        return found[0][0] if found else None

    async def schemas(self) -> list[StoredSchema]:
        return [StoredSchema(*row) for row in await self._scans(_rows, "schemas")]


def _rows(connection: Connection, query: str, /, **parameters: Any) -> list[Any]:
    return rows_of(connection, QUERIES[query], parameters)


def _due(rows: list[Any]) -> list[DueCron]:
    return msgspec.convert(rows, list[DueCron], strict=False)


def _group(connection: Connection, group: str) -> CronGroup | None:
    found = _rows(connection, "group", cron=group)
    if not found:
        return None
    name, timezone, paused, paused_at, resumed_at = found[0]
    return CronGroup(name, timezone, bool(paused), paused_at, resumed_at)


def _entries(connection: Connection, group: str, most: int) -> list[CronEntry]:
    ((size,),) = _rows(connection, "size", cron=group)
    if size > most:
        raise TooLarge(
            f"the jobs of cron group {group!r} have {size} bytes, but at most {most} are"
            " shown at a time: ask for its entries one by one, or make several groups of it"
        )
    return [_entry_of(row) for row in _rows(connection, "entries", cron=group)]


def _entry(
    connection: Connection, group: str, entry: str
) -> tuple[CronGroup | None, CronEntry | None]:
    found = _rows(connection, "entry", cron=group, entry=entry)
    return _group(connection, group), _entry_of(found[0]) if found else None


def _entry_of(row: Any) -> CronEntry:
    *head, job = row
    values = dict(zip(_HEAD, head, strict=True))
    return CronEntry(**values | {"paused": bool(values["paused"])}, job=_template(job))


READS = {CronReads: PostgresCronReads}
