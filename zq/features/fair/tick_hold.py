"""The hold on jobs with a fair key: they wait in lines, which share their queue by their places.

Moves only note what they do to a key. `places` changes these keys, and says where their lines
stand, before the claims of the same transaction. A transaction reads a key once, and `store` writes
it once. Nothing is kept in memory between two transactions, so keys cost nothing but their rows,
and a crash loses no share.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from zq.features.fair.model import SHORTEST_MS, opens_at, paid_after
from zq.features.fair.model_jobs import fair_key_of, fair_weight_of
from zq.features.fair.tick_shares import (
    COLUMNS,
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
from zq.tick.lines import Places
from zq.tick.rulebook import Rulebook
from zq.tick.work import UnitOfWork

MOST_OPENED = 1_000
"""One tick opens at most so many keys because of their rates. The next one goes on."""

MOST_FORGOTTEN = 1_000
"""One tick forgets at most so many keys, and two for each that it has changed."""

_UNFINISHED = frozenset({Status.SCHEDULED, Status.READY, Status.IN_FLIGHT})


class FairHold:
    """Holds jobs with a fair key. It follows `zq.tick.hooks.Hold`."""

    def __init__(self) -> None:
        self._tx: Transaction
        self._notes: defaultdict[Name, KeyNotes] = defaultdict(lambda: KeyNotes(ran=[]))
        self._shares: dict[Name, KeyShare] = {}
        """The keys that this transaction has read, as they are by now."""
        self._queues: dict[str, SharedQueue] = {}
        self._changed: set[Name] = set()
        """Those of the keys that are to be written."""
        self._ended: set[str] = set()
        """Queues in which nothing is unfinished, and whose keys are still to be forgotten."""
        self._opened: set[Name] = set()
        """Keys that may have got room for more jobs."""
        self._reviewed: dict[str, bool] = {}
        """Queues with other limits than before, and whether all of their keys are open again."""
        self._is_known = False
        self._has_refused = False
        self._paid: dict[Name, float] = {}
        """Up to when keys have used up their rates, if a claim takes what it has chosen."""
        self._is_torn = False
        self.is_used = True
        self.is_retimed = False

    def learn(self, tx: Transaction) -> None:
        """Read the store, before the first transaction."""
        self.is_used = bool(tx.value("has_shares"))
        self._ended = set(tx.names("ended_queues"))
        self._is_known = True

    def begin(self, tx: Transaction, now: int) -> None:
        """Serve a transaction at a steady time in milliseconds."""
        if not self._is_known:
            self.learn(tx)
        self._tx, self._now = tx, now
        self.is_retimed = False

    def serve(self, tx: Transaction) -> None:
        """Continue in a part of the transaction, or after a part that was kept."""
        self._tx = tx

    def commit(self) -> None:
        """Note what is done. Nothing else is kept in memory."""
        self._reviewed = {queue: False for queue, is_done in self._reviewed.items() if not is_done}

    def roll_back(self) -> None:
        """Forget the notes of a transaction that has failed."""
        self.forget()

    def forget(self) -> None:
        """Forget everything. There may be keys."""
        self._clear_notes()
        self._reviewed = dict.fromkeys(self._reviewed, False)
        self.is_used, self._is_known = True, False

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
        """Note a move of a job that has a key."""
        key = fair_key_of(job.options)
        assert key is not None
        was = self._notes[job.queue, key]
        then = was if queue == job.queue else self._notes[queue, key]
        was.unfinished -= before in _UNFINISHED
        then.unfinished += after in _UNFINISHED
        was.left += before is Status.READY
        then.came += after is Status.READY
        if before is Status.IN_FLIGHT and after is not Status.IN_FLIGHT:
            was.ran.append(max(now - (job.dequeued_at or now), 0))
            self._opened.add((job.queue, key))
        elif after is Status.IN_FLIGHT and before is not Status.IN_FLIGHT:
            then.delivered += 1

    def note_together(
        self,
        jobs: Sequence[Brief | JobRecord],
        before: Status | None,
        after: Status | None,
        now: int,
    ) -> None:
        """Note the move of jobs that all come to one state, each in its queue."""
        if before is None:
            statuses = {job.status for job in jobs}
            if len(statuses) > 1:
                for job in jobs:
                    if self.holds(job.options):
                        self.note(job, job.status, after, job.queue, now)
                return
            (before,) = statuses
        names = [(job.queue, fair_key_of(job.options)) for job in jobs]
        begins = after is Status.IN_FLIGHT is not before
        for (queue, key), count in Counter(names).items():
            if key is not None:
                notes = self._notes[queue, key]
                notes.unfinished += count * ((after in _UNFINISHED) - (before in _UNFINISHED))
                notes.left += count * (before is Status.READY)
                notes.came += count * (after is Status.READY)
                notes.delivered += count * begins
        if before is Status.IN_FLIGHT is not after:
            for job, (queue, key) in zip(jobs, names, strict=True):
                if key is not None:
                    self._notes[queue, key].ran.append(max(now - (job.dequeued_at or now), 0))
                    self._opened.add((queue, key))

    def review(self, queue: str) -> None:
        """Note that the limits of a queue's keys may be others than before."""
        if self.is_used:
            self._reviewed[queue] = False

    def mend(self) -> None:
        """Note that jobs were set aside whose keys are unknown."""
        self._is_torn = True

    # The store

    def places(self) -> Places:
        """Change the keys whose jobs have moved. Return where their lines stand now."""
        notes = self._notes
        self.know(notes)
        places: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for name in sorted(notes, key=lambda name: self._shares[name].finish):
            share, noted = self._shares[name], notes[name]
            place = share.finish
            change(share, self._queues[share.queue], noted)
            if noted.delivered:
                share.paid_until = self._paid.get(name, share.paid_until)
            if noted.came or noted.left or share.finish != place:
                # A job that took what its key was charged with moves no line by its end.
                places[share.queue][f"={share.key}"] = share.finish
        self._changed.update(notes)
        notes.clear()
        self._paid.clear()
        return dict(places)

    def flush(self) -> set[str]:
        """Open the lines of keys that have room again. Return their queues."""
        if self._is_torn:
            self._is_torn = False
            self.store()
            self._tx.run("count_shares")
            self._tx.run("count_shared_queues")
        opened = list(self._opened)
        self._opened.clear()
        woken: set[str] = set()
        if opened and self._tx.value("has_shut_keys"):
            woken = self.open_keys(opened)
        return woken | {queue for queue in self._reviewed if self._open_queue(queue)}

    def store(self) -> None:
        """Write the keys that have changed, and forget those that nothing is known of any more."""
        if self._changed:
            rows = [self._shares[name].row for name in self._changed]
            self._tx.replace("shares", COLUMNS, rows)
        if self._changed or self._ended:
            self._store_queues({queue for queue, _ in self._changed} | self._ended)
            self.is_used = bool(self._tx.value("has_shares"))
        self._forget_keys()

    def know(self, names: Iterable[Name]) -> None:
        """Read those of some keys and their queues that this transaction has not read yet."""
        missing = [name for name in names if name not in self._shares]
        if not missing:
            return
        keys: defaultdict[str, list[str]] = defaultdict(list)
        for queue, key in missing:
            keys[queue].append(key)
        rows = self._tx.table("read_shares", names=dict(keys))
        self._shares |= {share.name: share for share in msgspec.convert(rows, list[KeyShare])}
        self._know_queues({queue for queue, _ in missing})

    def share(self, name: Name) -> KeyShare:
        """A key that is known, as it is by now."""
        return self._shares[name]

    def queue(self, name: str) -> SharedQueue:
        """A queue whose keys are known."""
        return self._queues[name]

    def open_keys(self, names: Iterable[Name]) -> set[str]:
        """Open the lines that the limits of some keys have shut. Return the queues of the keys."""
        some = list(names)
        opened = self._tx.run("open_keys", names=[marker_of(*name) for name in some])
        return {queue for queue, _ in some} if opened else set()

    def _open_queue(self, queue: str) -> bool:
        """Open the lines that the limits of a queue have shut, up to a number."""
        first = msgspec.json.encode([queue]).decode()[:-1] + ","
        # A minus comes behind a comma.
        names = {"first": first, "behind": first[:-1] + "-"}
        opened = self._tx.run("open_keys_of_queue", **names, limit=MOST_OPENED)
        self._reviewed[queue] = opened < MOST_OPENED
        return opened > 0

    def clear(self) -> None:
        """Forget all keys, since all jobs are deleted."""
        self._clear_notes()
        self._ended.clear()
        self._tx.run("clear_shares")
        self._tx.run("clear_shared_queues")

    def _know_queues(self, names: Iterable[str]) -> None:
        missing = [name for name in names if name not in self._queues]
        if missing:
            rows = self._tx.table("read_shared_queues", queues=missing)
            known = {queue.queue: queue for queue in msgspec.convert(rows, list[SharedQueue])}
            self._queues |= {name: known.get(name) or SharedQueue(name) for name in missing}

    def _store_queues(self, names: set[str]) -> None:
        """Write queues, and forget keys without jobs that the times of these have passed."""
        tx = self._tx
        self._know_queues(names)
        queues = [self._queues[name] for name in names]
        ended = [queue for queue in queues if not queue.unfinished]
        for queue in ended:
            # Nobody is ahead any more. A queue that is used again begins anew.
            queue.virtual = max(queue.virtual, tx.value("last_finish", queue=queue.queue) or 0.0)
            queue.mean = SHORTEST_MS
        tx.run("write_shared_queues", queues=queues)
        passed = [(queue.queue, queue.virtual) for queue in queues]
        most = MOST_FORGOTTEN + 2 * len(self._changed)
        tx.run("pass_shares", queues=passed, now=self._now, limit=most)
        if ended:
            tx.run("end_shared_queues", queues=[queue.queue for queue in ended])
            self._ended = set(tx.names("ended_queues"))

    def _forget_keys(self) -> None:
        self._shares.clear()
        self._queues.clear()
        self._changed.clear()

    def _clear_notes(self) -> None:
        self._forget_keys()
        self._notes.clear()
        self._opened.clear()
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
            self._open_at(name, opens)

    def pass_on(self) -> bool:
        """True if keys have reached their limits, so that others may come instead."""
        refused, self._has_refused = self._has_refused, False
        return refused

    def open_due(self) -> set[str]:
        """Open keys whose rates let jobs through again. Return their queues."""
        if not self.is_used:
            return set()
        names = [
            (queue, key)
            for queue, key in self._tx.table("read_opening", now=self._now, limit=MOST_OPENED)
        ]
        self.know(names)
        for name in names:
            self._open_at(name, None)
        self.is_retimed = True
        return self.open_keys(names)

    def _open_at(self, name: Name, opens: int | None) -> None:
        self._shares[name].opens_at = opens
        self._changed.add(name)
        self.is_retimed = True


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
        self._turns: dict[Name, _Turn] = {}
        self._of_line: dict[int, _Turn] = {}

    def learn(self, lines: Sequence[Line]) -> None:
        """Read the shares of these lines."""
        names = {line.id: _name(line) for line in lines if line.id not in self._of_line}
        self._hold.know(names.values())
        for id, name in names.items():
            turn = self._turns.get(name)
            if turn is None:
                share = self._hold.share(name)
                charged = charged_to(share, self._hold.queue(share.queue)) / share.pull
                turn = _Turn(share, charged, share.finish, share.in_flight, share.paid_until)
                turn.most, turn.rate = self._limits(share)
                self._turns[name] = turn
            self._of_line[id] = turn

    def place_of(self, line: Line) -> float | None:
        """The tag at which the next job of the line's key begins."""
        turn = self._of_line.get(line.id)
        return None if turn is None else turn.finish

    def refuses(self, line: Line) -> tuple[str, int] | None:
        """The key of a line, if it has reached a limit."""
        turn = self._of_line.get(line.id)
        if turn is None or not turn.is_limited:
            return None
        name = turn.share.name
        opens = None if turn.rate is None else opens_at(turn.paid_until, turn.rate)
        if opens is not None and opens > self._now:
            self._hold.refuse(name, opens)
        elif turn.most is not None and turn.in_flight >= turn.most:
            self._hold.refuse(name, None)
        else:
            return None
        return marker_of(*name), 1

    def pay(self, line: Line) -> None:
        """Charge the key of a line with one job."""
        turn = self._of_line.get(line.id)
        if turn is None:
            return
        turn.finish += turn.charged
        if turn.is_limited:
            turn.in_flight += 1
            if turn.rate is not None:
                turn.paid_until = paid_after(turn.paid_until, self._now, turn.rate)
                self._paid[turn.share.name] = turn.paid_until

    def _limits(self, share: KeyShare) -> tuple[int | None, float | None]:
        """The most jobs in flight and the rate of a key: its own, or else those of its queue."""
        rule = self._rulebook.of(share.queue).fair or NO_FAIR_RULE
        most = rule.max_in_flight if share.set_in_flight is None else share.set_in_flight
        return most, rule.rate if share.set_rate is None else share.set_rate


class _Turn(msgspec.Struct, gc=False):
    """A key during one claim, after what this has paid for, and its limits."""

    share: KeyShare
    charged: float
    """What a delivery adds to its tag."""
    finish: float
    in_flight: int
    paid_until: float | None
    most: int | None = None
    rate: float | None = None

    @property
    def is_limited(self) -> bool:
        return self.most is not None or self.rate is not None


def marker_of(queue: str, key: str) -> str:
    """The name under which a key shuts its lines. No budget has such a name."""
    return msgspec.json.encode([queue, key]).decode()


def _name(line: Line) -> Name:
    return line.queue, line.fair_key[1:]
