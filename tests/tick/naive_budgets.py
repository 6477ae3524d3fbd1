"""The naive queue with budgets: draws, payments and tokens that come back."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor

from zq.features.budgets.model import (
    BudgetBound,
    BudgetExists,
    BudgetInUse,
    BudgetNotBound,
    BudgetNotFound,
    BudgetPolicy,
    BudgetState,
    Draw,
)
from zq.features.budgets.model_jobs import (
    Binding,
    BindJob,
    BindSlice,
    Bound,
    ChangeBudget,
    CreateBudget,
    DeleteBudget,
    HoldBudget,
    PutBudget,
    ReopenBudget,
    draws_in,
)
from zq.model.commands import AnyCommand, Clear, Deadlines, Due, Enqueue, Tick
from zq.model.errors import JobNotFound, Unprocessable, ZqError
from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.settling import Completion, Policy

from .naive_jobs import IN_FLIGHT, READY, SCHEDULED, Answers
from .naive_leases import LeasingQueue
from .naive_purse import Purse, merged
from .naive_row import Row

UNFINISHED = (SCHEDULED, READY, IN_FLIGHT)
BUDGET_CHANGES = (
    *(CreateBudget, PutBudget, ChangeBudget, DeleteBudget),
    *(HoldBudget, ReopenBudget, BindJob, BindSlice),
)


class BudgetingQueue(LeasingQueue):
    """Jobs that wait until all their budgets can pay, and block nobody meanwhile."""

    budget_changes = BUDGET_CHANGES

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.purses: dict[str, Purse] = {}
        self._seen: int | None = None
        """The time of the last tick of this life."""
        self._payable: set[int] = set()
        """The jobs that could be paid when it was over."""

    # What there is to see

    def budgets(self, now: int) -> list[BudgetState]:
        """All of them, by their keys."""
        return [self._shown(key, now) for key in sorted(self.purses)]

    def in_use(self) -> Counter[str]:
        """What the jobs in flight have drawn of each budget."""
        drawn: Counter[str] = Counter()
        for row in self.rows.values():
            if row.status is IN_FLIGHT:
                drawn.update({draw.key: draw.cost for draw in row.draws})
        return drawn

    def lines(self) -> dict[tuple[str, tuple[Draw, ...]], tuple[int, int]]:
        """How many jobs of a queue that draw the same are unfinished, and how many are ready."""
        drawing = [row for row in self.rows.values() if row.draws and row.status in UNFINISHED]
        unfinished = Counter((row.queue, row.draws) for row in drawing)
        ready = Counter((row.queue, row.draws) for row in drawing if row.status is READY)
        return {line: (n, ready[line]) for line, n in unfinished.items()}

    def bits(self) -> dict[int, int]:
        """What keeps each job from the indexes of claims: 1 its group, 2 its line."""
        waiting = {row.key: row.held + 2 * self._has_line(row) for row in self.rows.values()}
        return {key: bits for key, bits in waiting.items() if bits}

    def _has_line(self, row: Row) -> bool:
        if row.draws:
            return row.status in (SCHEDULED, READY)
        ages = self._set_for(row.queue).priority_aging_ms is not None
        return ages and row.status is READY and not row.held

    def deadlines(self) -> Deadlines:
        drawn = self.in_use()
        times = []
        for row in self._in_line():
            pays = [self.purses[d.key].pays(self.steady, drawn[d.key], d.cost) for d in row.draws]
            known = [time for time in pays if time is not None]
            if len(known) == len(pays) and max(known) > self.steady:
                times.append(max(known))
        return dict(super().deadlines()) | ({Due.BUDGET: min(times)} if times else {})

    # What happens

    def tick(self, tick: Tick) -> Answers:
        self._pass_to(tick.steady)
        answers = super().tick(tick)
        self._payable = {row.key for row in self._in_line() if self._can_pay(row)}
        return answers

    def restart(self) -> int:
        self._seen, self._payable = None, set()
        return super().restart()

    def _pass_to(self, now: int) -> None:
        """A clock that goes back gives no tokens and takes none, of which a start knows nothing."""
        for purse in self.purses.values():
            if self._seen is None:
                purse.since = min(purse.since, now)
            else:
                purse.since -= max(self._seen - now, 0)
                purse.held_until -= max(self._seen - now, 0)
        self._seen = now

    def _apply(self, command: AnyCommand) -> object:
        try:
            match command:
                case CreateBudget(key, policy):
                    if key in self.purses:
                        return BudgetExists(key)
                    return self._put(key, policy)
                case PutBudget(key, policy):
                    return self._put(key, policy)
                case ChangeBudget(key, patch):
                    return self._put(key, merged(self._purse(key).policy, patch))
                case HoldBudget(key, for_ms):
                    purse = self._purse(key)
                    purse.held_until = max(purse.held_until, self.steady + for_ms)
                    return self._shown(key, self.steady)
                case ReopenBudget(key):
                    self._purse(key).held_until = 0
                    return self._shown(key, self.steady)
                case DeleteBudget(key):
                    self._close(key)
                    return None
                case BindJob(key, text_id, binding):
                    return self._bind_job(self.rows.get(key), text_id, binding)
                case BindSlice(keys, filter, binding):
                    return self._bind(self._among(keys, filter), binding)
                case Clear(settings=True):
                    reply = super()._apply(command)
                    self.purses.clear()
                    return reply
                case _:
                    return super()._apply(command)
        except ZqError as refusal:
            return refusal

    def _purse(self, key: str) -> Purse:
        if key not in self.purses:
            raise BudgetNotFound(key)
        return self.purses[key]

    def _put(self, key: str, policy: BudgetPolicy) -> BudgetState:
        if key not in self.purses:
            full = Fraction(policy.capacity)
            self.purses[key] = Purse(policy, self.now, self.now, self.steady, full)
            return self._shown(key, self.steady)
        purse = self.purses[key]
        if purse.policy == policy:
            return self._shown(key, self.steady)
        costs = [draw.cost for draw in self._drawn_of(key) if draw.cost > policy.capacity]
        if costs:
            raise Unprocessable(
                f"budget '{key}' cannot allocate {policy.capacity}: {jobs(len(costs))} draw up to"
                f" {max(costs)} from it. Raise the allocation, delete them, or wait for them to"
                " drain."
            )
        purse.change(policy, self.steady, self.in_use()[key])
        purse.updated_at = self.now
        return self._shown(key, self.steady)

    def _close(self, key: str) -> None:
        self._purse(key)
        if drawn := len(self._drawn_of(key)):
            raise BudgetInUse(
                f"budget '{key}' is referenced by {jobs(drawn)}. Delete them or wait for them to"
                " finish before deleting it."
            )
        if templates := self._templates_of(key):
            raise BudgetInUse(
                f"budget '{key}' is referenced by {templates} cron template"
                f"{'' if templates == 1 else 's'}. Delete or change them before deleting it."
            )
        del self.purses[key]

    def _templates_of(self, _key: str) -> int:
        """How many schedules name a budget: those are the business of a subclass."""
        return 0

    # What jobs draw

    def _bind_job(self, row: Row | None, text_id: str, binding: Binding) -> JobRecord:
        if row is None or row.expired(self.now):
            raise JobNotFound
        if row.status not in (SCHEDULED, READY):
            words = {"IN_FLIGHT": "InFlight"}
            shown = words.get(row.status.name, row.status.name.title())
            raise Unprocessable(
                f"job '{text_id}' is {shown} — only queued jobs may have their budgets changed"
            )
        self._rebind([(row, bound(row, binding))], binding)
        return row.job()

    def _bind(self, rows: Iterable[Row], binding: Binding) -> Bound:
        chosen: list[tuple[Row, tuple[Draw, ...]]] = []
        blocked: list[int] = []
        for row in sorted(rows, key=lambda row: row.key):
            try:
                draws = bound(row, binding)
            except (BudgetBound, BudgetNotBound):
                continue
            if draws == row.draws:
                continue
            if row.status is IN_FLIGHT:
                blocked.append(row.key)
            elif row.status in (SCHEDULED, READY):
                chosen.append((row, draws))
        self._rebind(chosen, binding)
        return Bound(len(chosen), blocked)

    def _rebind(self, chosen: Sequence[tuple[Row, tuple[Draw, ...]]], binding: Binding) -> None:
        brought = {r.key: r.create_with for r in binding.requests if r.create_with is not None}
        for _, draws in chosen:
            self._require(draws, brought)
        if chosen:
            self._bring(brought)
        for row, draws in chosen:
            row.draws = draws
            self.outcome.gained.add(row.queue)

    def _refusal(self, command: Enqueue) -> Unprocessable | None:
        brought: dict[str, BudgetPolicy] = {}
        for index, new in enumerate(command.jobs):
            try:
                draws = draws_in(new.options)
                # A budget that comes with a job is there for the jobs behind it.
                brought = dict(new.makes or {}) | brought
                self._require(draws or (), brought)
            except Unprocessable as refusal:
                place = f"jobs[{index}]: " if len(command.jobs) > 1 else ""
                return Unprocessable(place + refusal.message)
        return None

    def _prepare(self, command: Enqueue) -> None:
        for new in command.jobs:
            self._bring(new.makes or {})

    def _cannot_return(self, row: Row) -> Unprocessable | None:
        try:
            self._require(row.draws, {})
        except Unprocessable as refusal:
            return refusal
        return None

    def _require(self, draws: Iterable[Draw], brought: Mapping[str, BudgetPolicy]) -> None:
        """Refuse what no budget could ever pay."""
        for key, cost in ((draw.key, draw.cost) for draw in draws):
            policy = self.purses[key].policy if key in self.purses else brought.get(key)
            if policy is None:
                raise Unprocessable(
                    f"budget '{key}' does not exist: create it first, or send create_with"
                )
            if cost > policy.capacity:
                raise Unprocessable(
                    f"budget '{key}' cannot pay a cost of {cost}: it never has more than"
                    f" {policy.capacity}"
                )

    def _bring(self, brought: Mapping[str, BudgetPolicy]) -> None:
        for key, policy in brought.items():
            if key not in self.purses:
                self._put(key, policy)

    # Who is next

    def _pays(self, row: Row, spent: Counter[str]) -> bool:
        drawn = self.in_use()
        for draw in row.draws:
            left = self.purses[draw.key].left(self.steady, drawn[draw.key])
            if left - spent[draw.key] < draw.cost:
                return False
        spent.update({draw.key: draw.cost for draw in row.draws})
        return True

    def _succeed(self, key: int, told: Completion | None) -> bool:
        row = self.rows.get(key)
        if row is not None and row.status is IN_FLIGHT:
            for draw in row.draws:
                if told is not None and told.used and draw.key in told.used:
                    self.purses[draw.key].correct(self.steady, draw.cost, told.used[draw.key])
        return super()._succeed(key, told)

    def _to(self, row: Row, status: Status) -> None:
        if status is IN_FLIGHT and row.status is not IN_FLIGHT:
            for draw in row.draws:
                self.purses[draw.key].spend(self.steady, draw.cost)
        super()._to(row, status)

    def _open_heads(self) -> None:
        super()._open_heads()
        # Whoever waits hears of each job that can be paid by now, and could not before.
        for row in self._in_line():
            if row.key not in self._payable and self._can_pay(row):
                self.outcome.gained.add(row.queue)

    def _can_pay(self, row: Row) -> bool:
        return self._pays(row, Counter())

    def _in_line(self) -> Iterator[Row]:
        """The jobs that nothing but their budgets and the gates of their queue hold back."""
        for row in self.rows.values():
            if row.status is READY and row.draws and not row.held:
                yield row

    def _drawn_of(self, key: str) -> list[Draw]:
        """What each unfinished job draws from a budget."""
        drawing = [row for row in self.rows.values() if row.status in UNFINISHED]
        return [draw for row in drawing for draw in row.draws if draw.key == key]

    def _shown(self, key: str, now: int) -> BudgetState:
        purse = self.purses[key]
        lines = [
            numbers
            for (_, draws), numbers in self.lines().items()
            if any(draw.key == key for draw in draws)
        ]
        return BudgetState(
            key,
            purse.policy,
            purse.created_at,
            purse.updated_at,
            floor(purse.left(now, self.in_use()[key])),
            sum(ready for _, ready in lines),
            sum(unfinished for unfinished, _ in lines),
            purse.held_until if purse.held_until > now else None,
        )


def bound(row: Row, binding: Binding) -> tuple[Draw, ...]:
    """What a job draws after a change."""
    if binding.verb == "replace":
        return tuple(Draw(request.key, request.cost) for request in binding.requests)
    costs = {draw.key: draw.cost for draw in row.draws}
    for request in binding.requests:
        if binding.verb == "add" and request.key in costs:
            raise BudgetBound(request.key)
        if binding.verb in ("change", "remove") and request.key not in costs:
            raise BudgetNotBound(request.key)
        if binding.verb == "remove":
            del costs[request.key]
        else:
            costs[request.key] = request.cost
    return tuple(Draw(key, cost) for key, cost in costs.items())


def jobs(n: int) -> str:
    return "1 unfinished job" if n == 1 else f"{n} unfinished jobs"
