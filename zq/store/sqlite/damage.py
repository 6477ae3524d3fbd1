"""Checks a database for damage before it is used, also for damage that SQLite would ignore."""

import contextlib
import filecmp
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from zq.model.effects import Misfit
from zq.store.errors import StoreDamaged, StoreFull
from zq.store.sqlite.files import FILE_NAME, WAL_NAME, create_private
from zq.store.sqlite.lock import sync_directory
from zq.store.sqlite.quarantine import QUERIES, UnreadableRows, is_unreadable
from zq.store.sqlite.wal import InvalidHeader, refuse_bad_header, walk

log = logging.getLogger(__name__)

T = TypeVar("T")

CHECKED_BYTES = 64 * 1024 * 1024
"""A start does not check a larger file, since the check takes 7 ms a MiB."""

MOST_FINDINGS = 5

KEPT_LOG = f"{WAL_NAME}.damaged-"
"""How the name of a log that was kept aside begins; its date follows."""

MOST_KEPT_LOGS = 8
"""A start that keeps one more deletes the oldest, so that they cannot fill the disk of a device."""

KEPT_DATABASE = f"{FILE_NAME}.damaged-"
"""How the name of a damaged database that was kept begins; its date follows."""

PART = ".part"
"""The end of its name until it is complete."""


MARK_NAME = f"{FILE_NAME}.check"
"""An empty file with this name makes the next start check a database of any size."""


def mark_damaged(directory: Path) -> None:
    """Have the next start check the whole database, since a server has met a damaged page."""
    with contextlib.suppress(OSError):
        create_private(directory / MARK_NAME).close()


def refuse_damage(connection: sqlite3.Connection, directory: Path) -> None:
    """Check a database that is small or marked. Raises `StoreDamaged` if it is damaged.

    Where a row and an index differ, nothing tells which of them has changed. So no index is rebuilt
    unless somebody asks for a salvage.
    """
    mark = directory / MARK_NAME
    if not mark.exists() and not is_small(connection):
        return
    if found := find_damage(connection):
        error = damaged(f"it is damaged ({'; '.join(found)})")
        raise RulesBroken(str(error)) if are_rules(found) else error
    mark.unlink(missing_ok=True)


class RulesBroken(StoreDamaged):
    """Rows do not keep the rules of their tables. Nothing else is damaged."""


def can_be_mended(error: Exception) -> bool:
    """True if rows that could be set aside may be the cause of an error at a start."""
    cause = error.__cause__
    return (
        isinstance(error, RulesBroken | UnreadableRows | sqlite3.IntegrityError)
        or is_unreadable(error)
        or (isinstance(cause, Exception) and is_unreadable(cause))
    )


def mended(mend: Callable[[], Sequence[Misfit]], recover: Callable[[], T]) -> T:
    """Call a function. If it meets rows that it cannot read, `mend` and call it again."""
    try:
        return recover()
    except Exception as error:
        if not can_be_mended(error):
            raise
    log_misfits(mend())
    try:
        return recover()
    except Exception as error:
        if can_be_mended(error):
            raise damaged("a row that a start needs cannot be read") from error
        raise


def log_misfits(misfits: Sequence[Misfit]) -> None:
    """Log rows that were set aside."""
    for misfit in misfits:
        fields = {"table": misfit.source, "key": misfit.key, "reason": misfit.reason}
        log.error("a row cannot be read and was set aside", extra={"fields": fields})


def are_rules(findings: Sequence[str]) -> bool:
    """True if nothing else is found than rows that do not keep the rules of their tables."""
    rules = ("CHECK constraint failed in ", "NULL value in ")
    return all(finding.startswith(rules) for finding in findings)


def damaged(what: str) -> StoreDamaged:
    """The error for a database that a start cannot use, with what can be done."""
    return StoreDamaged(
        f"{what}: put back a copy of the directory, or save what can be read, by `zq salvage OLD"
        " NEW` or by a start with --on-damage salvage"
    )


def is_small(connection: sqlite3.Connection) -> bool:
    """True if a start has the time to look at every row."""
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return pages * page_size <= CHECKED_BYTES


def find_damage(connection: sqlite3.Connection) -> list[str]:
    """The damage in the tables, their indexes and the kept counts, each in a few words."""
    rows = connection.execute(f"PRAGMA integrity_check({MOST_FINDINGS})").fetchall()
    found = [text for (text,) in rows if text != "ok"]
    if not found and connection.execute(MISCOUNTED).fetchone()[0]:
        found.append("the kept counts of jobs are not those of the jobs")
    return found


MISCOUNTED = """
    SELECT EXISTS (
        SELECT queue, status, n FROM queue_counts WHERE n > 0
        EXCEPT SELECT queue, status, count(*) FROM jobs GROUP BY queue, status)
    OR (SELECT count(*) FROM jobs) <> (SELECT total(n) FROM queue_counts)
"""


def refuse_damaged_log(wal: Path) -> None:
    """Check a log's header before SQLite reads it. SQLite takes a damaged log for an empty one.

    Raises `StoreDamaged`.
    """
    try:
        refuse_bad_header(wal)
    except InvalidHeader:
        raise StoreDamaged(str(damaged_header(wal))) from None


class LogDamage(NamedTuple):
    """The damage of a log, and its remedy."""

    what: str
    remedy: str
    is_torn: bool = False
    """True if the log ends in frames that do not fit, as after a power cut."""

    def __str__(self) -> str:
        return f"{self.what}{self.remedy}"


def damage_of_log(wal: Path) -> LogDamage | None:
    """The damage of a log, also if only its end is torn; None if it is sound or missing."""
    try:
        found = walk(wal)
    except InvalidHeader:
        return damaged_header(wal)
    if found is None or found.bad is None:
        return None
    if found.is_torn:
        what = f"the end of its log {wal.name} is unfinished or damaged: {found.loss()}"
        return LogDamage(what, "", is_torn=True)
    return LogDamage(
        f"its log {wal.name} is damaged: {found.loss()}",
        ". Put back a copy of the directory; a start goes on without these changes and keeps a copy"
        " of the log",
    )


def damaged_header(wal: Path) -> LogDamage:
    """The damage of a log whose header cannot be used."""
    return LogDamage(
        f"the header of its log {wal.name} is damaged",
        ": put back a copy of the directory, or save what can be read, by `zq salvage OLD NEW` or"
        " by a start with --on-damage salvage",
    )


def keep_damaged_log(wal: Path, recovered: int, has_rebooted: Callable[[], bool]) -> None:
    """Keep a copy of a log whose frames behind the `recovered` ones are damaged.

    Call it before anything is written, since a write overwrites the log. A log whose end does not
    fit is not kept, nor one of which only the last change does not fit if the machine
    `has_rebooted` since: as a rule, a power cut has torn that change, which nobody was told of.
    Raises `StoreFull` or OSError.
    """
    found = walk(wal, recovered)
    if found is None or found.bad is None:
        return
    fields = {"pages": found.frames - found.recovered, "recovered_pages": found.recovered}
    if found.is_torn or (found.is_last_change and has_rebooted()):
        log.warning(
            "the log ends in pages that are unfinished or damaged: changes in them are lost",
            extra={"fields": fields},
        )
        return
    kept = _copy_of(wal) or _keep(wal)
    log.error(
        f"the log is damaged in the middle: {found.loss()}. It is kept as {kept}",
        extra={"fields": fields},
    )


def note_kept(connection: sqlite3.Connection, directory: Path, now: int) -> None:
    """Note damaged files that are kept in the directory, until an operator acknowledges them."""
    _note_kept_logs(connection, directory, now)
    for kept in sorted(directory.glob(f"{KEPT_DATABASE}*")):
        if not kept.name.endswith("-wal"):
            reason = "it was damaged, and this server has what could be salvaged of it"
            misfit = Misfit("database", kept.name, reason, now)
            connection.execute(QUERIES["note"], misfit._asdict())


def _note_kept_logs(connection: sqlite3.Connection, directory: Path, now: int) -> None:
    for kept in sorted(directory.glob(f"{KEPT_LOG}*")):
        key = {"key": kept.name}
        if kept.suffix == PART or connection.execute(QUERIES["log"], key).fetchone():
            continue
        try:
            found = walk(kept)
            reason = found.loss() if found is not None and found.bad else "it was kept aside"
        except InvalidHeader:
            reason = "its header is damaged"
        misfit = Misfit("wal", kept.name, reason, now)
        connection.execute(QUERIES["note"], misfit._asdict())


def _copy_of(wal: Path) -> Path | None:
    """The copy that an earlier start has kept, if it was cut off before it changed the log."""
    kept = wal.parent.glob(f"{KEPT_LOG}*")
    return next((path for path in kept if filecmp.cmp(wal, path, shallow=False)), None)


def _keep(wal: Path) -> Path:
    _delete_oldest(wal.parent)
    kept = wal.with_name(f"{KEPT_LOG}{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}")
    part = kept.with_name(kept.name + PART)
    part.unlink(missing_ok=True)
    try:
        with create_private(part) as target, wal.open("rb") as source:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        part.rename(kept)
        sync_directory(wal.parent)
    except OSError as error:
        part.unlink(missing_ok=True)
        size = wal.stat().st_size
        raise StoreFull(
            f"its log {wal.name} is damaged, and a copy of its {size} bytes cannot be kept"
            f" ({error.strerror}): free some space, or move that file away"
        ) from error
    return kept


def _delete_oldest(directory: Path) -> None:
    """Make room for one more kept log. Their names sort by date."""
    logs = sorted(path for path in directory.glob(f"{KEPT_LOG}*") if path.suffix != PART)
    for old in logs[: 1 - MOST_KEPT_LOGS]:
        old.unlink()
        fields = {"name": old.name, "most": MOST_KEPT_LOGS}
        log.warning("a damaged log is deleted: newer ones are kept", extra={"fields": fields})
