"""The reads of the core, as functions of a snapshot that has the core's queries.

Each function runs completely in a reader's thread. It sees one moment, however many queries it
makes. The queries are in `lookups.sql`, and in that of each store what differs.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from zq.model.checksums import ChecksumMismatch, check_text, checksum_of_all, error_checksum
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
from zq.model.reach import Reach
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.model.settling import Ending
from zq.store.snapshot import PAGE_BYTES, Snapshot

T = TypeVar("T")

OLDEST_DEPTH = 20
OLDEST_PRIORITIES = 2_000
"""The most priorities that `oldest_ready` visits in all, the lowest of each queue first."""

_settings = msgspec.json.Decoder(QueueSettings)


class DueDates(NamedTuple):
    """How many dates lie in a stretch of time: those of jobs, of schedules, and ends of pauses."""

    jobs: int
    schedules: int
    pauses: int


def get_job(snapshot: Snapshot, key: int, reach: Reach, now: int) -> JobRecord | None:
    """One job with its payload, if it is within reach and readers may still see it."""
    conditions, parameters = snapshot.where(Filter(reach=reach), hide_purged_at=now)
    jobs = snapshot.whole("get", {"CONDITIONS": conditions}, **parameters, key=key)
    return jobs[0] if jobs else None


def get_row(snapshot: Snapshot, key: int, reach: Reach, now: int) -> JobRecord | None:
    """One job without a payload or result that is stored apart."""
    conditions, parameters = snapshot.where(Filter(reach=reach), hide_purged_at=now)
    jobs = snapshot.jobs("get", {"CONDITIONS": conditions}, **parameters, key=key)
    return jobs[0] if jobs else None


def get_owner(snapshot: Snapshot, lock: str, reach: Reach, now: int) -> JobRecord | None:
    """The job that owns a unique key, as `get_job` would return it."""
    conditions, parameters = snapshot.where(Filter(reach=reach), hide_purged_at=now)
    jobs = snapshot.whole("get_owner", {"CONDITIONS": conditions}, **parameters, lock=lock)
    return jobs[0] if jobs else None


def get_ending(snapshot: Snapshot, key: int, reach: Reach, now: int) -> Ending | None:
    """The outcome of a job, or its present state; None if readers do not see it."""
    job = get_row(snapshot, key, reach, now)
    if job is None:
        return None
    if job.status is Status.DEAD or is_dead_letter(job):
        if job.extras is not None and job.extras.reason == Reason.STALLED:
            # The stalls of a dead letter are those of its new life.
            stalls = job.stalls if job.status is Status.DEAD else 0
            return Ending(Status.DEAD, reason=job.extras.reason, stalls=stalls)
        # A dead letter may have failed again; what it died of is the last failure before that.
        beyond = job.forgiven + 1 if is_dead_letter(job) else MAX_TIME
        errors, _ = errors_page(snapshot, key, beyond, True, 1)
        # The error's record may have been set aside.
        return Ending(Status.DEAD, error=errors[0] if errors else None)
    body = job.result
    if job.result_beside:
        body = snapshot.beside("results", [key])[key]
    return Ending(job.status, body)


def list_jobs(
    snapshot: Snapshot,
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
    query, conditions, parameters = snapshot.listing(name, filter, hide_purged_at=now)
    parameters |= {"after": after, "limit": limit, "skip": skip}
    return snapshot.whole(query, {"CONDITIONS": conditions}, **parameters)


def list_keys(snapshot: Snapshot, filter: Filter, after: int, upto: int, limit: int) -> list[int]:
    """Up to `limit` keys of matching jobs with ``after < key <= upto``, purged ones included."""
    query, conditions, parameters = snapshot.listing("list_keys", filter)
    parameters |= {"after": after, "upto": upto, "limit": limit}
    return snapshot.found(int, query, {"CONDITIONS": conditions}, **parameters)


def key_range(snapshot: Snapshot) -> tuple[int, int]:
    """The lowest and the highest key of a stored job; both 0 if there is none."""
    ((lowest, highest),) = snapshot.rows("key_range")
    return lowest, highest


def settings(snapshot: Snapshot, queue: str) -> QueueSettings:
    for text, stored in snapshot.rows("settings", queue=queue):
        return _decoded_settings(snapshot, queue, text, stored)
    return NO_SETTINGS


def all_settings(snapshot: Snapshot) -> dict[str, QueueSettings]:
    return {
        queue: _decoded_settings(snapshot, queue, text, stored)
        for queue, text, stored in snapshot.rows("all_settings")
    }


def _decoded_settings(
    snapshot: Snapshot, queue: str, text: str, stored: int | None
) -> QueueSettings:
    try:
        check_text("the row", text, stored)
        return _settings.decode(text)
    except (ChecksumMismatch, msgspec.MsgspecError) as error:
        raise snapshot.unreadable("queue_settings", [queue]) from error


def note(snapshot: Snapshot, name: str) -> str | None:
    """A text about the whole server, as `WriteNote` has stored it."""
    found = snapshot.value("note", name=name)
    return None if found is None else str(found)


def noted(snapshot: Snapshot, name: str, kind: type[T]) -> T | None:
    """A note that is JSON, as a value of its kind. One that is none is set aside."""
    text = note(snapshot, name)
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise snapshot.unreadable("notes", [name]) from error


def last_errors(snapshot: Snapshot, keys: Sequence[int]) -> dict[int, LastError]:
    """The latest failure of each job that has one."""
    found: dict[int, LastError] = {}
    with snapshot.reading_errors(keys):
        for key, signature, *texts, stored in snapshot.rows("last_errors", keys=list(keys)):
            if stored not in (None, checksum_of_all(*texts)):
                raise ChecksumMismatch
            found[key] = LastError(texts[0], texts[1], signature)
    return found


def count_jobs(snapshot: Snapshot, filter: Filter, now: int) -> int:
    """How many jobs match. The kept counts are much faster if they can answer: `is_counted`."""
    conditions, parameters = snapshot.where(filter, hide_purged_at=now, by_time=True)
    ((total,),) = snapshot.rows("count", {"CONDITIONS": conditions}, **parameters)
    return int(total)


def visible_counts(
    snapshot: Snapshot, now: int, queues: Sequence[str] | None = None
) -> Counter[tuple[str, Status]]:
    """Jobs by queue and status, without those whose retention is over. None means all queues."""
    query = "counts" if queues is None else "counts_of"
    stored = snapshot.found(tuple[str, Status, int], query, queues=list(queues or ()))
    purged = snapshot.found(tuple[str, Status, int], "purged_counts", now=now)
    counts = Counter({(queue, status): n for queue, status, n in stored})
    for queue, status, n in purged:
        if queues is None or (queue, status) in counts:
            counts[queue, status] -= n
    return counts


def oldest_ready(snapshot: Snapshot, queues: Sequence[str]) -> dict[str, int]:
    """When the longest waiting ready job became ready, for each queue that has one.

    As a rule that is a queue's first job. If it may be another, this looks at the first
    `OLDEST_DEPTH` jobs of each priority. That is exact unless so many of them were retried or
    promoted after a job behind them became ready. Of jobs that wait in lines, it looks at the
    first ones of the lines. Jobs that wait behind others of their groups are left out.
    """
    queues = list(queues)
    heads = snapshot.found(tuple[str, int, int], "ready_heads", queues=queues)
    found = {queue: ready_at for queue, ready_at, _ in heads}
    some = {"depth": OLDEST_DEPTH, "most": OLDEST_PRIORITIES}
    if doubtful := [queue for queue, _, is_oldest in heads if not is_oldest]:
        found |= dict(snapshot.found(tuple[str, int], "oldest_ready", queues=doubtful, **some))
    for queue, at in snapshot.found(tuple[str, int], "oldest_in_lines", queues=queues, **some):
        found[queue] = min(found.get(queue, at), at)
    return found


def due_between(snapshot: Snapshot, after: int, upto: int) -> DueDates:
    """How many dates there are after one moment and up to another."""
    (row,) = snapshot.rows("due_between", after=after, upto=upto)
    return DueDates(*row)


def leases(snapshot: Snapshot, reach: Reach, limit: int) -> list[JobRecord]:
    """The jobs whose leases end first, without large payloads."""
    conditions, parameters = snapshot.where(Filter(reach=reach))
    return snapshot.jobs("leases", {"CONDITIONS": conditions}, **parameters, limit=limit)


def errors_page(
    snapshot: Snapshot, key: int, after: int, descending: bool, limit: int
) -> tuple[list[ErrorRecord], bool]:
    """A page of a job's failures, which ends early if texts are large; true if more follow."""
    query = "errors_descending" if descending else "errors_ascending"
    records: list[ErrorRecord] = []
    total = 0
    place = {"key": key, "after": after, "limit": limit + 1}
    with snapshot.reading_errors([key]), snapshot.each(query, **place) as rows:
        for *values, stored in rows:
            record = msgspec.convert(values, ErrorRecord)
            if stored not in (None, error_checksum(record)):
                raise ChecksumMismatch
            total += record.weight
            if records and (len(records) == limit or total > PAGE_BYTES):
                return records, True
            records.append(record)
    return records, False


def payloads(snapshot: Snapshot, keys: Sequence[int]) -> dict[int, str]:
    """Large payloads by key. Deleted jobs are missing."""
    return snapshot.bodies("payloads", keys)


def results(snapshot: Snapshot, keys: Sequence[int]) -> dict[int, str]:
    """Large results by key. Deleted jobs are missing."""
    return snapshot.bodies("results", keys)
