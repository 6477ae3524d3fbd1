"""The tick's phase of what falls due by itself: promotions, purges."""

from collections.abc import Callable

from zq.model.commands import Due
from zq.model.lifecycle import Status
from zq.store.work import QUERIES, Work, as_json

SLICE = 1000
"""Jobs promoted or purged in one tick, so that acknowledgements pass between."""


def attend(work: Work, due: frozenset[Due]) -> None:
    """Do what is due, in the order of `Due`."""
    for kind in Due:
        if kind in due:
            _PHASES[kind](work)


def _promote(work: Work) -> None:
    """Make scheduled jobs ready whose time has come."""
    due = work.pairs(QUERIES["read_due"], now=work.now, limit=SLICE)
    if not due:
        return
    work.run("promote", keys=as_json([key for key, _ in due]))
    queues = [queue for _, queue in due]
    work.move(queues, Status.SCHEDULED, Status.READY)
    work.woken.update(queues)


def _purge(work: Work) -> None:
    """Delete finished jobs whose retention is over."""
    keys = work.keys(QUERIES["read_purgeable"], now=work.now, limit=SLICE)
    if keys:
        work.remove(work.briefs("read_briefs", keys))


_PHASES: dict[Due, Callable[[Work], None]] = {Due.PROMOTION: _promote, Due.PURGE: _purge}
