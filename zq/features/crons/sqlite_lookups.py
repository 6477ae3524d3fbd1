"""The queries of cron, as functions of a reader's connection."""

import sqlite3
from collections.abc import Sequence

import msgspec

from zq.features.crons.model import CronEntry, CronGroup, CronSchedule, DueCron
from zq.features.crons.store import EntryPlace
from zq.features.schemas.model import StoredSchema
from zq.model.checksums import check_text
from zq.model.job import NewJob
from zq.store.sqlite.quarantine import UnreadableRows, is_unreadable
from zq.store.sqlite.queries import load

QUERIES = load(__name__)

Row = tuple[str, str, int | None]


class _Head(msgspec.Struct, array_like=True):
    """An entry without its job. The fields have the order of the columns."""

    name: str
    expression: str
    timezone: str | None
    paused: int
    paused_at: int | None
    resumed_at: int | None
    next_at: int | None
    last_at: int | None
    timed_at: int


_names = msgspec.json.Decoder(list[str])
_group = msgspec.json.Decoder(CronGroup)
_head = msgspec.json.Decoder(_Head)
_template = msgspec.json.Decoder(NewJob)
_queues = msgspec.json.Decoder(list[tuple[str, str | None]])
_due = msgspec.json.Decoder(list[DueCron])
_schedules = msgspec.json.Decoder(list[CronSchedule])


def group_names(connection: sqlite3.Connection) -> list[str]:
    """The names of all groups, in byte order."""
    return _names.decode(connection.execute(QUERIES["group_names"]).fetchone()[0])


def group_queues(connection: sqlite3.Connection, group: str | None) -> list[tuple[str, str | None]]:
    """The queues of each group's jobs, or of one group's; None for a group without entries."""
    return _queues.decode(connection.execute(QUERIES["queues"], {"cron": group}).fetchone()[0])


def get_group(connection: sqlite3.Connection, group: str) -> CronGroup | None:
    """A group without its entries."""
    row = connection.execute(QUERIES["group"], {"cron": group}).fetchone()
    return None if row is None else _group.decode(row[0])


def group_size(connection: sqlite3.Connection, group: str) -> int:
    """The size of a group's templates in bytes, approximately."""
    return int(connection.execute(QUERIES["size"], {"cron": group}).fetchone()[0])


def get_entries(connection: sqlite3.Connection, group: str) -> list[CronEntry]:
    """The entries of a group by name."""
    return _entries(group, connection.execute(QUERIES["entries"], {"cron": group}).fetchall())


def get_entry(connection: sqlite3.Connection, group: str, name: str) -> CronEntry | None:
    """One entry."""
    place = {"cron": group, "entry": name}
    entries = _entries(group, connection.execute(QUERIES["entry"], place).fetchall())
    return entries[0] if entries else None


def count_entries(connection: sqlite3.Connection) -> int:
    """How many entries there are."""
    count: int = connection.execute(QUERIES["count"]).fetchone()[0]
    return count


def tally_entries(connection: sqlite3.Connection) -> list[str]:
    """The queue of each entry's job."""
    text = connection.execute(QUERIES["tally"]).fetchone()[0]
    return msgspec.json.decode(text, type=list[str])


def due_entries(connection: sqlite3.Connection, now: int, limit: int) -> list[DueCron]:
    """Up to `limit` entries that are due, the earliest first."""
    values = {"now": now, "limit": limit}
    return _due.decode(connection.execute(QUERIES["due"], values).fetchone()[0])


def timed_ahead(
    connection: sqlite3.Connection, now: int, after: EntryPlace, limit: int
) -> list[DueCron]:
    """Up to `limit` entries whose next time was computed later than `now`, in order of names."""
    values = {"now": now, "cron": after.group, "entry": after.entry, "limit": limit}
    return _due.decode(connection.execute(QUERIES["timed_ahead"], values).fetchone()[0])


def schedules(connection: sqlite3.Connection, after: EntryPlace, limit: int) -> list[CronSchedule]:
    """The schedules of up to `limit` entries, in order of names."""
    values = {"cron": after.group, "entry": after.entry, "limit": limit}
    return _schedules.decode(connection.execute(QUERIES["schedules"], values).fetchone()[0])


def _entries(group: str, rows: Sequence[Row]) -> list[CronEntry]:
    found, unreadable = [], []
    for head, job, stored in rows:
        entry = _head.decode(head)
        try:
            check_text("its job", job, stored)
            template = _template.decode(job)
        except Exception as error:
            if not is_unreadable(error):
                raise
            unreadable.append((group, entry.name))
            continue
        values = msgspec.structs.asdict(entry) | {"paused": bool(entry.paused)}
        found.append(CronEntry(**values, job=template))
    if unreadable:
        raise UnreadableRows("cron_entries", unreadable)
    return found


def note(connection: sqlite3.Connection, name: str) -> str | None:
    """A text about the whole server."""
    row = connection.execute(QUERIES["note"], {"name": name}).fetchone()
    return row and str(row[0])


def schemas(connection: sqlite3.Connection) -> list[StoredSchema]:
    """All schemas of payloads."""
    found = [StoredSchema(*row) for row in connection.execute(QUERIES["schemas"])]
    for schema in found:
        msgspec.json.decode(schema.body)
    return found
