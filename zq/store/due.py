"""The tick's phase of what falls due: leases, expiries, promotions, purges, names, logs."""

from collections.abc import Callable

from zq.model.commands import Due
from zq.model.lifecycle import Status
from zq.store.finish import expire
from zq.store.leases import lapse
from zq.store.log import trim_logs
from zq.store.work import QUERIES, Work, as_json

SLICE = 500
"""Jobs that expire, are promoted or purged, or names forgotten, in one tick, so that
acknowledgements pass between."""


def attend(work: Work, due: frozenset[Due]) -> None:
    """Do what is due, in the order of `Due`."""
    for kind in Due:
        if kind in due:
            _PHASES[kind](work)


def _expire(work: Work) -> None:
    """End jobs that nobody took in time. Claims go on from here: there may be more of them."""
    keys = work.keys(QUERIES["read_lapsed"], now=work.now, limit=SLICE)
    lapsed = work.briefs("read_briefs", keys)
    expire(work, lapsed)
    work.woken.update([job.queue for job in lapsed])
    work.retimed = True


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


def _lapse(work: Work) -> None:
    """Take jobs from those who are no longer heard of."""
    lapse(work, SLICE)


def _forget_names(work: Work) -> None:
    """Forget names by which jobs are no longer recognised."""
    work.run("forget_names", now=work.now, limit=SLICE)


_PHASES: dict[Due, Callable[[Work], None]] = {
    Due.LEASE: _lapse,
    Due.EXPIRY: _expire,
    Due.PROMOTION: _promote,
    Due.PURGE: _purge,
    Due.NAMES: _forget_names,
    Due.TRIM: trim_logs,
}
