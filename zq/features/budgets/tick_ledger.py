"""The ledger of budgets: their tokens, and the lines of the jobs that draw from them.

A job that draws from budgets waits in a line with all unfinished jobs of its queue that draw the
same. Bit 2 of its `held` keeps it out of the indexes of other claims, from the time it is stored
until it is taken. `zq.features.budgets.tick_lines` takes it from the head of its line once all its
budgets can pay. So a claim looks at lines, of which there are few, and never at the jobs behind a
head.

Moves only note their effects on tokens and lines. `flush` writes these before the claims of the
same transaction, so a crash cannot come in between. Every write goes to memory and to the database.
If a transaction fails, the ledger is read again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from zq.features.budgets.model import Account, BudgetPolicy, Draws, Line, LineName, opened
from zq.features.budgets.model_jobs import draws_in
from zq.features.budgets.tick_tokens import TokenAccounts
from zq.model.job import MAX_TIME, Brief, JobRecord, NewJob
from zq.model.lifecycle import Status
from zq.store.api import Transaction, as_json
from zq.tick.work import UnitOfWork

HELD_BY_BUDGET = 2
"""The bit of `held` that is set for waiting jobs that draw from budgets."""

_WAITS = frozenset({Status.SCHEDULED, Status.READY})
_UNFINISHED = _WAITS | {Status.IN_FLIGHT}


def ledger_of(work: UnitOfWork) -> "TokenLedger":
    """The ledger of a transaction."""
    for hold in work.holds:
        if isinstance(hold, TokenLedger):
            return hold
    raise LookupError("this tick has no ledger of budgets")


class TokenLedger:
    """The budgets of one store. A transaction calls `begin`, and then `commit` or `roll_back`.

    Most stores have no budget. Their transactions skip the ledger, as it is not `is_used`.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        """The most budgets that there may be."""
        self._tokens = TokenAccounts()
        self._accounts = self._tokens.by_key
        self._made: Counter[str] = Counter()
        """How many of the budgets each key has made."""
        self._lines: dict[LineName, Line] = {}
        self._by_queue: dict[str, dict[int, Line]] = {}
        """The lines with ready jobs."""
        self._last_id = 0
        self._is_known = False
        self._tx: Transaction
        self._has_stepped = False
        """True if the clock went backwards since the last transaction."""
        self.is_used = True
        """True if there may be a budget, or the last one has gone in this transaction."""
        self.is_retimed = False
        """True if some budget's next refill time has changed."""
        self._clear_notes()

    def learn(self, tx: Transaction) -> None:
        """Read the store, before the first transaction."""
        self._tx = tx
        self._read()

    def begin(self, tx: Transaction, now: int) -> None:
        """Serve a transaction at a steady time in milliseconds."""
        self._tx = tx
        self.is_retimed = False
        if not self._is_known:
            self._read()
        self._has_stepped = self._tokens.pass_to(tx, now)
        if self._has_stepped:
            self._touch_all()

    def serve(self, tx: Transaction) -> None:
        """Continue in a part of the transaction, or after a part that was kept."""
        self._tx = tx

    def commit(self) -> None:
        """Note that the transaction is committed."""
        self._tokens.commit()

    def roll_back(self) -> None:
        """Note that the transaction has failed."""
        self._tokens.roll_back()
        self.forget()

    def forget(self) -> None:
        """Forget everything: the next transaction reads it again."""
        self._is_known = False
        self.is_used = True
        self._clear_notes()

    def recall(self) -> None:
        """Read again what an undone part may have changed."""
        self.forget()
        self._read()
        if self._has_stepped:
            self._touch_all()

    # Budgets

    def account(self, key: str) -> Account | None:
        """A budget's account, for reading."""
        return self._accounts.get(key)

    @property
    def room(self) -> int:
        """How many more budgets there may be."""
        return self.most - len(self._accounts)

    def made_by(self, maker: str) -> int:
        """How many budgets a key has made."""
        return self._made[maker]

    def available(self, key: str) -> int:
        """How many tokens a budget has now."""
        return self._accounts[key].available(self._tokens.now)

    def open(
        self,
        tx: Transaction,
        steady: int,
        key: str,
        policy: BudgetPolicy,
        now: int,
        maker: str | None = None,
    ) -> Account:
        """Create a budget. It is full. The first one begins the transaction here."""
        if not self.is_used:
            self.begin(tx, steady)
            self.is_used = True
        account = opened(key, policy, now, self._tokens.now, maker)
        self._accounts[key] = account
        if maker is not None:
            self._made[maker] += 1
        self._touch(key)
        return account

    def change(self, key: str, policy: BudgetPolicy, now: int) -> Account:
        """Give a budget another policy from now on."""
        account = self._accounts[key]
        account.change(policy, self._tokens.now)
        account.updated_at = now
        self._touch(key)
        return account

    def close(self, key: str) -> None:
        """Delete a budget that no unfinished job draws from."""
        maker = self._accounts.pop(key).maker
        if maker is not None:
            self._made[maker] -= 1
        self._touched.discard(key)
        self._gained.discard(key)
        self._tx.run("delete_budgets", budgets=[key])

    def unfinished(self, key: str) -> int:
        """How many unfinished jobs draw from a budget."""
        return sum(line.unfinished for line, _ in self._drawing(key))

    def waiting(self, key: str) -> int:
        """How many ready jobs draw from a budget."""
        return sum(line.waiting for line, _ in self._drawing(key))

    def unpayable(self, key: str, most: int) -> tuple[int, int]:
        """How many unfinished jobs draw more than `most` tokens, and the most that one draws."""
        drawing = [(line.unfinished, cost) for line, cost in self._drawing(key) if cost > most]
        over = [(n, cost) for n, cost in drawing if n]
        return sum(n for n, _ in over), max([cost for _, cost in over], default=0)

    # Moves of jobs

    def note(
        self, job: Brief | JobRecord, before: Status | None, after: Status | None, queue: str
    ) -> None:
        """Note a move of a job. None means that the job does not exist.

        `job` is as before the move, except for its status; `queue` is the queue after the move.
        """
        draws = draws_in(job.options)
        if draws:
            self.rebind(job, draws, before, draws, after, queue)

    def rebind(
        self,
        job: Brief | JobRecord,
        was: Draws | None,
        before: Status | None,
        draws: Draws | None,
        after: Status | None,
        queue: str,
    ) -> None:
        """Note a move by which a job may change its draws."""
        if was and before in _UNFINISHED:
            self._leave(job, was, before, stays_in_flight=after is Status.IN_FLIGHT)
        if draws and after in _UNFINISHED:
            line = self._line(queue, draws)
            line.unfinished += 1
            if after is Status.READY:
                self._wait(line, 1)
                self._entering[job.key] = line
            if after in _WAITS and (before not in _WAITS or not was):
                self._holding.add(job.key)
                self._freed.discard(job.key)
            if after is Status.IN_FLIGHT and before is not Status.IN_FLIGHT:
                for draw in draws:
                    self._accounts[draw.key].draw(draw.cost, self._tokens.now)
                    self._touched.add(draw.key)
        elif was and after in _WAITS:
            self._freed.add(job.key)
            self._holding.discard(job.key)

    def bring(self, key: int, job: NewJob, status: Status) -> None:
        """Note a new job that draws from budgets and is stored with the bit."""
        draws = draws_in(job.options)
        assert draws is not None
        line = self._line(job.queue, draws)
        line.unfinished += 1
        if status is Status.READY:
            self._wait(line, 1)
            self._entering[key] = line

    def regroup(self, shut: Iterable[int], opened: Sequence[JobRecord]) -> None:
        """Note that jobs now wait behind the head of their group, or have become the head."""
        for key in shut:
            self._leaving.add(key)
            self._entering.pop(key, None)
        for job in opened:
            draws = draws_in(job.options)
            if draws and job.status is Status.READY:
                self._entering[job.key] = self._line(job.queue, draws)

    def mend(self) -> None:
        """Note that jobs were set aside whose draws are unknown."""
        self._is_torn = True

    # Claims

    def waiting_lines(self, queues: Sequence[str] | None) -> list[Line]:
        """The lines with ready jobs, of some queues or of all."""
        by_queue = self._by_queue
        if queues is None:
            return [line for lines in by_queue.values() for line in lines.values()]
        return [line for queue in queues if queue in by_queue for line in by_queue[queue].values()]

    def payable(self, line: Line) -> int:
        """How many jobs of a line could be paid with all present tokens."""
        return min([self.available(key) // cost for key, cost in line.costs])

    # The store

    def flush(self) -> set[str]:
        """Write what was noted. Return the queues with jobs that can be paid now."""
        tx = self._tx
        if self._is_torn:
            self._mend()
        leaving, holding, freed = self._leaving, self._holding, self._freed
        noted = [("step_out", leaving), ("hold_for_budgets", holding), ("free_of_budgets", freed)]
        for name, keys in noted:
            if keys:
                tx.run(name, keys=list(keys))
        self._write_lines()
        if self._entering:
            tx.run("line_up", places=[(key, line.id) for key, line in self._entering.items()])
        has_changed = self._gained or self._touched or self._entering
        woken = self._look_ahead() if has_changed else set()
        if self._touched:
            self._tokens.write(tx, self._touched)
        self._clear_notes()
        self.is_used = bool(self._accounts)
        return woken

    def attend(self) -> None:
        """Look for jobs that can be paid now."""
        for account in self._accounts.values():
            if account.pays_at is not None and account.pays_at <= self._tokens.now:
                self._touch(account.key)

    def clear(self, *, budgets: bool) -> None:
        """Forget all jobs and, with `budgets`, the budgets too."""
        self._tx.run("clear_parked")
        self._tx.run("clear_lines")
        self._clear_notes()
        self._lines.clear()
        self._by_queue.clear()
        if budgets:
            self._accounts.clear()
            self._made.clear()
            self._tx.run("clear_budgets")
        for account in self._accounts.values():
            account.in_use = 0
            self._touch(account.key)

    def _leave(
        self, job: Brief | JobRecord, draws: Draws, before: Status, *, stays_in_flight: bool
    ) -> None:
        line = self._line(job.queue, draws)
        line.unfinished -= 1
        if before is Status.READY:
            self._wait(line, -1)
            if self._entering.pop(job.key, None) is None:
                self._leaving.add(job.key)
        elif before is Status.IN_FLIGHT and not stays_in_flight:
            for draw in draws:
                self._touched.add(draw.key)
                if self._accounts[draw.key].give_back(draw.cost):
                    self._gained.add(draw.key)

    def _line(self, queue: str, draws: Draws) -> Line:
        name = (queue, as_json(draws))
        line = self._lines.get(name)
        if line is None:
            self._last_id += 1
            line = self._lines[name] = Line(self._last_id, queue, draws)
        self._changed[name] = line
        return line

    def _wait(self, line: Line, n: int) -> None:
        line.waiting += n
        lines = self._by_queue.setdefault(line.queue, {})
        if line.waiting:
            lines[line.id] = line
        else:
            lines.pop(line.id, None)
            if not lines:
                del self._by_queue[line.queue]

    def _touch(self, key: str) -> None:
        self._touched.add(key)
        self._gained.add(key)

    def _touch_all(self) -> None:
        for key in self._accounts:
            self._touch(key)

    def _drawing(self, key: str) -> Iterable[tuple[Line, int]]:
        for line in self._lines.values():
            for name, cost in line.costs:
                if name == key:
                    yield line, cost

    def _look_ahead(self) -> set[str]:
        """Learn when lines can be paid next. Return the queues of those that new tokens pay now."""
        woken: set[str] = set()
        times: dict[str, int] = {}
        for lines in self._by_queue.values():
            for line in lines.values():
                dues = [
                    (self._accounts[key].pays(cost, self._tokens.now), key)
                    for key, cost in line.costs
                ]
                known = [(time, key) for time, key in dues if time is not None]
                if len(known) < len(dues):
                    continue
                due, last = max(known)
                if due > self._tokens.now:
                    times[last] = min(due, times.get(last, MAX_TIME))
                elif any(key in self._gained for _, key in known):
                    woken.add(line.queue)
        for account in self._accounts.values():
            time = times.get(account.key)
            if account.pays_at != time:
                account.pays_at = time
                self._touched.add(account.key)
                self.is_retimed = True
        return woken

    def _write_lines(self) -> None:
        gone = [name for name, line in self._changed.items() if not line.unfinished]
        rows = [
            (line.id, line.queue, name[1], line.unfinished, line.waiting)
            for name, line in self._changed.items()
            if line.unfinished
        ]
        if rows:
            self._tx.run("write_lines", lines=rows)
        if gone:
            self._tx.run("delete_lines", lines=[self._lines.pop(name).id for name in gone])

    def _read(self) -> None:
        self._tokens.read(self._tx)
        makers = [account.maker for account in self._accounts.values()]
        self._made = Counter([maker for maker in makers if maker is not None])
        self._lines, self._by_queue, self._last_id = {}, {}, 0
        if self._accounts:
            for id, queue, draws, unfinished, waiting in self._tx.table("read_lines"):
                line = Line(id, queue, msgspec.json.decode(draws, type=Draws), unfinished)
                self._lines[queue, draws] = line
                self._last_id = max(self._last_id, id)
                if waiting:
                    self._wait(line, waiting)
        self._is_known = True
        self.is_used = bool(self._accounts)

    def _mend(self) -> None:
        """Count again from the remaining rows."""
        self._tx.run("forget_lost")
        for line in self._lines.values():
            line.unfinished = line.waiting = 0
        self._changed.update(self._lines)
        self._by_queue.clear()
        for queue, draws, unfinished, waiting in self._tx.table("count_lines"):
            line = self._line(queue, msgspec.json.decode(draws, type=Draws))
            line.unfinished = unfinished
            if waiting:
                self._wait(line, waiting)
        drawn = dict(self._tx.table("read_in_use"))
        for account in self._accounts.values():
            account.in_use = drawn.get(account.key, 0)
            self._touch(account.key)

    def _clear_notes(self) -> None:
        self._touched: set[str] = set()
        """Budgets to write."""
        self._gained: set[str] = set()
        """Budgets that have more tokens than before."""
        self._changed: dict[LineName, Line] = {}
        self._leaving: set[int] = set()
        self._entering: dict[int, Line] = {}
        self._holding: set[int] = set()
        self._freed: set[int] = set()
        self._is_torn = False
