"""Counts the failures of a tick by their causes. A tick without failures does nothing here."""

from collections.abc import Collection, Sequence
from operator import itemgetter

from zq.features.failures.model import (
    COUNTED_MS,
    KEPT_MS,
    MOST_GROUPS,
    MOST_TYPES,
    OTHER,
    OTHER_QUEUE,
    Cause,
    cause_of,
)
from zq.model.job import JobRecord
from zq.model.settling import Failure
from zq.tick.hooks import FailedAttempt, Hooks, Options
from zq.tick.work import UnitOfWork

Name = tuple[str, str]
"""The signature of a group, and a queue."""


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """Counts of failures by their causes, whose signatures their records have."""
    return Hooks(failed=_count, signature=_signature, cleared=_clear)


def _signature(failure: Failure) -> str:
    return cause_of(failure.error_type, failure.message).signature


def _clear(work: UnitOfWork, settings: bool) -> None:
    """Forget all groups if the settings go as well: they tell of the past, not of jobs."""
    if settings:
        work.tx.write("clear_error_groups")
        work.tx.write("clear_failure_counts")


def _count(work: UnitOfWork, failed: Sequence[FailedAttempt]) -> None:
    jobs: dict[Name, list[JobRecord]] = {}
    causes: dict[Name, Cause] = {}
    for job, _, failure in failed:
        cause = cause_of(failure.error_type, failure.message)
        jobs.setdefault((cause.signature, job.queue), []).append(job)
        causes[cause.signature, job.queue] = cause
    kept = _kept(work, list(jobs))
    rows: list[tuple[object, ...]] = []
    others, sample = 0, 0
    for name, those in jobs.items():
        cause, n, key = causes[name], len(those), those[-1].key
        if name in kept:
            types = sorted({job.type for job in those})[:MOST_TYPES]
            rows.append((*name, cause.error_type, cause.message, n, key, types))
        else:
            others, sample = others + n, key
    if others:
        rows.append((OTHER, OTHER_QUEUE, None, OTHER, others, sample, ()))
    # Servers that share the store lock the rows of groups in one order.
    rows.sort(key=itemgetter(0, 1))
    work.tx.write("write_error_groups", groups=rows, now=work.now, most_types=MOST_TYPES)
    work.tx.write("write_failure_counts", groups=rows, now=work.now, lengths=list(COUNTED_MS))


def forget_old_counts(work: UnitOfWork, lengths: Collection[int]) -> None:
    """Delete the oldest counts of these lengths that are too old, those of one time each."""
    for length in COUNTED_MS.keys() & lengths:
        kept = COUNTED_MS[length]
        work.tx.write("forget_failure_counts", length=length, before=work.now - kept)


def _kept(work: UnitOfWork, names: Sequence[Name]) -> set[Name]:
    """The groups that are counted by themselves: known ones, and new ones with room."""
    tx = work.tx
    known = {(signature, queue) for signature, queue in tx.table("known_error_groups", names=names)}
    new = [name for name in names if name not in known]
    if not new:
        return known
    room = MOST_GROUPS - tx.value("count_error_groups")
    if room < len(new):
        room += tx.run("forget_error_groups", before=work.now - KEPT_MS)
    return known | set(new[: max(room, 0)])
