"""The queries of `zq.store.postgres.reads`, as functions of a reader.

Each function runs completely in a reader's thread, and sees one moment, however many queries it
makes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

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
from zq.store.api import PAGE_BYTES, DueDates
from zq.store.postgres.connection import Connection
from zq.store.postgres.queries import Statement, compiled, load
from zq.store.postgres.rows import jobs_of
from zq.store.postgres.where import where

QUERIES = load(__name__)

OLDEST_DEPTH = 20
OLDEST_PRIORITIES = 2_000
"""The most priorities that `oldest_ready` visits in all, the lowest of each queue first."""

_settings = msgspec.json.Decoder(QueueSettings).decode


def rows_of(connection: Connection, sql: str, parameters: Mapping[str, Any]) -> list[Any]:
    """The rows that a query finds."""
    statement = _compiled(sql)
    values = statement.bound(parameters)
    return connection.execute(statement.sql, values, binary=True).fetchall()


def get_job(connection: Connection, key: int, reach: Reach, now: int) -> JobRecord | None:
    """One job with its payload, if it is within reach and readers may still see it."""
    jobs = whole_jobs(connection, _visible(connection, "get", reach, now, key=key))
    return jobs[0] if jobs else None


def get_row(connection: Connection, key: int, reach: Reach, now: int) -> JobRecord | None:
    """One job without a payload or result that is stored apart."""
    jobs = _visible(connection, "get", reach, now, key=key)
    return jobs[0] if jobs else None


def get_owner(connection: Connection, lock: str, reach: Reach, now: int) -> JobRecord | None:
    """The job that owns a unique key, as `get_job` would return it."""
    jobs = whole_jobs(connection, _visible(connection, "get_owner", reach, now, lock=lock))
    return jobs[0] if jobs else None


def get_ending(connection: Connection, key: int, reach: Reach, now: int) -> Ending | None:
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
        errors, _ = errors_page(connection, key, beyond, True, 1)
        return Ending(Status.DEAD, error=errors[0] if errors else None)
    body = results(connection, [key])[key] if job.result_beside else job.result
    return Ending(job.status, body)


def list_jobs(
    connection: Connection,
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
    name = "list_descending" if descending else "list_ascending"
    page = {"after": after, "limit": limit, "skip": skip}
    return whole_jobs(connection, _found(connection, name, filter, page, hide_purged_at=now))


def list_keys(
    connection: Connection, filter: Filter, after: int, upto: int, limit: int
) -> list[int]:
    """Up to `limit` keys of matching jobs with ``after < key <= upto``, purged ones included."""
    conditions, parameters = where(filter)
    sql = QUERIES["list_keys"].replace("CONDITIONS", conditions)
    page = {"after": after, "upto": upto, "limit": limit}
    return [key for (key,) in rows_of(connection, sql, parameters | page)]


def key_range(connection: Connection) -> tuple[int, int]:
    """The lowest and the highest key of a stored job; both 0 if there is none."""
    ((lowest, highest),) = rows_of(connection, QUERIES["key_range"], {})
    return lowest, highest


def settings(connection: Connection, queue: str) -> QueueSettings:
    """The settings of a queue."""
    found = rows_of(connection, QUERIES["settings"], {"queue": queue})
    return _settings(found[0][0]) if found else NO_SETTINGS


def all_settings(connection: Connection) -> dict[str, QueueSettings]:
    """All settings of queues, by queue."""
    found = rows_of(connection, QUERIES["all_settings"], {})
    return {queue: _settings(text) for queue, text in found}


def last_errors(connection: Connection, keys: Sequence[int]) -> dict[int, LastError]:
    """The latest failure of each job that has one."""
    found = rows_of(connection, QUERIES["last_errors"], {"keys": keys})
    return {key: LastError(*error) for key, *error in found}


def count_jobs(connection: Connection, filter: Filter, now: int) -> int:
    """How many jobs match. The kept counts are much faster if they can answer: `is_counted`."""
    conditions, parameters = where(filter, hide_purged_at=now)
    sql = QUERIES["count"].replace("CONDITIONS", conditions)
    ((total,),) = rows_of(connection, sql, parameters)
    return int(total)


def visible_counts(
    connection: Connection, now: int, queues: Sequence[str] | None = None
) -> Counter[tuple[str, Status]]:
    """Jobs by queue and status, without those whose retention is over. None means all queues."""
    name = "counts" if queues is None else "counts_of"
    stored = rows_of(connection, QUERIES[name], {"queues": queues})
    counts = Counter({(queue, Status(status)): n for queue, status, n in stored})
    for queue, status, n in rows_of(connection, QUERIES["purged_counts"], {"now": now}):
        if queues is None or (queue, Status(status)) in counts:
            counts[queue, Status(status)] -= n
    return counts


def oldest_ready(connection: Connection, queues: Sequence[str]) -> dict[str, int]:
    """When the longest waiting ready job became ready, for each queue that has one.

    As a rule that is a queue's first job. If it may be another, this looks at the first
    `OLDEST_DEPTH` jobs of each priority. That is exact unless so many of them were retried or
    promoted after a job behind them became ready. Of jobs that wait in lines, it looks at the
    first ones of the lines. Jobs that wait behind others of their groups are left out.
    """
    heads = rows_of(connection, QUERIES["ready_heads"], {"queues": queues})
    found: dict[str, int] = {queue: ready_at for queue, ready_at, _ in heads}
    some: dict[str, Any] = {"depth": OLDEST_DEPTH, "most": OLDEST_PRIORITIES}
    if doubtful := [queue for queue, _, is_oldest in heads if not is_oldest]:
        sql = QUERIES["oldest_ready"]
        found |= dict(rows_of(connection, sql, {"queues": doubtful, **some}))
    sql = QUERIES["oldest_in_lines"]
    for queue, at in rows_of(connection, sql, {"queues": queues, **some}):
        found[queue] = min(found.get(queue, at), at)
    return found


def due_between(connection: Connection, after: int, upto: int) -> DueDates:
    """How many dates there are after one moment and up to another."""
    (row,) = rows_of(connection, QUERIES["due_between"], {"after": after, "upto": upto})
    return DueDates(*row)


def leases(connection: Connection, reach: Reach, limit: int) -> list[JobRecord]:
    """The jobs whose leases end first, without large payloads."""
    return _found(connection, "leases", Filter(reach=reach), {"limit": limit})


def payloads(connection: Connection, keys: Sequence[int]) -> dict[int, str]:
    """Large payloads by key. Deleted jobs are missing."""
    return dict(rows_of(connection, QUERIES["payloads"], {"keys": keys}))


def results(connection: Connection, keys: Sequence[int]) -> dict[int, str]:
    """Large results by key. Deleted jobs are missing."""
    return dict(rows_of(connection, QUERIES["results"], {"keys": keys}))


def errors_page(
    connection: Connection, key: int, after: int, descending: bool, limit: int
) -> tuple[list[ErrorRecord], bool]:
    """A page of a job's failures, and true if more follow."""
    name = "errors_descending" if descending else "errors_ascending"
    page = {"key": key, "after": after, "limit": limit + 1}
    records: list[ErrorRecord] = []
    total = 0
    for row in rows_of(connection, QUERIES[name], page):
        record = ErrorRecord(*row)
        total += record.weight
        if records and (len(records) == limit or total > PAGE_BYTES):
            return records, True
        records.append(record)
    return records, False


def _visible(
    connection: Connection, name: str, reach: Reach, now: int, **place: object
) -> list[JobRecord]:
    return _found(connection, name, Filter(reach=reach), place, hide_purged_at=now)


def _found(
    connection: Connection,
    name: str,
    filter: Filter,
    place: Mapping[str, object],
    hide_purged_at: int | None = None,
) -> list[JobRecord]:
    """The jobs that a query finds, without bodies that are stored apart."""
    conditions, parameters = where(filter, hide_purged_at)
    sql = QUERIES[name].replace("CONDITIONS", conditions)
    return jobs_of(rows_of(connection, sql, {**parameters, **place}))


def whole_jobs(connection: Connection, found: list[JobRecord]) -> list[JobRecord]:
    """The jobs with payloads and results, as many as fit in a page."""
    jobs = _first_bytes(found)
    beside = [job.key for job in jobs if job.payload is None]
    bodies = payloads(connection, beside) if beside else {}
    ended = [job.key for job in jobs if job.result_beside]
    ends = results(connection, ended) if ended else {}
    for job in jobs:
        if job.payload is None:
            job.payload = bodies[job.key]
        if job.result_beside:
            job.result = ends[job.key]
    return jobs


def _first_bytes(jobs: list[JobRecord]) -> list[JobRecord]:
    """The first jobs whose bodies together fit in a page; at least one job."""
    total = 0
    for index, job in enumerate(jobs):
        total += job.weight
        if total > PAGE_BYTES and index:
            return jobs[:index]
    return jobs


@lru_cache(maxsize=256)
def _compiled(sql: str) -> Statement:
    return compiled(sql)
