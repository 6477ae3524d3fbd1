"""The ledger of budgets: their tokens, and which lines may have them.

A job that draws from budgets waits in a line (`zq.tick.lines`). Once a claim finds a line that a
budget cannot pay, the line is shut by the first such budget: it waits in that budget's own queue,
with the lines of the same cost and queue, in their order. A budget that gains tokens opens as many
lines of each such kind as these tokens pay for, and no more. So for each kind as many lines are
open as there are tokens, or all. A line that another budget shuts, or whose job goes elsewhere,
gives up what it was opened for. If the budget has forgotten what lines are open, it opens too many,
which claims then shut again.

Moves only note their effects on tokens. `flush` writes these before the claims of the same
transaction, so a crash cannot come in between. Every write goes to memory and to the database. If a
transaction fails, the ledger is read again. If the clock has gone back, accounts are written at
once, so that a part of a transaction that is undone keeps that.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from zq.features.budgets.model import Account, BudgetPolicy, Draw, Draws, account_of, opened
from zq.features.budgets.model_jobs import draws_in
from zq.model.job import MAX_TIME, Brief, JobRecord, NewJob
from zq.model.lifecycle import Status
from zq.store.api import Transaction
from zq.tick.lines import NOWHERE, Placed


class TokenAccounts:
    """Accounts by the keys of their budgets. A transaction ends with `commit` or `roll_back`."""

    def __init__(self) -> None:
        self.by_key: dict[str, Account] = {}
        self.now = 0
        """The steady time of the current transaction, in milliseconds; 0 before the first."""
        self._committed = 0

    def read(self, tx: Transaction) -> None:
        """Read the accounts from the database."""
        self.by_key.clear()
        for account in map(account_of, tx.table("read_budgets")):
            self.by_key[account.key] = account

    def pass_to(self, tx: Transaction, now: int) -> bool:
        """Go on at another time. Return whether the clock has gone back, so that all times change.

        Tokens that have come so far stay. After a stop of the server, nobody knows how far the
        clock had come: further tokens count from the time that it shows now.
        """
        former, self.now = self.now, now
        accounts = self.by_key.values()
        if former:
            behind = list(accounts) if now < former else []
            for account in behind:
                account.settled_at = max(account.settled_at - (former - now), 0)
                if account.held_until is not None:
                    account.held_until = max(account.held_until - (former - now), 0)
        else:
            behind = [account for account in accounts if account.settled_at > now]
            for account in behind:
                account.settled_at = now
        if behind:
            self.write(tx, [account.key for account in behind])
        return bool(behind)

    def commit(self) -> None:
        """Note that the transaction is committed."""
        self._committed = self.now

    def roll_back(self) -> None:
        """Note that the transaction has failed: its time is still to come."""
        self.now = self._committed

    def write(self, tx: Transaction, keys: Iterable[str]) -> None:
        """Write accounts to the database."""
        tx.replace("budgets", COLUMNS, [_row(self.by_key[key]) for key in keys])


COLUMNS = (
    "key, allocation, duration_ms, burst, created_at, updated_at, in_use, level, carry, settled_at,"
    " pays_at, maker, unfinished, waiting, costliest, held_until"
)


def _row(account: Account) -> tuple[object, ...]:
    policy = account.policy
    return (
        *(account.key, policy.allocation, policy.duration_ms, policy.burst),
        *(account.created_at, account.updated_at, account.in_use, account.level),
        *(account.carry, account.settled_at, account.pays_at, account.maker),
        *(account.unfinished, account.waiting, account.costliest, account.held_until),
    )


MOST_DUE = 1_000
"""So many budgets are looked at in one tick because new tokens have come by now."""

MOST_KINDS = 64
"""A budget looks at so many kinds of shut lines, each with a cost and a queue, the lowest costs
first. Others wait until these have gone."""

MOST_OPENED = 1_000
"""The most lines of a kind that one tick opens. The next tick goes on."""

MOST_COSTLY = 10_000
"""So many lines and jobs in flight are looked at when a budget is narrowed, in about 10 ms."""

_UNFINISHED = frozenset({Status.SCHEDULED, Status.READY, Status.IN_FLIGHT})


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
        self._next = 0
        """No budget has tokens for more lines by time alone before this."""
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
        self._tx = tx
        self._read()

    def begin(self, tx: Transaction, now: int) -> None:
        self._tx = tx
        self.is_retimed = False
        if not self._is_known:
            self._read()
        self._has_stepped = self._tokens.pass_to(tx, now)
        if self._has_stepped:
            self._touch_all()
        if now >= self._next:
            self._asked.update(tx.names("due_budgets", now=now, limit=MOST_DUE))

    def serve(self, tx: Transaction) -> None:
        self._tx = tx

    def commit(self) -> None:
        self._tokens.commit()

    def roll_back(self) -> None:
        self._tokens.roll_back()
        self.forget()

    def forget(self) -> None:
        self._is_known = False
        self.is_used = True
        self._clear_notes()

    def recall(self) -> None:
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

    def hold(self, key: str, until: int) -> Account:
        """Have a budget pay nothing before a steady time."""
        account = self._accounts[key]
        account.hold(until)
        self._touch(key)
        return account

    def reopen(self, key: str) -> Account:
        """End the hold of a budget."""
        account = self._accounts[key]
        account.reopen()
        self._touch(key)
        return account

    def close(self, key: str) -> None:
        """Delete a budget that no unfinished job draws from."""
        maker = self._accounts.pop(key).maker
        if maker is not None:
            self._made[maker] -= 1
        self._touched.discard(key)
        self._asked.discard(key)
        self._tx.write("delete_budgets", budgets=[key])

    def unpayable(self, key: str, most: int) -> tuple[int, int]:
        """How many unfinished jobs draw more than `most` tokens, and the most that one draws.

        All waiting jobs that draw must be in their lines. If there are too many lines, or jobs in
        flight, to look at, the budget's own upper bound stands for what its jobs draw.
        """
        account = self._accounts[key]
        if account.costliest <= most:
            return 0, 0
        place = {"key": key, "most": most, "limit": MOST_COSTLY}
        ((jobs, costliest, has_seen_all),) = self._tx.rows_of("count_costly", **place)
        if not jobs and not has_seen_all:
            return account.unfinished, account.costliest
        return jobs, costliest

    # Moves of jobs

    def note(
        self,
        job: Brief | JobRecord,
        before: Status | None,
        after: Status | None,
        queue: str,
        now: int,
    ) -> None:
        """Note a move of a job that it holds. None means that the job does not exist."""
        draws = draws_in(job.options)
        self.rebind(draws, before, draws, after)

    def note_together(
        self,
        jobs: Sequence[Brief | JobRecord],
        before: Status | None,
        after: Status | None,
        now: int,
    ) -> None:
        """Note the move of jobs that all come to one state."""
        for job in jobs:
            draws = draws_in(job.options)
            if draws:
                self.rebind(draws, job.status if before is None else before, draws, after)

    def rebind(
        self, was: Draws | None, before: Status | None, draws: Draws | None, after: Status | None
    ) -> None:
        """Note a move by which a job may change its draws."""
        stays_in_flight = before is after is Status.IN_FLIGHT
        if was and before in _UNFINISHED:
            for draw in was:
                self._leave(draw, before, after, stays_in_flight=stays_in_flight)
        if draws and after in _UNFINISHED:
            for draw in draws:
                self._count(draw, after)
                if after is Status.IN_FLIGHT and not stays_in_flight:
                    self._accounts[draw.key].draw(draw.cost, self._tokens.now)

    def bring(self, job: NewJob, status: Status) -> None:
        """Note a new job that draws from budgets."""
        for draw in draws_in(job.options) or ():
            self._count(draw, status)

    def spend(self, job: Brief, used: Mapping[str, int]) -> None:
        """Note what a job that has succeeded has used, where that differs from what it drew."""
        for draw in draws_in(job.options) or ():
            if draw.key in used:
                self._accounts[draw.key].correct(draw.cost, used[draw.key], self._tokens.now)
                self._touch(draw.key)

    def mend(self) -> None:
        """Note that jobs were set aside whose draws are unknown."""
        self._is_torn = True

    def refuse(self, draws: Draws, refused: Draw, left: int) -> None:
        """Note that a budget cannot pay for a line, since it has only so many tokens `left`."""
        for draw in draws:
            account = self._accounts[draw.key]
            rest = left if draw is refused else account.offered - draw.cost
            account.offered = max(min(account.offered, rest), 0)
            self._asked.add(draw.key)
            if draw is not refused:
                self._passed.add(draw.key)

    def pass_on(self) -> bool:
        """Open other lines for what another budget's refusals have left. Return whether it did."""
        passed = list(self._passed)
        self._passed.clear()
        return bool(passed and self._open_lines(passed))

    # The store

    @property
    def noted(self) -> int:
        """How many budgets have changed."""
        return len(self._touched)

    def places(self) -> Placed:
        """Budgets have no places."""
        return NOWHERE

    def flush(self) -> set[str]:
        """Open lines that can be paid now. Return their queues."""
        if self._is_torn:
            self._mend()
        woken = self._open_lines(self._asked) if self._asked else set()
        self._asked.clear()
        self._passed.clear()
        return woken

    def store(self) -> None:
        """Write the budgets that have changed."""
        if self._touched:
            self._tokens.write(self._tx, self._touched)
        if self._tokens.now >= self._next:
            self._next = self._tx.value("next_pay") or MAX_TIME
        self._clear_notes()
        self.is_used = bool(self._accounts)

    def clear(self, *, budgets: bool) -> None:
        """Forget all jobs and, with `budgets`, the budgets too."""
        self._clear_notes()
        if budgets:
            self._accounts.clear()
            self._made.clear()
            self._tx.write("clear_budgets")
        for account in self._accounts.values():
            account.in_use = account.unfinished = account.waiting = account.costliest = 0
            self._touch(account.key)

    def _count(self, draw: Draw, status: Status) -> None:
        """Count an unfinished job that draws."""
        account = self._accounts[draw.key]
        account.unfinished += 1
        account.waiting += status is Status.READY
        account.costliest = max(account.costliest, draw.cost)
        self._touched.add(draw.key)

    def _leave(
        self, draw: Draw, before: Status, after: Status | None, *, stays_in_flight: bool
    ) -> None:
        """Count a job that drew no longer, wherever it goes."""
        account = self._accounts[draw.key]
        account.unfinished -= 1
        if not account.unfinished:
            account.costliest = 0
        if before is Status.READY:
            account.waiting -= 1
            # Taken or not, it needs no more what its line was opened for.
            account.offered = max(account.offered - draw.cost, 0)
            if after is not Status.IN_FLIGHT or _has_no_time(account):
                self._asked.add(draw.key)
        elif before is Status.IN_FLIGHT and not stays_in_flight and account.give_back(draw.cost):
            self._asked.add(draw.key)
        self._touched.add(draw.key)

    def _touch(self, key: str) -> None:
        self._touched.add(key)
        self._asked.add(key)

    def _touch_all(self) -> None:
        for key in self._accounts:
            self._touch(key)

    def _open_lines(self, keys: Iterable[str]) -> set[str]:
        """Open lines for which these budgets have tokens now. Return the queues of the lines."""
        woken: set[str] = set()
        asked = [key for key in keys if key in self._accounts]
        first = {
            key: (cost, queue) for key, cost, queue in self._tx.table("first_shut", names=asked)
        }
        for key in asked:
            account = self._accounts[key]
            left = max(account.available(self._tokens.now), 0)
            if key not in first:
                account.offered = left
                if account.pays_at is not None:
                    self._learn_time(account, set())
                continue
            kinds = list(self._kinds(key, first[key]))
            # Kinds come in the order of their costs.
            left = min(left, account.offered + MOST_OPENED * kinds[0][0])
            for cost, queue in kinds:
                more = left // cost - account.offered // cost
                if more > 0:
                    self._tx.write("open_shut", by=key, cost=cost, queue=queue, most=more)
                    woken.add(queue)
            account.offered = left
            self._learn_time(account, {cost for cost, _ in kinds})
        return woken

    def _kinds(self, key: str, first: tuple[int, str]) -> Iterator[tuple[int, str]]:
        """The costs of the lines that a budget has shut, with their queues."""
        kind = first
        for _ in range(MOST_KINDS):
            yield kind
            cost, queue = kind
            following = self._tx.table("next_shut", by=key, cost=cost, queue=queue)
            if not following:
                return
            ((cost, queue),) = following
            kind = (cost, queue)

    def _learn_time(self, account: Account, costs: set[int]) -> None:
        """Learn when a budget has tokens for one more line of one of these costs."""
        now = self._tokens.now
        more = [(account.offered // cost + 1) * cost for cost in costs]
        times = [time for tokens in more if (time := account.pays(tokens, now)) is not None]
        pays_at = min(times, default=None)
        if account.pays_at != pays_at:
            account.pays_at = pays_at
            self._next = min(self._next, MAX_TIME if pays_at is None else pays_at)
            self._touched.add(account.key)
            self.is_retimed = True

    def _read(self) -> None:
        self._tokens.read(self._tx)
        makers = [account.maker for account in self._accounts.values()]
        self._made = Counter([maker for maker in makers if maker is not None])
        self._next = 0
        self._is_known = True
        self.is_used = bool(self._accounts)

    def _mend(self) -> None:
        """Count again from the remaining rows."""
        found = {key: counts for key, *counts in self._tx.table("count_draws")}
        for account in self._accounts.values():
            counts = found.get(account.key, (0, 0, 0))
            account.unfinished, account.waiting, account.in_use = counts
            account.offered = 0
            self._touch(account.key)
        self._is_torn = False

    def _clear_notes(self) -> None:
        self._touched: set[str] = set()
        """Budgets to write."""
        self._asked: set[str] = set()
        """Budgets that may be able to pay for more lines than are open."""
        self._passed: set[str] = set()
        """Budgets that could pay for more, but whose lines other budgets have shut."""
        self._is_torn = False


def _has_no_time(account: Account) -> bool:
    """True if jobs wait for a budget that fills up, and it does not know when it pays again.

    It knows no time while lines are open for all that it can ever hold.
    """
    return bool(
        account.waiting and account.pays_at is None and account.policy.duration_ms is not None
    )
