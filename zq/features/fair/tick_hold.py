"""The hold on jobs with a fair key: they wait in lines, which share their queue by their places.

Moves only note what they do to a key. `flush` changes the rows of these keys, and the places of
their lines, before the claims of the same transaction. Nothing is kept in memory between two
transactions, so keys cost nothing but their rows, and a crash loses no share.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from zq.features.fair.model import finish_of, opens_at, paid_after
from zq.features.fair.model_jobs import fair_key_of, fair_weight_of
from zq.features.fair.tick_shares import (
    KeyNotes,
    KeyShare,
    Name,
    SharedQueue,
    change,
    charged_to,
)
from zq.model.errors import Unprocessable
from zq.model.job import Brief, JobRecord, JobSettings, NewJob
from zq.model.lifecycle import Status
from zq.model.reach import BudgetMaker
from zq.model.settings import NO_FAIR_RULE
from zq.store.api import Line, Transaction
from zq.tick.rulebook import Rulebook
from zq.tick.work import UnitOfWork

MOST_OPENED = 1_000
"""One tick opens at most so many keys because of their rates. The next one goes on."""

_UNFINISHED = frozenset({Status.SCHEDULED, Status.READY, Status.IN_FLIGHT})


class FairHold:
    """Holds jobs with a fair key. It follows `zq.tick.hooks.Hold`."""

    def __init__(self) -> None:
        self._tx: Transaction
        self._notes: defaultdict[Name, KeyNotes] = defaultdict(lambda: KeyNotes(ran=[]))
        self._opened: set[Name] = set()
        """Keys that may have got room for more jobs."""
        self._has_refused = False
        self._openings: dict[Name, int] = {}
        """When keys are open again that have reached their rates."""
        self._paid: dict[Name, float] = {}
        """Up to when keys have used up their rates, if a claim takes what it has chosen."""
        self._is_torn = False
        self.is_used = True
        self.is_retimed = False

    def learn(self, tx: Transaction) -> None:
        """Read the store, before the first transaction."""
        self.is_used = bool(tx.value("has_shares"))

    def begin(self, tx: Transaction, now: int) -> None:
        """Serve a transaction at a steady time in milliseconds."""
        self._tx, self._now = tx, now
        self.is_retimed = False

    def serve(self, tx: Transaction) -> None:
        """Continue in a part of the transaction, or after a part that was kept."""
        self._tx = tx

    def commit(self) -> None:
        """Nothing is kept in memory."""

    def roll_back(self) -> None:
        """Forget the notes of a transaction that has failed."""
        self.forget()

    def forget(self) -> None:
        """Forget everything. There may be keys."""
        self._clear_notes()
        self.is_used = True

    def recall(self) -> None:
        """Forget the notes of a part that was undone."""
        self.forget()

    # Jobs

    def holds(self, options: JobSettings | None) -> bool:
        """True if jobs with these options have a fair key."""
        return fair_key_of(options) is not None

    def refuse_new(
        self, jobs: Sequence[NewJob], maker: BudgetMaker | None, place: str
    ) -> Unprocessable | None:
        """Nothing keeps a job with a key from being stored."""
        return None

    def admit_new(
        self, work: UnitOfWork, jobs: Sequence[NewJob], maker: BudgetMaker | None
    ) -> None:
        """Begin with the first key."""
        if not self.is_used and any(fair_key_of(job.options) is not None for job in jobs):
            self.begin(work.tx, work.steady)
            self.is_used = True

    def refuse_return(self, jobs: Sequence[JobRecord]) -> Unprocessable | None:
        """Nothing keeps a job with a key from coming back."""
        return None

    def spend(self, job: Brief, used: Mapping[str, int]) -> None:
        """Keys draw nothing that a worker could count."""

    def bring(self, job: NewJob, status: Status) -> None:
        """Note a new job."""
        key = fair_key_of(job.options)
        if key is not None:
            notes = self._notes[job.queue, key]
            notes.unfinished += 1
            notes.came += status is Status.READY
            notes.weight = fair_weight_of(job.options)

    def note(
        self,
        job: Brief | JobRecord,
        before: Status | None,
        after: Status | None,
        queue: str,
        now: int,
    ) -> None:
        """Note a move of a job."""
        key = fair_key_of(job.options)
        if key is None:
            return
        was, then = self._notes[job.queue, key], self._notes[queue, key]
        was.unfinished -= before in _UNFINISHED
        then.unfinished += after in _UNFINISHED
        was.left += before is Status.READY
        then.came += after is Status.READY
        if before is Status.IN_FLIGHT and after is not Status.IN_FLIGHT:
            was.ran.append(max(now - (job.dequeued_at or now), 0))
            self._opened.add((job.queue, key))
        elif after is Status.IN_FLIGHT and before is not Status.IN_FLIGHT:
            then.delivered += 1

    def mend(self) -> None:
        """Note that jobs were set aside whose keys are unknown."""
        self._is_torn = True

    # The store

    def flush(self) -> set[str]:
        """Write what was noted. Return the queues with jobs that claims may have now."""
        tx = self._tx
        if self._is_torn:
            tx.run("count_shares")
            tx.run("count_shared_queues")
        if self._notes:
            self._change_shares()
        self._write_openings()
        woken = self.open_keys(self._opened) if self._opened else set()
        if self._notes or self._is_torn:
            self.is_used = bool(tx.value("has_shares"))
        self._clear_notes()
        return woken

    def open_keys(self, names: Iterable[Name]) -> set[str]:
        """Open the lines that the limits of some keys have shut. Return the queues of the keys."""
        some = list(names)
        opened = self._tx.run("open_keys", names=[marker_of(*name) for name in some])
        return {queue for queue, _ in some} if opened else set()

    def clear(self) -> None:
        """Forget all keys, since all jobs are deleted."""
        self._clear_notes()
        self._tx.run("clear_shares")
        self._tx.run("clear_shared_queues")

    def shares_of(self, names: Iterable[Name]) -> dict[Name, KeyShare]:
        """Keys as they are stored, or as they begin."""
        rows = self._tx.table("read_shares", names=list(names))
        return {share.name: share for share in msgspec.convert(rows, list[KeyShare])}

    def queues_of(self, names: Iterable[str]) -> dict[str, SharedQueue]:
        """Queues as they are stored, or as they begin."""
        wanted = set(names)
        rows = self._tx.table("read_shared_queues", queues=list(wanted))
        known = {row[0]: msgspec.convert(row, SharedQueue) for row in rows}
        return {name: known.get(name) or SharedQueue(name) for name in wanted}

    def _change_shares(self) -> None:
        tx, notes = self._tx, self._notes
        shares = self.shares_of(notes)
        queues = self.queues_of(queue for queue, _ in notes)
        for name in sorted(notes, key=lambda name: shares[name].finish):
            share = shares[name]
            change(share, queues[name[0]], notes[name])
            if notes[name].delivered:
                share.paid_until = self._paid.get(name, share.paid_until)
        tx.run("write_shares", shares=[share.row for share in shares.values()])
        places = [(s.queue, f"={s.key}", s.finish) for s in shares.values() if s.waiting]
        if places:
            tx.run("place_lines", places=places)
        ended = [queue.queue for queue in queues.values() if not queue.unfinished]
        if ended:
            tx.run("end_sharing", queues=ended, now=self._now)
            tx.run("end_shared_queues", queues=ended)
        going = [queue for queue in queues.values() if queue.unfinished]
        if going:
            tx.run("write_shared_queues", queues=going)
            for queue in going:
                tx.run("pass_shares", queue=queue.queue, virtual=queue.virtual, now=self._now)

    def _clear_notes(self) -> None:
        self._notes.clear()
        self._opened.clear()
        self._openings.clear()
        self._paid.clear()
        self._is_torn = False

    # Claims

    def till(self, work: UnitOfWork) -> "FairTill":
        """Begin to calculate what a claim may take."""
        self._paid.clear()
        return FairTill(self, work.rulebook, self._now, self._paid)

    def refuse(self, name: Name, opens: int | None) -> None:
        """Note that a key has reached a limit, and when it is open again if that is its rate."""
        self._has_refused = True
        if opens is not None:
            self._openings[name] = opens

    def pass_on(self) -> bool:
        """True if keys have reached their limits, so that others may come instead."""
        self._write_openings()
        refused, self._has_refused = self._has_refused, False
        return refused

    def _write_openings(self) -> None:
        if self._openings:
            openings = [(*name, at) for name, at in self._openings.items()]
            self._tx.run("shut_by_rate", openings=openings)
            self._openings.clear()
            self.is_retimed = True

    def open_due(self) -> set[str]:
        """Open keys whose rates let jobs through again. Return their queues."""
        if not self.is_used:
            return set()
        names = [
            (queue, key)
            for queue, key in self._tx.table("read_opening", now=self._now, limit=MOST_OPENED)
        ]
        self._tx.run("end_shut_by_rate", names=names)
        self.is_retimed = True
        return self.open_keys(names)


class FairTill:
    """The turns of keys in one claim. It follows `zq.tick.hooks.Till`."""

    def __init__(
        self, hold: FairHold, rulebook: Rulebook, now: int, paid: dict[Name, float]
    ) -> None:
        """`now` is a steady time. `paid` learns what the rates of keys have paid for."""
        self._hold = hold
        self._rulebook = rulebook
        self._now = now
        self._paid = paid
        self._shares: dict[Name, KeyShare] = {}
        self._queues: dict[str, SharedQueue] = {}

    def learn(self, lines: Sequence[Line]) -> None:
        """Read the shares of these lines."""
        names = {_name(line) for line in lines} - self._shares.keys()
        if names:
            self._shares |= self._hold.shares_of(names)
            self._queues |= self._hold.queues_of({queue for queue, _ in names})

    def place_of(self, line: Line) -> float | None:
        """The tag at which the next job of the line's key begins."""
        share = self._shares.get(_name(line))
        return None if share is None else share.finish

    def refuses(self, line: Line) -> tuple[str, int] | None:
        """The key of a line, if it has reached a limit."""
        if not line.fair_key:
            return None
        share = self._shares[_name(line)]
        most, rate = self._limits(share)
        opens = None if rate is None else opens_at(share.paid_until, rate)
        if opens is not None and opens > self._now:
            self._hold.refuse(share.name, opens)
        elif most is not None and share.in_flight >= most:
            self._hold.refuse(share.name, None)
        else:
            return None
        return marker_of(*share.name), 1

    def pay(self, line: Line) -> None:
        """Charge the key of a line with one job."""
        if line.fair_key:
            share = self._shares[_name(line)]
            charged = charged_to(share, self._queues[line.queue])
            share.finish = finish_of(share.finish, charged, share.pull)
            share.in_flight += 1
            rate = self._limits(share)[1]
            if rate is not None:
                share.paid_until = paid_after(share.paid_until, self._now, rate)
                self._paid[share.name] = share.paid_until

    def _limits(self, share: KeyShare) -> tuple[int | None, float | None]:
        """The most jobs in flight and the rate of a key: its own, or else those of its queue."""
        rule = self._rulebook.of(share.queue).fair or NO_FAIR_RULE
        most = rule.max_in_flight if share.set_in_flight is None else share.set_in_flight
        return most, rule.rate if share.set_rate is None else share.set_rate


def marker_of(queue: str, key: str) -> str:
    """The name under which a key shuts its lines. No budget has such a name."""
    return msgspec.json.encode([queue, key]).decode()


def _name(line: Line) -> Name:
    return line.queue, line.fair_key[1:]
