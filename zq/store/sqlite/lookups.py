"""The queries of `zq.store.sqlite.reads`, as functions of a reader's connection.

Each function runs completely in a reader's thread. It sees one moment, however many queries it
makes, and leaves no cursor open.
"""

import sqlite3
from collections import Counter
from collections.abc import Sequence

import msgspec

from zq.model.checksums import (
    ChecksumMismatch,
    check_jobs,
    check_text,
    checksum_of_all,
    error_checksum,
)
from zq.model.filters import Filter
from zq.model.job import (
    MAX_TIME,
    ErrorRecord,
    JobRecord,
    LastError,
    Reason,
    is_dead_letter,
)
from zq.model.lifecycle import Status
from zq.model.outcome import Ending
from zq.model.reach import Reach
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.store.api import PAGE_BYTES, DueDates, as_json
from zq.store.sqlite.bodies import complete, is_on_bad_page, payloads, results
from zq.store.sqlite.connection import is_corrupt
from zq.store.sqlite.quarantine import ON_PAGE, UnreadableRows, is_unreadable, keys_query
from zq.store.sqlite.queries import load
from zq.store.sqlite.where import where

QUERIES = load(__name__)

OLDEST_DEPTH = 20
OLDEST_PRIORITIES = 2_000
"""The most priorities that `oldest_ready` visits in all, the lowest of each queue first."""

_jobs = msgspec.json.Decoder(list[JobRecord])
_counts = msgspec.json.Decoder(list[tuple[str, Status, int]])
_keys = msgspec.json.Decoder(list[int])
_heads = msgspec.json.Decoder(list[tuple[str, int, int]])
_settings = msgspec.json.Decoder(QueueSettings)
_oldest = msgspec.json.Decoder(list[tuple[str, int]])


def get_job(connection: sqlite3.Connection, key: int, reach: Reach, now: int) -> JobRecord | None:
    """One job with its payload, if it is within reach and readers may still see it."""
    conditions, parameters = where(Filter(reach=reach), hide_purged_at=now)
    sql = QUERIES["get"].replace("CONDITIONS", conditions)
    jobs = whole_jobs(connection, sql, {**parameters, "key": key})
    return jobs[0] if jobs else None


def get_row(connection: sqlite3.Connection, key: int, reach: Reach, now: int) -> JobRecord | None:
    """One job without a payload or result that is stored apart."""
    conditions, parameters = where(Filter(reach=reach), hide_purged_at=now)
    sql = QUERIES["get"].replace("CONDITIONS", conditions)
    jobs = found_jobs(connection, sql, {**parameters, "key": key})
    return jobs[0] if jobs else None


def get_owner(
    connection: sqlite3.Connection, lock: str, reach: Reach, now: int
) -> JobRecord | None:
    """The job that owns a unique key, as `get_job` would return it."""
    conditions, parameters = where(Filter(reach=reach), hide_purged_at=now)
    sql = QUERIES["get_owner"].replace("CONDITIONS", conditions)
    jobs = whole_jobs(connection, sql, {**parameters, "lock": lock})
    return jobs[0] if jobs else None


def get_ending(connection: sqlite3.Connection, key: int, reach: Reach, now: int) -> Ending | None:
    """The outcome of a job, or its present state; None if readers do not see it."""
    job = get_row(connection, key, reach, now)
    if job is None:
        return None
    if job.status is Status.DEAD or is_dead_letter(job):
        if job.extras is not None and job.extras.reason == Reason.STALLED:
            # The stalls of a dead letter are those of its new life.
            stalls = job.stalls if job.status is Status.DEAD else 0
            return Ending(Status.DEAD, reason=job.extras.reason, stalls=stalls)
        # A dead letter may have failed again; what it died of is the last failure before that.
        beyond = job.forgiven + 1 if is_dead_letter(job) else MAX_TIME
        errors = list_errors(connection, key, beyond, True, 1)
        # The error's record may have been set aside.
        return Ending(Status.DEAD, error=errors[0] if errors else None)
    body = job.result
    if job.result_beside:
        body = complete(results(connection, [key]), [key])[key]
    return Ending(job.status, body)


def list_jobs(
    connection: sqlite3.Connection,
    filter: Filter,
    after: int,
    descending: bool,
    limit: int,
    now: int,
    skip: int = 0,
) -> list[JobRecord]:
    """Up to `limit` jobs beyond `after` with payloads, without the first `skip` ones.

    There are fewer if payloads are large.
    """
    conditions, parameters = where(filter, hide_purged_at=now)
    name = "list_descending" if descending else "list_ascending"
    sql = QUERIES[name].replace("CONDITIONS", conditions)
    parameters |= {"after": after, "limit": limit, "skip": skip}
    return whole_jobs(connection, sql, parameters)


def list_keys(
    connection: sqlite3.Connection,
    filter: Filter,
    after: int,
    upto: int,
    limit: int,
) -> list[int]:
    """Up to `limit` keys of matching jobs with ``after < key <= upto``, purged ones included."""
    conditions, parameters = where(filter)
    sql = QUERIES["list_keys"].replace("CONDITIONS", conditions)
    return _keys.decode(
        text_of(connection, sql, {**parameters, "after": after, "upto": upto, "limit": limit})
    )


def key_range(connection: sqlite3.Connection) -> tuple[int, int]:
    """The lowest and the highest key of a stored job; both 0 if there is none."""
    lowest, highest = connection.execute(QUERIES["key_range"]).fetchone()
    return lowest, highest


def settings(connection: sqlite3.Connection, queue: str) -> QueueSettings:
    """The settings of a queue."""
    row = connection.execute(QUERIES["settings"], {"queue": queue}).fetchone()
    return _decoded_settings(queue, *row) if row else NO_SETTINGS


def all_settings(connection: sqlite3.Connection) -> dict[str, QueueSettings]:
    """All settings of queues, by queue."""
    rows = connection.execute(QUERIES["all_settings"]).fetchall()
    return {queue: _decoded_settings(queue, text, stored) for queue, text, stored in rows}


def _decoded_settings(queue: str, text: str, stored: int | None) -> QueueSettings:
    try:
        check_text("the row", text, stored)
        return _settings.decode(text)
    except (ChecksumMismatch, msgspec.MsgspecError) as error:
        raise UnreadableRows("queue_settings", [queue]) from error


def last_errors(connection: sqlite3.Connection, keys: Sequence[int]) -> dict[int, LastError]:
    """The latest failure of each job that has one."""
    try:
        found: dict[int, LastError] = {}
        for key, signature, *texts, stored in connection.execute(
            QUERIES["last_errors"], {"keys": as_json(keys)}
        ):
            if stored not in (None, checksum_of_all(*texts)):
                raise ChecksumMismatch
            found[key] = LastError(texts[0], texts[1], signature)
        return found
    except Exception as error:
        if not is_unreadable(error):
            raise
        raise _bad_errors(connection, keys, error) from None


def count_jobs(connection: sqlite3.Connection, filter: Filter, now: int) -> int:
    """How many jobs match. The kept counts are much faster if they can answer: `is_counted`."""
    conditions, parameters = where(filter, hide_purged_at=now, by_time=True)
    sql = QUERIES["count"].replace("CONDITIONS", conditions)
    total: int = connection.execute(sql, parameters).fetchone()[0]
    return total


def visible_counts(
    connection: sqlite3.Connection, now: int, queues: Sequence[str] | None = None
) -> Counter[tuple[str, Status]]:
    """Jobs by queue and status, without those whose retention is over. None means all queues."""
    some: dict[str, object] = {"queues": as_json(list(queues or ()))}
    stored = text_of(connection, QUERIES["counts" if queues is None else "counts_of"], some)
    purged = text_of(connection, QUERIES["purged_counts"], {"now": now})
    counts = Counter({(queue, status): n for queue, status, n in _counts.decode(stored)})
    for queue, status, n in _counts.decode(purged):
        if queues is None or (queue, status) in counts:
            counts[queue, status] -= n
    return counts


def oldest_ready(connection: sqlite3.Connection, queues: Sequence[str]) -> dict[str, int]:
    """When the longest waiting ready job became ready, for each queue that has one.

    As a rule that is a queue's first job. If it may be another, this looks at the first
    `OLDEST_DEPTH` jobs of each priority. That is exact unless so many of them were retried or
    promoted after a job behind them became ready. Of jobs that wait in lines, it looks at the
    first ones of the lines. Jobs that wait behind others of their groups are left out.
    """
    parameters: dict[str, object] = {"queues": as_json(list(queues))}
    heads = _heads.decode(text_of(connection, QUERIES["ready_heads"], parameters))
    found = {queue: ready_at for queue, ready_at, _ in heads}
    doubtful = [queue for queue, _, is_oldest in heads if not is_oldest]
    if doubtful:
        parameters = {
            "queues": as_json(doubtful),
            "depth": OLDEST_DEPTH,
            "most": OLDEST_PRIORITIES,
        }
        found |= _oldest.decode(text_of(connection, QUERIES["oldest_ready"], parameters))
    parameters = {"queues": as_json(list(queues)), "depth": OLDEST_DEPTH}
    for queue, at in _oldest.decode(text_of(connection, QUERIES["oldest_in_lines"], parameters)):
        found[queue] = min(found.get(queue, at), at)
    return found


def due_between(connection: sqlite3.Connection, after: int, upto: int) -> DueDates:
    """How many dates there are after one moment and up to another."""
    bounds = {"after": after, "upto": upto}
    return DueDates(*connection.execute(QUERIES["due_between"], bounds).fetchone())


def leases(connection: sqlite3.Connection, reach: Reach, limit: int) -> list[JobRecord]:
    """The jobs whose leases end first, without large payloads."""
    conditions, parameters = where(Filter(reach=reach))
    sql = QUERIES["leases"].replace("CONDITIONS", conditions)
    return found_jobs(connection, sql, {**parameters, "limit": limit})


def list_errors(
    connection: sqlite3.Connection, key: int, after: int, descending: bool, limit: int
) -> list[ErrorRecord]:
    """Up to `limit` failures of a job beyond the attempt `after`; fewer if texts are large."""
    return errors_page(connection, key, after, descending, limit)[0]


def errors_page(
    connection: sqlite3.Connection, key: int, after: int, descending: bool, limit: int
) -> tuple[list[ErrorRecord], bool]:
    """A page of a job's failures, and true if more follow."""
    name = "errors_descending" if descending else "errors_ascending"
    parameters: dict[str, object] = {"key": key, "after": after, "limit": limit + 1}
    records: list[ErrorRecord] = []
    total = 0
    try:
        for row in connection.execute(QUERIES[name], parameters):
            *values, stored = row
            record = msgspec.convert(values, ErrorRecord)
            if stored not in (None, error_checksum(record)):
                raise ChecksumMismatch
            total += record.weight
            if records and (len(records) == limit or total > PAGE_BYTES):
                return records, True
            records.append(record)
    except Exception as error:
        if not is_unreadable(error):
            raise
        raise _bad_errors(connection, [key], error) from None
    return records, False


def whole_jobs(
    connection: sqlite3.Connection, sql: str, parameters: dict[str, object]
) -> list[JobRecord]:
    """The jobs that a query finds, with payloads and results, as many as fit in a page."""
    jobs = _first_bytes(found_jobs(connection, sql, parameters))
    beside = [job.key for job in jobs if job.payload is None]
    bodies = complete(payloads(connection, beside), beside) if beside else {}
    ended = [job.key for job in jobs if job.result_beside]
    ends = complete(results(connection, ended), ended) if ended else {}
    for job in jobs:
        if job.payload is None:
            job.payload = bodies[job.key]
        if job.result_beside:
            job.result = ends[job.key]
    return jobs


def found_jobs(
    connection: sqlite3.Connection, sql: str, parameters: dict[str, object]
) -> list[JobRecord]:
    """The jobs that a query finds, without bodies stored apart. Raises `UnreadableRows`."""
    try:
        jobs = _jobs.decode(text_of(connection, sql, parameters))
        check_jobs(jobs)
        return jobs
    except Exception as error:
        if not is_unreadable(error):
            raise
    raise UnreadableRows("jobs", _keys.decode(text_of(connection, keys_query(sql), parameters)))


def _bad_errors(
    connection: sqlite3.Connection, keys: Sequence[int], error: Exception
) -> UnreadableRows:
    """The jobs whose records of errors cannot be read, because of this error."""
    if isinstance(error, sqlite3.DatabaseError) and is_corrupt(error):
        sql = "SELECT * FROM errors WHERE job_id IN (SELECT value FROM json_each(:keys))"
        bad = [key for key in keys if is_on_bad_page(connection, sql, as_json([key]))]
        return UnreadableRows(f"{ON_PAGE}errors", bad)
    return UnreadableRows("errors", keys)


def _first_bytes(jobs: list[JobRecord]) -> list[JobRecord]:
    """The first jobs whose bodies together fit in a page; at least one job."""
    total = 0
    for index, job in enumerate(jobs):
        total += job.weight
        if total > PAGE_BYTES and index:
            return jobs[:index]
    return jobs


def text_of(connection: sqlite3.Connection, sql: str, parameters: dict[str, object]) -> str:
    """The one text that a query returns."""
    text: str = connection.execute(sql, parameters).fetchone()[0]
    return text
