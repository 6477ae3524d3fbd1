"""The hold on jobs with a fair key: they wait in lines, which share their queue by their places.

Moves only note what they do to a key. `places` changes these keys, and says where their lines
stand, before the claims of the same transaction. `store` writes what has changed, once for each
key, so a crash loses no share. What is written stays known to the next transactions, up to a number
of keys. If a transaction fails, all is read again.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from zq.features.fair.model import (
    SHORTEST_MS,
    UNLIMITED,
    FairLimit,
    KeyLimits,
    counted,
    limits_of,
    paid_after,
    start_of,
)
from zq.features.fair.model_jobs import fair_key_of, fair_weight_of
from zq.features.fair.tick_shares import (
    COLUMNS,
    KeyNotes,
    KeyShare,
    Name,
    SharedQueue,
    change,
    charged_to,
    end_jobs,
    first_start,
)
from zq.model.clock import SLIGHT_MS
from zq.model.errors import Unprocessable
from zq.model.job import Brief, JobRecord, JobSettings, NewJob
from zq.model.lifecycle import Status
from zq.model.reach import BudgetMaker
from zq.model.settings import NO_FAIR_RULE, FairRule
from zq.store.api import Line, Transaction
from zq.tick.lines import Placed
from zq.tick.rulebook import Rulebook
from zq.tick.work import UnitOfWork

MOST_OPENED = 1_000
"""One tick opens at most so many keys because of their rates. The next one goes on."""

MOST_FORGOTTEN = 1_000
"""One tick forgets at most so many keys, and two for each that it has changed."""

MOST_KNOWN = 20_000
"""So many keys stay known, at about 500 bytes each. Jobs mostly end soon after their delivery."""

_UNFINISHED = frozenset({Status.SCHEDULED, Status.READY, Status.IN_FLIGHT})


class FairHold:
    """Holds jobs with a fair key. It follows `zq.tick.hooks.Hold`."""

    def __init__(self) -> None:
        self._tx: Transaction
        self._notes: defaultdict[Name, KeyNotes] = defaultdict(lambda: KeyNotes(ran=[]))
        self._shares: dict[Name, KeyShare] = {}
        """The keys that were read, as they are by now."""
        self._queues: dict[str, SharedQueue] = {}
        self._changed: set[Name] = set()
        """The keys that have changed and have to be written."""
        self._ended: set[str] = set()
        """Queues in which nothing is unfinished, and whose keys are still to be forgotten."""
        self._opened: set[Name] = set()
        """Keys that may have got room for more jobs."""
        self._reviewed: dict[str, bool] = {}
        """Queues with other limits than before, and whether all of their keys are open again."""
        self._is_known = False
        self._has_refused = False
        self._may_have_shut = True
        """False if the limits of keys have shut no line."""
        self._refused: dict[Name, KeyLimits] = {}
        """Keys that a claim has found at their limits, if it takes what it has chosen."""
        self._rates: dict[Name, float] = {}
        """The rates that pay for what a claim takes."""
        self._ahead: int | None = None
        self._set_at = 0
        """The date from which on the wall clock has gone like steady time, `ahead` of it."""
        self._is_torn = False
        self.is_used = True
        self.is_retimed = False

    def learn(self, tx: Transaction) -> None:
        self.is_used = bool(tx.value("has_shares"))
        self._ended = set(tx.names("ended_queues"))
        self._is_known = True

    def begin(self, tx: Transaction, now: int) -> None:
        if not self._is_known:
            self.learn(tx)
        self._tx, self._now = tx, now
        self.is_retimed = False

    def serve(self, tx: Transaction) -> None:
        self._tx = tx

    def commit(self) -> None:
        """Note what is done, and forget the keys that have been known for the longest time."""
        for name in list(islice(self._shares, max(len(self._shares) - MOST_KNOWN, 0))):
            del self._shares[name]
        for queue in list(islice(self._queues, max(len(self._queues) - MOST_KNOWN, 0))):
            del self._queues[queue]
        self._reviewed = {queue: False for queue, is_done in self._reviewed.items() if not is_done}

    def roll_back(self) -> None:
        """Forget the notes of a transaction that has failed."""
        self.forget()

    def forget(self) -> None:
        """Forget everything. There may be keys."""
        self._clear_notes()
        self._may_have_shut = True
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
        """Begin to count shares if one of these jobs has a key. No job is refused."""
        self.count_from(work, jobs)

    def count_from(
        self, work: UnitOfWork, jobs: Sequence[NewJob] | Sequence[Brief | JobRecord]
    ) -> None:
        """Count shares from the first job with a key on, whether it is new or comes back.

        Nothing is counted any more once the last job with a key has ended.
        """
        if not self.is_used and any(fair_key_of(job.options) is not None for job in jobs):
            self.begin(work.tx, work.steady)
            self.is_used = work.has_lines = True

    def refuse_return(self, jobs: Sequence[JobRecord | NewJob]) -> Unprocessable | None:
        """Nothing keeps a job with a key from coming back."""
        return None

    def spend(self, job: Brief, used: Mapping[str, int]) -> None:
        """Keys draw nothing that a worker could count."""

    def bring(self, job: NewJob, status: Status) -> None:
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
        self._learn_clock(now)
        was = self._notes[job.queue, key]
        then = was if queue == job.queue else self._notes[queue, key]
        was.unfinished -= before in _UNFINISHED
        then.unfinished += after in _UNFINISHED
        was.left += before is Status.READY
        then.came += after is Status.READY
        runs_on = after is Status.IN_FLIGHT
        if before is Status.IN_FLIGHT and not (runs_on and queue == job.queue):
            was.ran.append(self._ran(job, now))
            self._opened.add((job.queue, key))
            then.brought += runs_on
        elif runs_on and before is not Status.IN_FLIGHT:
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
        self._learn_clock(now)
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
                    self._notes[queue, key].ran.append(self._ran(job, now))
                    self._opened.add((queue, key))

    def _learn_clock(self, now: int) -> None:
        ahead = self._now - now
        if self._ahead is None or abs(ahead - self._ahead) >= SLIGHT_MS:
            self._ahead, self._set_at = ahead, now

    def _ran(self, job: Brief | JobRecord, now: int) -> float | None:
        """What a job counts that ends now; None if the clock was set meanwhile, or this server has
        not seen the job being taken: nobody knows then how long it ran."""
        began = job.dequeued_at or 0
        return counted(now - began) if self._set_at <= began <= now else None

    def review(self, queue: str) -> None:
        """Note that the limits of a queue's keys may be others than before."""
        if self.is_used:
            self._reviewed[queue] = False

    def mend(self) -> None:
        """Note that jobs were set aside whose keys are unknown."""
        self._is_torn = True

    # The store

    @property
    def noted(self) -> int:
        """How many keys have changed."""
        return len(self._notes) + len(self._changed)

    def places(self) -> Placed:
        """Change the keys whose jobs have moved. Return where their lines stand now."""
        notes = self._notes
        self.know(notes)
        found: defaultdict[str, dict[str, float]] = defaultdict(dict)
        moved: defaultdict[str, dict[str, float]] = defaultdict(dict)
        places = {name: self._shares[name].finish for name in notes}
        for name, noted in notes.items():
            share = self._shares[name]
            if noted.weight is not None:
                share.weight = noted.weight
            if noted.ran:
                end_jobs(share, self._queues[share.queue], noted)
        for name in sorted(notes, key=lambda name: self._shares[name].finish):
            share, noted = self._shares[name], notes[name]
            change(share, self._queues[share.queue], noted)
            if noted.delivered and (rate := self._rates.get(name)) is not None:
                share.paid_until = paid_after(share.paid_until, self._now, rate, noted.delivered)
            if noted.came or noted.left:
                found[share.queue][f"={share.key}"] = share.finish
            elif share.finish != places[name] and share.waiting:
                # A job that took what its key was charged with moves no line by its end.
                moved[share.queue][f"={share.key}"] = share.finish
        self._changed.update(notes)
        notes.clear()
        self._rates.clear()
        return Placed(dict(found), dict(moved))

    def flush(self) -> set[str]:
        """Open the lines of keys that have room again. Return their queues."""
        if self._is_torn:
            self._is_torn = False
            self.store()
            self._tx.write("count_shares")
            self._tx.write("count_shared_queues")
            self._forget_keys()
        opened = [*self._opened, *self._spared()]
        self._opened.clear()
        woken: set[str] = set()
        if opened and self._may_have_shut:
            self._may_have_shut = bool(self._tx.value("has_shut_keys"))
            if self._may_have_shut:
                woken = self.open_keys(opened)
        return woken | {queue for queue in self._reviewed if self._open_queue(queue)}

    def store(self) -> None:
        """Write the keys that have changed, and forget those that nothing is known of any more."""
        changed = [self._shares[name] for name in self._changed]
        if changed:
            self._tx.replace("shares", COLUMNS, [share.row for share in changed])
        if changed or self._ended:
            self._store_queues({share.queue for share in changed} | self._ended)
        for share in changed:
            if not share.unfinished:
                # Its row may go.
                del self._shares[share.name]
        self._changed.clear()

    def know(self, names: Collection[Name]) -> None:
        """Read those of some keys and their queues that are not known."""
        missing = [name for name in names if name not in self._shares]
        if missing:
            keys: defaultdict[str, list[str]] = defaultdict(list)
            for queue, key in missing:
                keys[queue].append(key)
            rows = self._tx.table("read_shares", names=dict(keys))
            self._shares |= {share.name: share for share in msgspec.convert(rows, list[KeyShare])}
        self._know_queues({queue for queue, _ in names})

    def set_limit(self, name: Name, limit: FairLimit) -> None:
        """Note what is set for a key from now on."""
        share = self._shares.get(name)
        if share is not None:
            share.set_weight, share.set_rate = limit.weight, limit.rate
            share.set_in_flight = limit.max_in_flight

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

    def _spared(self) -> Iterator[Name]:
        """The refused keys that have room, since a claim has not taken all that it had chosen.
        Note when the rates of others open them again."""
        refused, self._refused = self._refused, {}
        if refused:
            self.know(refused)
        for name, limits in refused.items():
            share = self._shares[name]
            opens = limits.opens_at(share.paid_until)
            if opens > self._now:
                self._open_at(name, opens)
            elif not limits.is_full(share.in_flight):
                yield name

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
        self._tx.write("clear_shares")
        self._tx.write("clear_shared_queues")

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
        tx.write("write_shared_queues", queues=queues)
        passed = [(queue.queue, queue.virtual) for queue in queues]
        most = MOST_FORGOTTEN + 2 * len(self._changed)
        tx.write("pass_shares", queues=passed, now=self._now, limit=most)
        if ended:
            tx.write("end_shared_queues", queues=[queue.queue for queue in ended])
            for queue in ended:
                del self._queues[queue.queue]
            self._ended = set(tx.names("ended_queues"))
            self.is_used = bool(tx.value("has_shares"))

    def _forget_keys(self) -> None:
        self._shares.clear()
        self._queues.clear()
        self._changed.clear()

    def _clear_notes(self) -> None:
        self._forget_keys()
        self._notes.clear()
        self._opened.clear()
        self._refused.clear()
        self._rates.clear()
        self._is_torn = False

    # Claims

    def allowances(self, work: UnitOfWork) -> "FairAllowances":
        self._rates.clear()
        return FairAllowances(self, work.rulebook, self._now, self._rates)

    def refuse(self, name: Name, limits: KeyLimits) -> None:
        """Note that a key has reached its limits, if the claim takes what it has chosen."""
        self._has_refused = self._may_have_shut = True
        self._refused[name] = limits

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


class FairAllowances:
    """The turns of keys in one claim. It follows `zq.tick.hooks.Allowances`."""

    def __init__(
        self, hold: FairHold, rulebook: Rulebook, now: int, rates: dict[Name, float]
    ) -> None:
        """`now` is a steady time. `rates` learns the rates of keys."""
        self.hold = hold
        self.now = now
        self._rates = rates
        self._rulebook = rulebook
        self._rules: dict[str, FairRule] = {}
        self._turns: dict[Name, KeyTurn] = {}

    def learn(self, lines: Sequence[Line]) -> None:
        """Read the shares of these lines."""
        self.hold.know([_name(line) for line in lines])

    def of(self, line: Line) -> "KeyTurn | None":
        """The turn of a line's key; None if its jobs have no key."""
        if not line.fair_key:
            return None
        name = _name(line)
        turn = self._turns.get(name)
        if turn is None:
            turn = self._turns[name] = self._begin(self.hold.share(name))
        return turn

    def turn(self, line: Line) -> "KeyTurn | None":
        """The turn of a line's key."""
        return self.of(line)

    def _begin(self, share: KeyShare) -> "KeyTurn":
        """The turn of a key, with its limits."""
        rule = self._rules.get(share.queue)
        if rule is None:
            rule = self._rulebook.of(share.queue).fair or NO_FAIR_RULE
            self._rules[share.queue] = rule
        queue = self.hold.queue(share.queue)
        charged, least = charged_to(share, queue) / share.pull, first_start(share, queue)
        limits = limits_of(rule, share.set_in_flight, share.set_rate)
        if limits == UNLIMITED:
            return KeyTurn(share.finish, charged, least)
        if limits.rate is not None:
            self._rates[share.name] = limits.rate
        return LimitedKeyTurn(share.finish, charged, least, self, share, limits)


class KeyTurn:
    """A key during one claim, after what this has paid for. It follows `zq.tick.hooks.Allowance`
    and `Turn`."""

    __slots__ = ("_charged", "_least", "place")

    def __init__(self, place: float, charged: float, least: float) -> None:
        """It begins at the tag of its key. `charged` is what a delivery adds to that, or to
        `least`, if that is more."""
        self.place = place
        self._charged = charged
        self._least = least

    def refuses(self) -> tuple[str, int] | None:
        """None, since the key has no limit."""
        return None

    def pay(self) -> None:
        """Charge the key with one job."""
        self.place = start_of(self._least, self.place) + self._charged


class LimitedKeyTurn(KeyTurn):
    """The turn of a key with limits."""

    def __init__(
        self,
        place: float,
        charged: float,
        least: float,
        allowances: FairAllowances,
        share: KeyShare,
        limits: KeyLimits,
    ) -> None:
        super().__init__(place, charged, least)
        self._allowances = allowances
        self._name = share.name
        self._in_flight = share.in_flight
        self._paid_until = share.paid_until
        self._limits = limits

    def refuses(self) -> tuple[str, int] | None:
        """The key, if it has reached a limit."""
        limits = self._limits
        opens = limits.opens_at(self._paid_until)
        if opens <= self._allowances.now and not limits.is_full(self._in_flight):
            return None
        self._allowances.hold.refuse(self._name, limits)
        return marker_of(*self._name), 1

    def pay(self) -> None:
        """Charge the key with one job, and its rate with a delivery."""
        super().pay()
        self._in_flight += 1
        if self._limits.rate is not None:
            now = self._allowances.now
            self._paid_until = paid_after(self._paid_until, now, self._limits.rate)


def marker_of(queue: str, key: str) -> str:
    """The name under which a key shuts its lines. No budget has such a name."""
    return msgspec.json.encode([queue, key]).decode()


def _name(line: Line) -> Name:
    return line.queue, line.fair_key[1:]
