"""The tick: one transaction for everything that waits.

Order: settlements, returns, changes, enqueues, what falls due, heads of groups, claims, COMMIT.
Everything in a tick was pending together, so any serial order is a correct one; claims come last,
so that a job can be stored and handed to a waiting worker by one commit.
"""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, get_args

import msgspec

from zq.model.commands import (
    Claim,
    Command,
    Enqueue,
    Extend,
    Fail,
    Release,
    Return,
    Succeed,
    Tick,
    TickResult,
)
from zq.model.errors import Internal, StorageFull
from zq.model.job import Job
from zq.model.lifecycle import TERMINAL, Status
from zq.model.settling import Policy
from zq.store.change import AnyChange, apply_changes
from zq.store.claim import claim
from zq.store.connection import begin, is_full, stops_the_server
from zq.store.due import attend
from zq.store.enqueue import enqueue
from zq.store.gates import Gates
from zq.store.groups import turn_heads
from zq.store.leases import extend, give_back, release
from zq.store.rulebook import read_rulebook
from zq.store.settle import fail, succeed
from zq.store.slices import SLICE_ROWS, Commit, Sliced, by_slices, claim_parts, exhaust
from zq.store.work import Work

log = logging.getLogger(__name__)

RESERVED_KEYS = 1000 << 20
"""How far ahead of the last key the stored high-water mark is set: a second's worth of keys, so
that it is written once a second and not once a tick."""

STORAGE_FULL = (
    "no space left on the disk; acknowledgements still pass, new jobs when there is space"
)

LARGE_COMMIT = 4096
"""Rows from which on a COMMIT writes for so long that the event loop does not wait for it."""

Phase = Callable[[Work, Sequence[Any]], Sliced[list[object]]]

PHASES: dict[Phase, tuple[type, ...]] = {
    by_slices(succeed): (Succeed,),
    by_slices(fail): (Fail,),
    by_slices(extend): (Extend,),
    by_slices(release): (Release,),
    by_slices(give_back): (Return,),
    by_slices(apply_changes): get_args(AnyChange),
    enqueue: (Enqueue,),
}
"""What each phase is for, in their order."""

_PHASE_OF = {kind: phase for phase, kinds in PHASES.items() for kind in kinds}


class TickRunner:
    """Runs ticks on the writer's connection."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        policy: Policy,
        random: Random,
        high_water: int,
        device: str | None = None,
    ) -> None:
        """`device` is whose history is kept; None where none is."""
        self._connection = connection
        self._rulebook = read_rulebook(connection, policy)
        self._gates = Gates()
        self._random = random
        self._high_water = high_water
        self._device = device

    def run(self, tick: Tick) -> TickResult:
        """Apply a tick and commit it, in one go."""
        return exhaust(self.slices(tick))

    def slices(self, tick: Tick) -> Sliced[TickResult]:
        """Apply a tick and commit it; whoever runs it may do something else between two slices.

        Nothing else may use the connection meanwhile.

        Where a statement or a decision raises, nothing of the transaction is kept; the commands run
        again one by one, and only those that raise fail. Where the disk is full, only the enqueues
        fail. Any other error of the disk is raised on: what it has left there is unknown; and so is
        an error without a command, which would only come again.
        """
        try:
            return (yield from self._commit(tick, self._apply_together))
        except Exception as error:
            if not tick.commands or (isinstance(error, sqlite3.Error) and stops_the_server(error)):
                raise
            # The claims counted on settlements that may fail now; the next tick makes them.
            again = msgspec.structs.replace(tick, claims=())
            if isinstance(error, sqlite3.Error) and is_full(error):
                log.warning("the disk is full: new jobs are refused")
                return (yield from self._commit(again, self._apply_without_enqueues))
            log.error("a tick failed, its commands run again one by one", exc_info=error)
            return (yield from self._commit(again, self._apply_singly))

    def _commit(
        self, tick: Tick, apply: Callable[[Work, Sequence[Command]], Sliced[list[object]]]
    ) -> Sliced[TickResult]:
        connection = self._connection
        wait = begin(connection)
        if wait is not None:
            yield wait
        try:
            work = Work(
                connection,
                tick.now,
                tick.steady,
                self._rulebook,
                self._random,
                self._device,
                tick.workers,
            )
            replies = yield from apply(work, tick.commands)
            if tick.due:
                attend(work, tick.due)
                yield None
            turn_heads(work)
            claimed = []
            for wanted in tick.claims:
                jobs = yield from self._claim(work, wanted, tick.monotonic)
                claimed.append(jobs)
            # Claims may have set heads aside that cannot be read.
            turn_heads(work)
            high_water = self._raise_high_water(work)
            work.write_counts()
            result = _result(work, tick, replies, claimed)
            if result.rows < LARGE_COMMIT:
                connection.execute("COMMIT")
            else:
                yield Commit(connection.execute, "COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._high_water = high_water
        self._rulebook = work.rulebook
        result.openings = self._gates.learn(work, tick.monotonic)
        return result

    def _apply_together(self, work: Work, commands: Sequence[Command]) -> Sliced[list[object]]:
        chosen: dict[Phase, list[int]] = {phase: [] for phase in PHASES}
        for index, command in enumerate(commands):
            chosen[_PHASE_OF[type(command)]].append(index)
        replies: dict[int, object] = {}
        for phase, indexes in chosen.items():
            if indexes:
                answers = yield from phase(work, [commands[index] for index in indexes])
                replies.update(zip(indexes, answers, strict=True))
        return [replies[index] for index in range(len(commands))]

    def _apply_without_enqueues(
        self, work: Work, commands: Sequence[Command]
    ) -> Sliced[list[object]]:
        kept = [command for command in commands if not isinstance(command, Enqueue)]
        replies = iter((yield from self._apply_together(work, kept)))
        return [
            StorageFull(STORAGE_FULL) if isinstance(command, Enqueue) else next(replies)
            for command in commands
        ]

    def _apply_singly(self, work: Work, commands: Sequence[Command]) -> Sliced[list[object]]:
        replies = []
        for command in commands:
            reply = yield from self._apply_one(work, command)
            replies.append(reply)
        return replies

    def _apply_one(self, work: Work, command: Command) -> Sliced[object]:
        part = work.part()
        self._connection.execute("SAVEPOINT one")
        try:
            (reply,) = yield from self._apply_together(part, [command])
            part.write_counts()
        except Exception as error:
            # Some errors of the disk have rolled the whole transaction back already.
            if not self._connection.in_transaction:
                raise
            self._connection.execute("ROLLBACK TO one")
            self._connection.execute("RELEASE one")
            if isinstance(error, sqlite3.Error) and stops_the_server(error):
                raise
            log.error("a command failed", exc_info=error)
            return Internal()
        self._connection.execute("RELEASE one")
        work.absorb(part)
        return reply

    def _claim(self, work: Work, wanted: Claim, monotonic: float) -> Sliced[list[Job]]:
        jobs: list[Job] = []
        for part in claim_parts(wanted, SLICE_ROWS):
            found = claim(work, part, self._gates, monotonic)
            jobs += found
            if len(found) < part.limit:
                break
            yield None
        return jobs

    def _raise_high_water(self, work: Work) -> int:
        if work.highest_key <= self._high_water:
            return self._high_water
        high_water = work.highest_key + RESERVED_KEYS
        work.run("raise_high_water", key=high_water)
        return high_water


def _result(work: Work, tick: Tick, replies: list[object], claimed: list[list[Job]]) -> TickResult:
    return TickResult(
        replies=replies,
        ended=work.ended,
        cancelled=work.cancelled,
        revoked=work.revoked,
        lapsed=work.lapsed,
        buried=work.buried,
        expired=work.expired,
        claimed=claimed,
        woken=work.woken,
        left=work.left,
        deadlines=work.deadlines() if _moves_deadlines(work, tick) else None,
        logged=work.logged,
        rows=work.rows,
        tally=work.tally,
        traffic=work.traffic_seen,
        news=work.news,
        misfits=work.misfits,
    )


def _moves_deadlines(work: Work, tick: Tick) -> bool:
    timed = TERMINAL | {Status.SCHEDULED}
    retimed = work.moves_deadlines or work.retimed
    return retimed or not timed.isdisjoint(work.moved) or bool(tick.due)
