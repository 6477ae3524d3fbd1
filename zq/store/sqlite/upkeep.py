"""The work outside the tick, in the writer's thread: recovery, checkpoints, free space."""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from zq.model.clock import Clock, SteadyClock, SteadyMark, SystemClock
from zq.model.leasing import DiedStream, Residents
from zq.model.lifecycle import Status
from zq.model.log import HISTORY_LOG, Bounds
from zq.store.api import FoundAtStart, as_json
from zq.store.errors import StoreBusy
from zq.store.identity import former_in
from zq.store.logs import last_seq
from zq.store.sqlite.damage import damaged
from zq.store.sqlite.identity import check_meta, lost_in, read_meta
from zq.store.sqlite.queries import load
from zq.store.sqlite.snapshot import CORE, SqliteSnapshot
from zq.store.sqlite.transaction import QUERIES as TICK
from zq.store.sqlite.transaction import read_deadlines, recoveries, run_all

QUERIES = load(__name__)

TIDY_PAGES = 256
"""The pages that one slice gives back: 1 MiB."""

SPARE_PAGES = 4096
"""How many free pages stay for the next burst, besides a quarter of the file."""


def recover(
    connection: sqlite3.Connection,
    history: Bounds | None = None,
    clock: Clock | None = None,
    *,
    off_counts: bool = True,
) -> FoundAtStart:
    """Return the jobs that streams held when the server stopped, and read the identity.

    The jobs keep their attempts, ids and places. A `history` has these bounds from now on. Steady
    time goes on by this `clock`. This runs before the first request is accepted.
    """
    clock = clock or SystemClock()
    connection.execute("BEGIN IMMEDIATE")
    try:
        left = _value(connection, "read_left_in_flight")
        meta = read_meta(connection)
        if lost := lost_in(meta):
            raise damaged(f"it is damaged: {lost}")
        check_meta("former_suffixes", meta.get("former_suffixes", "[]"))
        steady = SteadyClock(clock, mark_in(meta), off_counts=off_counts)
        residents = _residents_in(meta)
        died = _died(connection, residents, clock.boot)
        begun = {key for stream in died for key in stream.begun}
        found = msgspec.json.decode(left, type=list[tuple[int, str]])
        held = [each for each in found if each[0] not in begun]
        give_back(connection, held, steady)
        for room in recoveries():
            run_all(connection, room.begin)
        claimed = connection.execute(QUERIES["count_claimed"]).fetchone()[0]
        if history is not None:
            connection.execute(CORE["set_bounds"], {"log": HISTORY_LOG, **history._asdict()})
        highest = connection.execute(QUERIES["highest_key"]).fetchone()[0]
        note_clock(connection, steady)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
    return FoundAtStart(
        epoch=meta["epoch"],
        id_suffix=meta["id_suffix"],
        former_suffixes=former_in(meta),
        last_key=max(meta["high_water"], highest),
        returned=len(held),
        claimed=claimed - len(begun),
        died=died,
        last_holder=max((stream.holder for stream in residents.streams), default=0),
        deadlines=read_deadlines(connection),
        logged=last_seq(SqliteSnapshot(CORE, connection), HISTORY_LOG),
        found={name: _first(connection, name) for room in recoveries() for name in room.found},
        steady=steady,
    )


def _first(connection: sqlite3.Connection, name: str) -> object:
    """The first value that a statement of the tick finds."""
    row = connection.execute(TICK[name]).fetchone()
    return None if row is None else row[0]


def has_rebooted(connection: sqlite3.Connection, clock: Clock | None) -> bool:
    """True if the machine has been started anew since a server used the database.

    False if that is not known.
    """
    boot = (clock or SystemClock()).boot
    with suppress(sqlite3.Error):  # There may be no such table yet, or it is damaged.
        mark = mark_in(read_meta(connection))
        return mark is not None and None not in (mark.boot, boot) and mark.boot != boot
    return False


def mark_in(meta: Mapping[str, Any]) -> SteadyMark | None:
    """The mark of the steady time; None if there is none, or if it cannot be read."""
    with suppress(msgspec.MsgspecError, KeyError):
        return msgspec.json.decode(meta["clock"], type=SteadyMark)
    return None


def _residents_in(meta: Mapping[str, Any]) -> Residents:
    """The streams that were to die with the last process; none if that cannot be read."""
    with suppress(msgspec.MsgspecError, KeyError):
        return msgspec.json.decode(meta["residents"], type=Residents)
    return Residents(None, ())


def _died(
    connection: sqlite3.Connection, residents: Residents, boot: str | None
) -> list[DiedStream]:
    """The streams that have died with jobs, while the machine went on."""
    if residents.boot is None or residents.boot != boot:
        return []
    died: list[DiedStream] = []
    for holder, stall_limit, concurrency in residents.streams:
        wanted = {"holder": holder, "concurrency": concurrency}
        text = _value(connection, "read_begun", wanted)
        if begun := msgspec.json.decode(text, type=list[int]):
            died.append(DiedStream(holder, stall_limit, begun))
    return died


def note_clock(connection: sqlite3.Connection, steady: SteadyClock) -> None:
    """Note the steady time, so that the next start knows how far it has come."""
    steady.read()
    mark = steady.mark()
    connection.execute(TICK["note_clock"], {"mark": as_json(mark)})
    steady.stored(mark)


def give_back(
    connection: sqlite3.Connection, held: Sequence[tuple[int, str]], steady: SteadyClock
) -> None:
    """Return jobs in flight, given by their keys and queues. Call it in a transaction."""
    if not held:
        return
    keys = {"keys": as_json([key for key, _ in held])}
    connection.execute(QUERIES["give_back_all"], keys)
    connection.execute(TICK["restore_locks"], keys)
    groups = _value(connection, "groups_of", keys)
    shut, heads = [
        [key for (key,) in connection.execute(TICK[name], {"groups": groups})]
        for name in ("shut_groups_telling", "open_groups_telling")
    ]
    _line_up(connection, [key for key, _ in held], [*shut, *heads], steady)
    for room in recoveries():
        run_all(connection, room.returned, keys)
    deltas = [
        (queue, status, n * sign)
        for queue, n in Counter(queue for _, queue in held).items()
        for status, sign in ((Status.IN_FLIGHT, -1), (Status.READY, 1))
    ]
    connection.execute(TICK["count"], {"deltas": as_json(deltas)})


def _line_up(
    connection: sqlite3.Connection,
    returned: Sequence[int],
    regrouped: Sequence[int],
    steady: SteadyClock,
) -> None:
    """Put returned jobs back into their lines, and find the heads of lines again."""
    keys = {"keys": as_json([*returned, *regrouped])}
    now, _ = steady.read()
    place = {"keys": as_json(returned), "now": now, "ahead": steady.ahead}
    for name in ("name_lines", "enter_lines"):
        connection.execute(TICK[name], place)
    (lines,) = connection.execute(TICK["lines_of_jobs"], keys).fetchone()
    connection.execute(TICK["refresh_lines"], {"lines": lines})


def checkpoint(connection: sqlite3.Connection) -> tuple[int, int]:
    """Copy the WAL into the database without waiting for readers.

    Return how many pages the WAL holds, and how many of them are copied. Raises `StoreBusy` while
    another program copies it.
    """
    busy, pages, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if busy:
        raise StoreBusy("another program copies its log, such as a sqlite3 shell or a backup tool")
    return pages, copied


def restart_log(connection: sqlite3.Connection) -> None:
    """Write the first page of a log that has been copied completely.

    SQLite flushes the header of a log that starts over before the rest. This does so in the
    connection's thread; otherwise the next tick would do it in the event loop.
    """
    connection.execute(QUERIES["touch"])


def shrink_wal(connection: sqlite3.Connection) -> None:
    """Empty the WAL's file, unless a reader prevents it: the writer does not wait for readers."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def page_bytes(connection: sqlite3.Connection) -> int:
    """The size of the pages of a database."""
    size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return size


def tidy(connection: sqlite3.Connection, *, spare: bool = True) -> bool:
    """Delete queues without jobs, and shrink the file by a slice if much of it is free.

    Without `spare`, shrink it if any of it is free.
    """
    connection.execute(QUERIES["forget_empty_queues"])
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    free: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    surplus = free - (max(SPARE_PAGES, pages // 4) if spare else 0)
    if surplus <= 0:
        return False
    # This pragma frees one page each time it is stepped, and returns no column. `execute` steps
    # such a statement once, a script until it is done.
    connection.executescript(f"PRAGMA incremental_vacuum({min(TIDY_PAGES, surplus)})")
    return surplus > TIDY_PAGES


def _value(
    connection: sqlite3.Connection, query: str, parameters: Mapping[str, object] | tuple[()] = ()
) -> str:
    text: str = connection.execute(QUERIES[query], parameters).fetchone()[0]
    return text
