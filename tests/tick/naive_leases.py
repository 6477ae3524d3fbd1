"""The naive queue with leases: deadlines, claimants, stalls."""

from collections.abc import Iterable, Mapping

from zq.model.commands import (
    AnyCommand,
    CancelJob,
    CancelSlice,
    Claim,
    Clear,
    Deadlines,
    DeleteJob,
    DeleteSlice,
    Due,
    Extend,
    Extended,
    Fail,
    Release,
    Return,
    Settled,
    Succeed,
    Tick,
)
from zq.model.errors import StaleLease
from zq.model.events import EventType
from zq.model.job import JobRecord
from zq.model.leasing import DEFAULT_LEASE_MS
from zq.model.settling import Failure

from .naive import NaiveQueue
from .naive_jobs import IN_FLIGHT, READY, SCHEDULED, Answers
from .naive_row import Row

TAKES_AWAY = (CancelJob, CancelSlice, DeleteJob, DeleteSlice, Clear)


class LeasingQueue(NaiveQueue):
    """Jobs whose holders may be claimants, and whose leases may have deadlines."""

    steady = 0
    resumed = 0
    """How many jobs were still their last holders' when these reported late."""

    def deadlines(self) -> Deadlines:
        untils = [row.lease_until for row in self.rows.values() if row.lease_until is not None]
        leases = {Due.LEASE: min(untils) + 1} if untils else {}
        return leases | dict(super().deadlines())

    def tick(self, tick: Tick) -> Answers:
        self.steady = tick.steady
        return super().tick(tick)

    def claimed(self) -> int:
        """How many jobs claimants hold."""
        return sum(row.claimant is not None for row in self.rows.values())

    def _left_behind(self) -> list[Row]:
        return [
            row
            for row in super()._left_behind()
            if row.claimant is None or self._set_for(row.queue).leases_survive is False
        ]

    def _apply(self, command: AnyCommand) -> object:
        match command:
            case Succeed(keys, said=said, late=str(claimant)):
                leases = {key: told.lease for key, told in (said or {}).items()}
                return self._report_late(keys, claimant, leases, command)
            case Fail(key, failure, late=str(claimant)):
                return self._report_late([key], claimant, {key: failure.lease}, command)
            case Extend(keys, leases, lease_ms, resumed=resumed):
                refused, rows = self._meant(keys, leases)
                for row in rows:
                    row.lease_until = self.steady + lease_ms
                    row.stalls = max(row.stalls - resumed, 0)
                return Extended(refused, self.steady + lease_ms)
            case Release(keys, leases, delay_ms):
                refused, rows = self._meant(keys, leases)
                for row in rows:
                    if delay_ms:
                        row.ready_at = row.due_at = self.now + delay_ms
                    self._wait_again(row, SCHEDULED if delay_ms else READY)
                return refused
            case Return():
                self._return(command)
                return None
            case _ if isinstance(command, TAKES_AWAY):
                held = self.keys(IN_FLIGHT)
                reply = super()._apply(command)
                left = self.keys(IN_FLIGHT)
                self.outcome.revoked += [key for key in held if key not in left]
                return reply
            case _:
                return super()._apply(command)

    def _report_late(
        self,
        keys: Iterable[int],
        claimant: str,
        leases: Mapping[int, int | None],
        command: AnyCommand,
    ) -> object:
        """The last delivery of a job goes on, if nobody has taken the job since it stalled."""
        resumed: list[tuple[int, int]] = []
        for row in [self.rows[key] for key in keys if key in self.rows]:
            is_lost = row.status is READY and row.stalls and not row.held and not row.draws
            named = leases.get(row.key) in (None, row.deliveries)
            if not (is_lost and named) or row.lapsed(self.now):
                continue
            assert row.dequeued_at is not None
            if (row.failed_at or 0) < row.dequeued_at:
                row.holder, row.claimant, row.lease_until = 0, claimant, self.now
                self._to(row, IN_FLIGHT)
                resumed.append((0, row.key))
        self.resumed += len(resumed)
        reply = super()._apply(command)
        self.outcome.ended = [each for each in self.outcome.ended if each not in resumed]
        return reply

    def _return(self, command: Return) -> None:
        for key in command.keys:
            row = self.rows.get(key)
            if row is None or row.holder != command.holder:
                continue
            if command.leases is not None and row.deliveries != command.leases[key]:
                continue
            if key in command.stalled:
                self._stall(row)
            else:
                self._wait_again(row, READY)

    def _fail(self, command: Fail) -> object:
        lease = command.failure.lease
        if lease is not None and self._is_another(command.key, lease):
            return StaleLease()
        return super()._fail(command)

    def _lapse(self) -> None:
        for row in list(self.rows.values()):
            if row.lease_until is not None and row.lease_until < self.steady:
                self.outcome.lapsed.append(row.key)
                self._stall(row)
        self._restore_locks()

    def _stall(self, row: Row) -> None:
        limit = row.stall_limit
        if limit is None:
            limit = self._set_for(row.queue).stall_limit
        holder = self.workers.get(row.holder or 0)
        if limit is None and holder is not None:
            limit = holder.stall_limit
        lives = limit is None or row.stalls < limit
        if lives:
            self._record(row, "stalled")
        row.stalls += 1
        if not lives:
            words = f"its worker died {row.stalls} times" if row.stalls > 1 else "its worker died"
            self._note(row, Failure(words, "WorkerDied"), "dead")
        self._tell(EventType.STALLED, row)
        if lives:
            self._wait_again(row, READY)
            return
        self.outcome.buried[row.key] = ("stalled", row.stalls)
        self._bury(row, "stalled")

    def _claim(self, claim: Claim) -> list[JobRecord]:
        jobs = super()._claim(claim)
        for job in jobs:
            row = self.rows[job.key]
            assert row.holder is not None
            terms = (claim.terms or {}).get(row.holder)
            asked = None if terms is None else terms.lease_ms
            row.claimant = None if terms is None else terms.claimant
            default = None if row.claimant is None else DEFAULT_LEASE_MS
            choices = (asked, row.lease_ms, self._set_for(row.queue).lease_ms, default)
            lasts = next((ms for ms in choices if ms is not None), None)
            row.lease_until = None if lasts is None else self.steady + lasts
            job.claimant, job.lease_until = row.claimant, row.lease_until
            if row.claimant is not None:
                row.holder = 0
        return jobs

    def _meant(self, keys: Iterable[int], leases: Mapping[int, int]) -> tuple[Settled, list[Row]]:
        """What is refused, and the jobs that are not."""
        keys = list(keys)
        stale = {key for key in keys if key in leases and self._is_another(key, leases[key])}
        held = set(self.keys(IN_FLIGHT)) - stale
        rows = [self.rows[key] for key in keys if key in held]
        return Settled(frozenset(keys) - stale - held, frozenset(stale)), rows

    def _is_another(self, key: int, lease: int) -> bool:
        """Whether a job is there, but not by this delivery in flight."""
        row = self.rows.get(key)
        if row is None or row.expired(self.now):
            return False
        return row.status is not IN_FLIGHT or row.deliveries != lease
