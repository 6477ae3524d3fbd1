"""The tick: one transaction for everything that waits.

The order is: commands in the stages of `zq.tick.phases`, deadlines, heads of groups, claims,
COMMIT. Claims come last, so that one commit can store a job and hand it to a waiting worker.
"""

import logging
from collections.abc import Callable, Sequence
from functools import cache, partial
from random import Random
from types import FunctionType
from typing import get_args

import msgspec

from zq.model.commands import (
    AnyCommand,
    Claim,
    Enqueue,
    EnqueueResult,
    Extend,
    Fail,
    NoteResidents,
    Release,
    Return,
    Succeed,
    Tick,
    TickResult,
)
from zq.model.errors import StorageFull, unexpected
from zq.model.job import JobRecord, show_dates
from zq.model.settling import Policy
from zq.rooms import parts
from zq.store.api import LongCommit, MakeTicks, Sliced, Ticks, Transaction, Transactions, exhaust
from zq.store.errors import StoreBusy, StoreDamaged, StoreFailed, StoreFull
from zq.tick.change import AnyChange, apply_changes
from zq.tick.claim import claim
from zq.tick.due import attend
from zq.tick.gates import Gates
from zq.tick.hooks import HookTable, Options
from zq.tick.intake import enqueue
from zq.tick.leases import extend, give_back, note_residents, release
from zq.tick.phases import Apply, Phase, PhaseTable, Stage
from zq.tick.rulebook import Rulebook
from zq.tick.settle import fail, succeed
from zq.tick.slices import SLICE_ROWS, by_slices, claim_parts
from zq.tick.work import UnitOfWork

log = logging.getLogger(__name__)

RESERVED_KEYS = 1000 << 20
"""The stored high-water mark is this far ahead of the last key: a second's worth of keys. So it is
written once a second, not once a tick."""

STORAGE_FULL = "no space left on the disk, or in a quota: new jobs are refused until there is some"

NO_OPTIONS: Options = {}

MENDS_MS = 60_000
"""So long after it has found nothing to mend, a failing tick does not look again."""

LARGE_COMMIT = 4096
"""A COMMIT of this many rows or more takes so long that the event loop does not wait for it."""

PHASES = (
    Phase(Stage.SETTLE, by_slices(succeed), (Succeed,)),
    Phase(Stage.SETTLE, by_slices(fail), (Fail,)),
    Phase(Stage.RETURN, by_slices(extend), (Extend,)),
    Phase(Stage.RETURN, by_slices(release), (Release,)),
    Phase(Stage.RETURN, by_slices(give_back), (Return,)),
    Phase(Stage.RETURN, by_slices(note_residents), (NoteResidents,)),
    Phase(Stage.CHANGE, by_slices(apply_changes), get_args(AnyChange)),
    Phase(Stage.ENQUEUE, enqueue, (Enqueue,)),
)
"""The phases of the life of a job."""


@cache
def all_phases() -> PhaseTable:
    """The runner's phases, and those that rooms bring."""
    brought = [phase for phases in parts("tick", "PHASES", tuple) for phase in phases]
    return PhaseTable([*PHASES, *brought])


def all_hooks(options: Options) -> HookTable[UnitOfWork]:
    return HookTable([hooks(options) for hooks in parts("tick", "hooks", FunctionType)])


def make_ticks(policy: Policy, random: Random, options: Options = NO_OPTIONS) -> MakeTicks:
    """Make the function that makes a store's ticks. `options` are what rooms are told."""

    def ticks(transactions: Transactions, last_key: int) -> Ticks:
        return TickRunner(transactions, policy, random, last_key, options).slices

    return ticks


class TickRunner:
    """Runs ticks, one transaction after the other."""

    def __init__(
        self,
        transactions: Transactions,
        policy: Policy,
        random: Random,
        high_water: int,
        options: Options = NO_OPTIONS,
    ) -> None:
        """`high_water` is the highest key so far. `options` are what rooms are told."""
        self._transactions = transactions
        self._hooks = all_hooks(options)
        self._rulebook = self._read_rules(transactions(0), policy)
        self._version = transactions(0).version()
        self._phases = all_phases()
        self._gates = Gates()
        self._holds = self._hooks.holds
        self._hooks.lines.learn(transactions(0), self._rulebook.aging)
        for hold in self._holds:
            hold.learn(transactions(0))
        self._random = random
        self._high_water = high_water
        self._mended: Transaction | None = None
        """One that has set rows aside. The next commit tells of them."""
        self._mends_at = 0
        """The steady time before which nothing is mended again."""
        self._spares = False
        """Set once a page could not be read: see `Transaction.spare`."""

    def run(self, tick: Tick) -> TickResult:
        """Apply a tick and commit it in one go."""
        return exhaust(self.slices(tick))

    def slices(self, tick: Tick) -> Sliced[TickResult]:
        """Apply a tick and commit it. The caller may do other work between two slices.

        Nothing else may use the connection meanwhile.

        If a statement or a decision raises, nothing of the transaction is kept. If rows that the
        disk has changed may be the cause, they are set aside, and the tick runs again. Otherwise
        the commands run again one by one, and only those that raise fail. If the disk is full, only
        the enqueues fail. At the first damaged page the tick runs again, and leaves what lies
        beside deleted jobs where it is, as later ticks do. Any other error of the disk is raised,
        since the state on the disk is unknown. So is an error without a command, since it would
        come again, and a lock of another program.
        """
        try:
            return (yield from self._commit(tick, self._apply_together))
        except StoreDamaged as error:
            if self._spares:
                raise
            log.error(
                "a page is damaged: what lies beside deleted jobs is left there", exc_info=error
            )
            self._spares = True
            return (yield from self._commit(tick, self._apply_together))
        except Exception as error:
            if not isinstance(error, StoreFailed | StoreBusy | StoreFull) and (
                yield from self._mend(tick)
            ):
                return (yield from self.slices(tick))
            if not tick.commands or isinstance(error, StoreFailed | StoreBusy):
                raise
            # The claims counted on settlements that may fail now. The next tick makes them.
            again = msgspec.structs.replace(tick, claims=())
            if isinstance(error, StoreFull):
                log.warning("the disk is full: new jobs are refused")
                return (yield from self._commit(again, self._apply_without_enqueues))
            log.error("a tick failed, its commands run again one by one", exc_info=error)
            return (yield from self._commit_singly(again))

    def _mend(self, tick: Tick) -> Sliced[bool]:
        """Set aside rows with which no tick can go on. Return whether there were any.

        The event loop does not wait for the look at all these tables. After it has found none, it
        does not look again for some time.
        """
        if tick.steady < self._mends_at:
            return False
        tx = self._transactions(tick.now)
        try:
            tx.begin()
            yield tx.mend
            # A tick that failed for another reason is to leave lines and counts as they are.
            (tx.commit if tx.misfits else tx.roll_back)()
        except BaseException as error:
            tx.roll_back()
            if not isinstance(error, Exception):
                raise
            log.error("what the disk may have changed cannot be mended", exc_info=error)
            tx.misfits = []
        if not tx.misfits:
            self._mends_at = tick.steady + MENDS_MS
            return False
        if self._mended is not None:
            tx.misfits += self._mended.misfits
            tx.removed += self._mended.removed
        self._mended = tx
        self._reread_settings(self._transactions(tick.now))
        return True

    def _commit_singly(self, tick: Tick) -> Sliced[TickResult]:
        """Commit a tick in which only those commands fail that raise."""
        try:
            return (yield from self._commit(tick, self._apply_singly))
        except Exception as error:
            if not tick.due or isinstance(error, StoreFailed | StoreBusy):
                raise
        # What is due has failed. It is left to ticks without commands, which say so.
        tick = msgspec.structs.replace(tick, due=frozenset())
        return (yield from self._commit(tick, self._apply_singly))

    def _commit(
        self, tick: Tick, apply: Callable[[UnitOfWork, Sequence[AnyCommand]], Sliced[list[object]]]
    ) -> Sliced[TickResult]:
        tx = self._transactions(tick.now)
        if self._spares:
            tx.spare()
        tx.begin()
        try:
            if tx.version() != self._version:
                self._reread_settings(tx)
            for hold in self._holds:
                if hold.is_used:
                    hold.begin(tx, tick.steady)
            work = UnitOfWork(
                *(tx, tick.now, tick.steady, self._rulebook),
                *(self._random, self._hooks, tick.workers, tick.mint),
                partial(claim, gates=self._gates, monotonic=tick.monotonic),
            )
            if self._mended is not None:
                tx.misfits += self._mended.misfits
                tx.removed += self._mended.removed
            replies = (yield from apply(work, tick.commands)) if tick.commands else []
            if tick.due:
                yield from attend(work, tick.due)
                yield None
            is_long = tx.rows > SLICE_ROWS and work.is_long
            if is_long:
                # After one bulk thousands of groups and lines may have new heads.
                yield work.open_heads
            if work.lines.is_astray:
                work.open_heads()
                work.lines.lead(tx, work.rulebook.aging)
            if tick.claims:
                work.open_heads()
            claimed = []
            for wanted in tick.claims:
                jobs = yield from self._claim(work, wanted, tick.monotonic)
                claimed.append(jobs)
                if len(claimed) < len(tick.claims):
                    yield None
            if self._gates.in_use:
                self._gates.store(work, tick.monotonic)
            if tick.mark is not None:
                tx.write("note_clock", mark=tick.mark)
            high_water = self._high_water
            if work.highest_key > high_water:
                high_water = work.highest_key + RESERVED_KEYS
                tx.write("raise_high_water", key=high_water)
            # Claims may have found unreadable heads and set them aside.
            # Holds write what the lines of before have changed.
            result: TickResult
            if is_long or (tx.rows > SLICE_ROWS and work.is_long):
                result = yield work.finish
            else:
                result = work.finish()
            if not tx.is_alone:
                self._tell_others(work, result)
            result.replies, result.claimed = replies, claimed
            _show_dates(result, tick.steady - tick.now)
            result.durable = tick.durable or result.promised
            if work.wanted:
                result.found = {name: tx.value(name) for name in work.wanted}
            deadlines = tx.ask_deadlines() if work.retimed or tick.due else None
            if result.rows < LARGE_COMMIT:
                tx.commit(result.durable)
            else:
                yield LongCommit(tx.commit, result.durable)
            if deadlines is not None:
                result.deadlines = deadlines()
        except BaseException:
            self._hooks.lines.forget()
            for hold in self._holds:
                hold.roll_back()
            for forget in self._hooks.undone:
                forget()
            tx.roll_back()
            self._gates.forget()
            raise
        for hold in self._holds:
            if hold.is_used:
                hold.commit()
        self._mended = None
        self._high_water = high_water
        self._rulebook = work.rulebook
        if self._gates.in_use:
            result.openings = self._gates.learn(work, tick.monotonic)
            if not tx.is_alone:
                self._gates.forget_places()
        return result

    def _tell_others(self, work: UnitOfWork, result: TickResult) -> None:
        """Tell servers that share the store what they have to read again, and what they have lost.

        A claim past gates pays rates and fills places, and jobs that are held leave lines.
        """
        book = work.rulebook
        if (
            book is not self._rulebook
            or work.has_lines
            or self._gates.in_use
            or (not book.is_empty and book.has_gates)
        ):
            work.tx.note_memory()
        work.tx.tell(result)

    def _read_rules(self, tx: Transaction, server: Policy) -> Rulebook:
        return Rulebook(server, tx.settings(), self._hooks.leaving(tx))

    def _reread_settings(self, tx: Transaction) -> None:
        """Adopt the stored settings, whoever has set them. Unreadable settings change nothing."""
        try:
            self._rulebook = self._read_rules(tx, self._rulebook.server)
        except msgspec.MsgspecError as error:
            log.error("settings of queues cannot be read: those from before hold", exc_info=error)
        self._hooks.lines.learn(tx, self._rulebook.aging)
        for hold in self._holds:
            hold.forget()
        self._gates = Gates()
        self._version = tx.version()

    def _apply_together(
        self, work: UnitOfWork, commands: Sequence[AnyCommand]
    ) -> Sliced[list[object]]:
        kinds = set(map(type, commands))
        if len(kinds) == 1:  # as in most ticks: nothing to sort
            return (yield from self._phases.of[kinds.pop()](work, commands))
        chosen: dict[Apply, list[int]] = {apply: [] for apply in self._phases.applies}
        for index, command in enumerate(commands):
            chosen[self._phases.of[type(command)]].append(index)
        replies: dict[int, object] = {}
        for apply, indexes in chosen.items():
            if indexes:
                answers = yield from apply(work, [commands[index] for index in indexes])
                replies.update(zip(indexes, answers, strict=True))
        return [replies[index] for index in range(len(commands))]

    def _apply_without_enqueues(
        self, work: UnitOfWork, commands: Sequence[AnyCommand]
    ) -> Sliced[list[object]]:
        kept = [command for command in commands if not command.brings_more]
        replies = iter((yield from self._apply_together(work, kept)))
        return [
            StorageFull(STORAGE_FULL) if command.brings_more else next(replies)
            for command in commands
        ]

    def _apply_singly(
        self, work: UnitOfWork, commands: Sequence[AnyCommand]
    ) -> Sliced[list[object]]:
        replies = []
        for command in commands:
            reply = yield from self._apply_one(work, command)
            replies.append(reply)
        return replies

    def _apply_one(self, work: UnitOfWork, command: AnyCommand) -> Sliced[object]:
        part = work.part()
        try:
            (reply,) = yield from self._apply_together(part, [command])
            part.finish()
            work.keep(part)
        except Exception as error:
            # Some errors of the disk have already rolled the whole transaction back.
            if not work.tx.is_open:
                raise
            work.drop()
            if isinstance(error, StoreFailed | StoreBusy):
                raise
            log.error("a command failed", exc_info=error)
            return unexpected(error)
        return reply

    def _claim(self, work: UnitOfWork, wanted: Claim, monotonic: float) -> Sliced[list[JobRecord]]:
        if wanted.limit <= SLICE_ROWS:
            return claim(work, wanted, self._gates, monotonic)
        jobs: list[JobRecord] = []
        for part in claim_parts(wanted, SLICE_ROWS):
            found = claim(work, part, self._gates, monotonic)
            jobs += found
            if len(found) < part.limit:
                break
            yield None
        return jobs


def _show_dates(result: TickResult, ahead: int) -> None:
    """Make the times of the jobs that a tick has found dates, `ahead` of which steady time is.

    Nobody outside the store knows steady times.
    """
    shown: dict[int, JobRecord] = {}
    for reply in result.replies:
        # Every request comes here. Types are compared directly: `isinstance` costs ten times as
        # much for a Struct.
        if type(reply) is EnqueueResult:
            if reply.owners or reply.folded:
                for job in (*reply.owners.values(), *reply.folded.values()):
                    shown[id(job)] = job
        elif type(reply) is JobRecord:
            shown[id(reply)] = reply
    if shown:
        show_dates(shown.values(), ahead)
    if ahead:
        for jobs in result.claimed:
            show_dates(jobs, ahead)
