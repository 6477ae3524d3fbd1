"""Counts the failures of a tick by their causes. A tick without failures does nothing here."""

from collections import Counter
from collections.abc import Sequence

from zq.model.failures import KEPT_MS, MOST_GROUPS, OTHER, OTHER_QUEUE, Cause
from zq.tick.work import UnitOfWork

Name = tuple[str, str]
"""The signature of a group, and a queue."""


def count_causes(work: UnitOfWork, failed: Sequence[tuple[Cause, str, int]]) -> None:
    """Count failures: the cause, the queue and the key of the job of each."""
    counts: Counter[Name] = Counter()
    causes: dict[Name, tuple[Cause, int]] = {}
    for cause, queue, key in failed:
        counts[cause.signature, queue] += 1
        causes[cause.signature, queue] = cause, key
    kept = _kept(work, list(counts))
    rows: list[tuple[object, ...]] = []
    others, sample = 0, 0
    for (signature, queue), n in counts.items():
        cause, key = causes[signature, queue]
        if (signature, queue) in kept:
            rows.append((signature, queue, cause.error_type, cause.message, n, key))
        else:
            others, sample = others + n, key
    if others:
        rows.append((OTHER, OTHER_QUEUE, None, OTHER, others, sample))
    work.tx.run("write_error_groups", groups=rows, now=work.now)


def _kept(work: UnitOfWork, names: Sequence[Name]) -> set[Name]:
    """Those of the groups that are counted by themselves: known ones, and new ones with room."""
    tx = work.tx
    known = {(signature, queue) for signature, queue in tx.table("known_error_groups", names=names)}
    new = [name for name in names if name not in known]
    if not new:
        return known
    room = MOST_GROUPS - tx.value("count_error_groups")
    if room < len(new):
        room += tx.run("forget_error_groups", before=work.now - KEPT_MS)
    return known | set(new[: max(room, 0)])
