"""The tick's phase for deadlines: leases, expiries, promotions, purges, names, logs, and so on."""

from collections.abc import Callable

from zq.model.commands import Due
from zq.model.lifecycle import Move
from zq.store.api import Sliced
from zq.tick.finish import expire
from zq.tick.leases import lapse
from zq.tick.logs import trim_logs
from zq.tick.moves import apply, remove
from zq.tick.settings import end_pauses
from zq.tick.work import UnitOfWork

SLICE = 500
"""At most so many jobs expire, are promoted or are purged in one tick, and so many names are
forgotten. Acknowledgements pass between two ticks."""

DUE_WINDOW = 10_000
"""Of so many jobs that are due for the longest time, the most urgent ones are promoted first. If
there are so many, the search takes about 3 ms."""


def attend(work: UnitOfWork, due: frozenset[Due]) -> Sliced[None]:
    """Do what is due, in the order of `Due`."""
    if Due.LEASE in due:
        yield from lapse(work, SLICE)
    for kind in Due:
        if kind in due:
            for attend_to in (*_OWN.get(kind, ()), *work.hooks.due[kind]):
                attend_to(work)


def _expire(work: UnitOfWork) -> None:
    """Expire jobs that nobody took in time. Claims look again, since there may be more of them."""
    keys = work.tx.keys("read_lapsed", now=work.steady, limit=SLICE)
    lapsed = work.tx.briefs("read_briefs", keys=keys)
    expire(work, lapsed)
    work.effects.woken.update([job.queue for job in lapsed])
    work.retimed = True


def _promote(work: UnitOfWork) -> None:
    """Make scheduled jobs ready whose date has come."""
    name = "read_due_briefs" if work.has_lines else "read_due"
    due = work.tx.briefs(name, now=work.now, window=DUE_WINDOW, limit=SLICE)
    apply(work, Move.PROMOTE, due, keys=[job.key for job in due])


def _end_waits(work: UnitOfWork) -> None:
    """Make scheduled jobs ready that have waited for long enough."""
    name = "read_waited_briefs" if work.has_lines else "read_waited"
    due = work.tx.briefs(name, now=work.steady, window=DUE_WINDOW, limit=SLICE)
    apply(work, Move.PROMOTE, due, keys=[job.key for job in due])


def _purge(work: UnitOfWork) -> None:
    """Delete finished jobs whose retention is over."""
    keys = work.tx.keys("read_purgeable", now=work.steady, limit=SLICE)
    if keys:
        remove(work, work.tx.briefs("read_briefs", keys=keys))


def _forget_names(work: UnitOfWork) -> None:
    """Forget names by which jobs are no longer recognised."""
    work.tx.write("forget_names", now=work.steady, limit=SLICE)


def _resume(work: UnitOfWork) -> None:
    """End pauses whose time is over."""
    end_pauses(work, SLICE)


_OWN: dict[Due, tuple[Callable[[UnitOfWork], None]]] = {
    Due.EXPIRY: (_expire,),
    Due.PROMOTION: (_promote,),
    Due.WAIT: (_end_waits,),
    Due.PURGE: (_purge,),
    Due.NAMES: (_forget_names,),
    Due.TRIM: (trim_logs,),
    Due.PAUSE: (_resume,),
}
