"""Moves: the one place where a stored job changes its state, with all consequences.

`zq.model.lifecycle.MOVES` says from which states to which states a move is legal. `TABLE` here says
what else it does. A caller decides that a job moves, names the move, and gives the rows of its
statement: `apply` does the rest. New jobs come from `zq.tick.intake`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from zq.model.events import EventType
from zq.model.job import INLINE_PAYLOAD, Brief, JobRecord, NewJob
from zq.model.lifecycle import MOVES, Move, Status
from zq.tick.work import UnitOfWork


class GroupChange(Enum):
    """The effect of a move on the head of the job's group."""

    SAME = "the job stays the head, or stays behind it"
    OPENS = "the job has ended as the head, so the next one opens"
    MIXED = "the head may be another one, and an open one may have to be shut"


class Consequences(NamedTuple):
    """The effects of a move besides the job's new state."""

    statements: Mapping[str, str]
    """The statement that writes the rows given under a name."""
    ends_lease: bool = False
    revokes: bool = False
    """True if the holder of the job must learn that it was taken away."""
    group: GroupChange = GroupChange.SAME
    lock: str | None = None
    """The statement that takes the job's unique key back at once, unless another has it by now."""
    regains: bool = False
    """True if the job waits again, and takes its unique key back at the end of the phase."""
    wakes: bool = False
    """True if claims of its queue may find more jobs than before."""
    retimes: bool = False
    """True if the job may fall due sooner than was known."""
    news: EventType | None = None
    tally: tuple[str, ...] = ()
    traffic: str | None = None


# fmt: off
TABLE: dict[Move, Consequences] = {
    # A time to live may begin and end at once.
    Move.PROMOTE: Consequences({"keys": "promote"}, wakes=True, retimes=True),
    Move.PATCH: Consequences({"changes": "change"}, lock="restore_moved_locks", wakes=True),
    Move.TAKE: Consequences({"holders": "take", "leases": "take_on_terms",
        "holders_from_lines": "take_from_lines", "leases_from_lines": "take_on_terms_from_lines"},
        tally=("delivered",), traffic="delivered"),
    Move.RETURN: Consequences({"holders": "give_back"}, ends_lease=True,
        group=GroupChange.MIXED, regains=True, wakes=True, retimes=True,
        tally=("returned",)),
    Move.RELEASE: Consequences({"times": "release"}, ends_lease=True,
        group=GroupChange.MIXED, regains=True, wakes=True, retimes=True,
        tally=("returned",)),
    Move.STALL: Consequences({"keys": "stall"}, ends_lease=True,
        group=GroupChange.MIXED, regains=True, wakes=True, retimes=True,
        news=EventType.STALLED, tally=("returned", "stalled")),
    Move.RESUME: Consequences({"claimants": "resume"}),
    Move.FAIL: Consequences({"verdicts": "fail"}, ends_lease=True,
        group=GroupChange.MIXED, regains=True, retimes=True,
        news=EventType.RETRYING, tally=("retried",)),
    Move.SUCCEED: Consequences({"purges": "complete", "completions": "complete_with_results"},
        ends_lease=True, group=GroupChange.OPENS,
        news=EventType.COMPLETED, tally=("completed",), traffic="completed"),
    Move.BURY: Consequences({"graves": "bury"}, ends_lease=True, group=GroupChange.MIXED,
        news=EventType.FAILED, tally=("died",)),
    Move.REVIVE: Consequences({"revivals": "revive"}, ends_lease=True,
        group=GroupChange.MIXED, lock="restore_all_locks", wakes=True, retimes=True,
        news=EventType.ENQUEUED),
    Move.EXPIRE: Consequences({"ends": "expire"}, group=GroupChange.MIXED,
        news=EventType.EXPIRED, tally=("expired",)),
    Move.CANCEL: Consequences({"ends": "cancel"}, group=GroupChange.MIXED,
        news=EventType.CANCELLED),
    Move.FORCE: Consequences({"ends": "cancel_by_force"}, ends_lease=True, revokes=True,
        group=GroupChange.MIXED, news=EventType.CANCELLED),
    Move.UNDO: Consequences({"restored": "undo"}, group=GroupChange.MIXED,
        lock="restore_all_locks", wakes=True, retimes=True, news=EventType.ENQUEUED),
}
# fmt: on


def _only(found: Iterable[Status]) -> Status | None:
    """The only one of them; None if there are several."""
    first, *others = set(found)
    return None if others else first


_ROWS = {
    move: (does, _only(MOVES[move]), _only(end for ends in MOVES[move].values() for end in ends))
    for move, does in TABLE.items()
}
"""Each row of the table with the single state from which, and to which, the move leads."""


def apply(
    work: UnitOfWork,
    move: Move,
    jobs: Sequence[Brief | JobRecord],
    *,
    to: Status | None = None,
    after: Sequence[Brief | JobRecord] | None = None,
    gone: Sequence[Brief] = (),
    **rows: Collection[Any],
) -> None:
    """Move jobs by the statements that write the rows. Jobs in `gone` are deleted instead.

    `jobs` are as before the move, except for a queue and a status that follow from a single source.
    If they move to different queues or states, `after` has them as they are then. If the table
    leaves the state open, `to` gives it. The transaction fails unless all jobs are in a state from
    which the move is legal.
    """
    does, source, target = _ROWS[move]
    everyone = [*jobs, *gone] if gone and jobs else (jobs or gone)
    if not everyone:
        return
    for hook in work.hooks.moves[move]:
        hook(work, everyone, after)
    if hooks := work.hooks.moves_with_extras[move]:
        # Every claim comes here.
        some = [
            job for job in everyone if (job.extras if isinstance(job, JobRecord) else job.batched)
        ]
        if some:
            for hook in hooks:
                hook(work, some, after)
    times = {"now": work.now, "steady": work.steady}
    for name, values in rows.items():
        if values:
            work.tx.write(does.statements[name], len(values), **{name: values}, **times)
    if jobs:
        if after is not None:
            _count_apart(work, jobs, after)
        else:
            end = target if to is None else to
            assert end is not None
            _count_together(work, does, jobs, source, end)
        if does.ends_lease:
            end_leases(work, jobs)
        if does.group is not GroupChange.SAME:
            note_groups(work, jobs, does.group)
            if after is not None:
                note_groups(work, after, does.group)
        if does.lock or does.regains:
            unique = [job.key for job in jobs if job.unique_key is not None]
            if does.regains:
                work.regaining += unique
            elif does.lock and unique:
                work.tx.write(does.lock, keys=unique)
    if does.revokes:
        revoke(work, everyone)
    if gone:
        remove(work, gone)
        if does.traffic is not None:
            work.effects.traffic.append((does.traffic, Counter([job.queue for job in gone])))
    work.retimed |= does.retimes
    _tell(work, does, everyone if after is None else after)


def tell(work: UnitOfWork, move: Move, jobs: Sequence[Brief | JobRecord]) -> None:
    """Report a move to listeners and counters. No `attempts` may change afterwards."""
    _tell(work, TABLE[move], jobs)


def _tell(work: UnitOfWork, does: Consequences, jobs: Sequence[Brief | JobRecord]) -> None:
    if does.news is not None and jobs:
        work.effects.news.append((does.news, jobs))
    for name in does.tally:
        setattr(work.effects.tally, name, getattr(work.effects.tally, name) + len(jobs))


def remove(work: UnitOfWork, jobs: Sequence[Brief], *, revokes: bool = False) -> None:
    """Delete jobs with all their data."""
    if not jobs:
        return
    tx = work.tx
    tx.write("delete_jobs", keys=[job.key for job in jobs])
    # A usual job in flight was deleted without this: nothing of it is stored apart.
    if unusual := [job for job in jobs if job.payload_size]:
        if beside := [job.key for job in unusual if job.payload_size > INLINE_PAYLOAD]:
            tx.write("delete_payloads", keys=beside)
        if results := [job.key for job in unusual if (job.result_size or 0) > INLINE_PAYLOAD]:
            tx.write("delete_results", keys=results)
        if failed := [job.key for job in unusual if job.attempts]:
            tx.write("delete_errors", keys=failed)
        for hook in work.hooks.removed:
            hook(work, unusual)
        note_groups(work, unusual, GroupChange.OPENS)
    for (queue, status), n in Counter([(job.queue, job.status) for job in jobs]).items():
        work.counts[queue, status] -= n
    end_leases(work, jobs)
    if work.has_lines:
        work.lines.note_together(jobs, None, None, work.now)
    if revokes:
        revoke(work, jobs)


def end_leases(work: UnitOfWork, jobs: Iterable[Brief | JobRecord]) -> None:
    """Note that these jobs have no holder any more."""
    work.effects.ended += [(job.holder, job.key) for job in jobs if job.holder is not None]


def revoke(work: UnitOfWork, jobs: Iterable[Brief | JobRecord]) -> None:
    """Note that jobs were taken from their holders. `end_leases` is included."""
    work.effects.revoked += [job.key for job in jobs if job.holder is not None]


def note_groups(
    work: UnitOfWork, jobs: Iterable[Brief | JobRecord | NewJob], change: GroupChange
) -> None:
    """Have the heads of the jobs' groups checked, for jobs with a group."""
    for name in [(job.queue, job.group) for job in jobs if job.group is not None]:
        if change is GroupChange.MIXED:
            work.groups[name] = True
        else:
            work.groups.setdefault(name, False)


def _count_together(
    work: UnitOfWork,
    does: Consequences,
    jobs: Sequence[Brief | JobRecord],
    source: Status | None,
    end: Status,
) -> None:
    """Count jobs that move to one state, each in its queue, and report how many of each queue."""
    if work.has_lines:
        work.lines.note_together(jobs, source, end, work.now)
    counts = work.counts
    moved = Counter([job.queue for job in jobs])
    if source is None:
        for place, n in Counter([(job.queue, job.status) for job in jobs]).items():
            counts[place] -= n
    for queue, n in moved.items():
        if source is not None:
            counts[queue, source] -= n
        counts[queue, end] += n
    if does.wakes:
        work.effects.woken.update(moved)
    if does.traffic is not None:
        work.effects.traffic.append((does.traffic, moved))


def _count_apart(
    work: UnitOfWork, jobs: Sequence[Brief | JobRecord], after: Sequence[Brief | JobRecord]
) -> None:
    """Count jobs that each move to a queue and a state of their own."""
    for old, new in zip(jobs, after, strict=True):
        work.counts[old.queue, old.status] -= 1
        work.counts[new.queue, new.status] += 1
        if new.status is Status.READY:
            work.effects.woken.add(new.queue)
        if old.queue != new.queue:
            note_groups(work, (old, new), GroupChange.MIXED)
        if work.has_lines:
            work.lines.note(old, old.status, new.status, new.queue, work.now, moves=True)
