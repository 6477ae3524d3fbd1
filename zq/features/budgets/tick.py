"""What budgets bring to the tick: changes of policies and draws, and the hold on jobs that draw."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec
from msgspec.structs import replace

from zq.features.budgets.model import (
    MAX_BUDGETS,
    MOST_BUDGETS_A_JOB,
    Account,
    BudgetBound,
    BudgetExists,
    BudgetInUse,
    BudgetNotBound,
    BudgetNotFound,
    BudgetPolicy,
    BudgetQuotaReached,
    BudgetState,
    Draw,
    Draws,
    TooManyBudgets,
    draws_of,
    patched_policy,
    unpayable,
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
from zq.features.budgets.tick_ledger import TokenLedger
from zq.model.checksums import with_options
from zq.model.errors import JobNotFound, Unprocessable, ZqError
from zq.model.job import NO_OPTIONS, JobRecord, JobSettings, NewJob
from zq.model.lifecycle import Status
from zq.model.reach import BudgetMaker, Reach
from zq.store.api import Line
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork, hold_of, note_slice, visible_job

AnyBudgetChange = (
    CreateBudget
    | PutBudget
    | ChangeBudget
    | HoldBudget
    | ReopenBudget
    | DeleteBudget
    | BindJob
    | BindSlice
)

USUAL_SHARE = 8
"""A key may make one part in so many of all budgets, unless its file says otherwise."""

_QUEUED = frozenset({Status.SCHEDULED, Status.READY})


def refuse_unpayable(
    ledger: TokenLedger, jobs: Sequence[NewJob], maker: BudgetMaker | None, place: str = "jobs"
) -> Unprocessable | None:
    """Why jobs cannot be stored: a budget is missing, or could never pay one of them.

    If there are several jobs, the message names one by its `place` in the request. `maker` is whose
    quota the budgets count against that the jobs bring.
    """
    coming: dict[str, BudgetPolicy] = {}
    for index, job in enumerate(jobs):
        draws = draws_in(job.options)
        if draws is None:
            continue
        refusal = _refusal(ledger, draws, job.makes or {}, coming, maker)
        if isinstance(refusal, BudgetQuotaReached):
            return refusal
        if refusal is not None:
            error = Unprocessable(refusal.message)
            return error if len(jobs) == 1 else error.about(index, place)
    return None


def create_missing(work: UnitOfWork, jobs: Sequence[NewJob], maker: BudgetMaker | None) -> None:
    """Create the budgets that jobs bring, if they do not exist."""
    for job in jobs:
        if job.makes is not None:
            _create(work, job.makes, maker)


def refuse_gone(ledger: TokenLedger, jobs: Sequence[JobRecord | NewJob]) -> Unprocessable | None:
    """Why finished jobs cannot come back: one of their budgets was deleted or narrowed."""
    for job in jobs:
        draws = draws_in(job.options)
        if draws is not None:
            refusal = _refusal(ledger, draws, {}, {}, None)
            if refusal is not None:
                return refusal
    return None


def change_budgets(work: UnitOfWork, commands: Sequence[AnyBudgetChange]) -> list[object]:
    """Change budgets, and what jobs draw from them, one command after the other."""
    return [_change(work, command) for command in commands]


def _change(work: UnitOfWork, command: AnyBudgetChange) -> object:
    try:
        match command:
            case CreateBudget():
                return _open(work, command.key, command.policy)
            case PutBudget():
                return _put(work, command.key, command.policy)
            case ChangeBudget():
                account = _account(work, command.key)
                return _put(work, command.key, patched_policy(account.policy, command.patch))
            case HoldBudget():
                until = work.steady + command.for_ms
                return _shown(
                    work, hold_of(work, TokenLedger).hold(_account(work, command.key).key, until)
                )
            case ReopenBudget():
                return _shown(
                    work, hold_of(work, TokenLedger).reopen(_account(work, command.key).key)
                )
            case DeleteBudget():
                _delete(work, command.key)
                return None
            case BindJob():
                return _bind_job(work, command)
            case BindSlice():
                bound = _bind_slice(work, command)
                note_slice(work, command.mark, bound.changed)
                return bound
    except ZqError as refusal:
        return refusal


def _shown(work: UnitOfWork, account: Account) -> BudgetState:
    return account.state(work.steady, work.steady - work.now)


def _open(work: UnitOfWork, key: str, policy: BudgetPolicy) -> BudgetState:
    ledger = hold_of(work, TokenLedger)
    if ledger.account(key) is not None:
        raise BudgetExists(key)
    if ledger.room <= 0:
        raise _too_many(ledger)
    work.has_lines = True
    return _shown(work, ledger.open(work.tx, work.steady, key, policy, work.now))


def _put(work: UnitOfWork, key: str, policy: BudgetPolicy) -> BudgetState:
    ledger = hold_of(work, TokenLedger)
    account = ledger.account(key)
    if account is None:
        return _open(work, key, policy)
    if account.policy == policy:
        return _shown(work, account)
    # Jobs that this transaction has given back are to be in their lines.
    work.open_heads()
    jobs, most = ledger.unpayable(key, policy.capacity)
    if jobs:
        raise Unprocessable(
            f"budget '{key}' cannot allocate {policy.capacity}: {_unfinished(jobs)} draw up to"
            f" {most} from it. Raise the allocation, delete them, or wait for them to drain."
        )
    return _shown(work, ledger.change(key, policy, work.now))


def _delete(work: UnitOfWork, key: str) -> None:
    account = _account(work, key)
    jobs = account.unfinished
    if jobs:
        raise BudgetInUse(
            f"budget '{key}' is referenced by {_unfinished(jobs)}. Delete them or wait for them to"
            " finish before deleting it."
        )
    templates: int = work.tx.value("count_templates", key=key)
    if templates:
        raise BudgetInUse(
            f"budget '{key}' is referenced by {templates} cron template{'s' * (templates != 1)}."
            " Delete or change them before deleting it."
        )
    hold_of(work, TokenLedger).close(key)


def _account(work: UnitOfWork, key: str) -> Account:
    account = hold_of(work, TokenLedger).account(key)
    if account is None:
        raise BudgetNotFound(key)
    return account


def _unfinished(jobs: int) -> str:
    return f"{jobs} unfinished job{'s' * (jobs != 1)}"


def _too_many(ledger: TokenLedger) -> Unprocessable:
    return Unprocessable(
        f"there are {ledger.most} budgets, and no more may be: delete some, or raise --max-budgets"
    )


def _refusal(
    ledger: TokenLedger,
    draws: Draws,
    made: Mapping[str, BudgetPolicy],
    coming: dict[str, BudgetPolicy],
    maker: BudgetMaker | None,
) -> Unprocessable | None:
    """Why these draws are refused; None if they are not.

    `made` are the budgets that come with the draws. `coming` are the budgets of the jobs before
    this one: for each key the first policy counts.
    """
    for draw in draws:
        account = ledger.account(draw.key)
        policy = coming.get(draw.key, made.get(draw.key)) if account is None else account.policy
        if (refused := unpayable(draw.key, policy, draw.cost)) is not None or policy is None:
            return refused
        if account is None:
            coming[draw.key] = policy
    if coming and maker is not None:
        made_so_far = ledger.made_by(maker.name)
        most = ledger.most // USUAL_SHARE if maker.most is None else maker.most
        if made_so_far + len(coming) > most:
            return BudgetQuotaReached(maker.name, made_so_far, most)
    # An eighth is left to budgets that are made alone, so that no producer takes the last.
    if coming and len(coming) > ledger.room - ledger.most // 8:
        return Unprocessable(
            f"jobs may bring budgets while there are fewer than {ledger.most - ledger.most // 8}:"
            " make this one by PUT /budgets, delete some, or raise --max-budgets"
        )
    return None


def _create(work: UnitOfWork, made: Mapping[str, BudgetPolicy], maker: BudgetMaker | None) -> None:
    name = None if maker is None else maker.name
    for key, policy in made.items():
        if hold_of(work, TokenLedger).account(key) is None:
            work.has_lines = True
            hold_of(work, TokenLedger).open(work.tx, work.steady, key, policy, work.now, name)


def _bind_job(work: UnitOfWork, command: BindJob) -> JobRecord:
    job = visible_job(work, command.key, command.reach)
    if job is None:
        raise JobNotFound
    if job.status not in _QUEUED:
        shown = job.status.name.title().replace("_", "")
        raise Unprocessable(
            f"job '{command.text_id}' is {shown} — only queued jobs may have their budgets changed"
        )
    new = _bound(job, command.binding)
    if _is_too_much(job, new):
        raise TooManyBudgets
    if _rebind(work, [job], [new], command.binding, command.reach):
        return work.tx.jobs("read_jobs", keys=[command.key])[0]
    return job


def _bind_slice(work: UnitOfWork, command: BindSlice) -> Bound:
    """Change what jobs draw from a budget. Jobs in flight keep their draws and are named.

    Jobs that draw from too many budgets keep theirs too, and are counted.
    """
    jobs = work.tx.jobs("read_jobs", keys=work.matching(command.keys, command.filter))
    chosen: list[JobRecord] = []
    draws: list[Draws | None] = []
    blocked: list[int] = []
    kept = Counter[str]()
    for job in jobs:
        try:
            new = _bound(job, command.binding)
        except (BudgetBound, BudgetNotBound):
            continue
        if new == _draws(job):
            continue
        if job.status is Status.IN_FLIGHT:
            blocked.append(job.key)
        elif job.status in _QUEUED and _is_too_much(job, new):
            kept[TooManyBudgets.code] += 1
        elif job.status in _QUEUED:
            chosen.append(job)
            draws.append(new)
    changed = _rebind(work, chosen, draws, command.binding, command.filter.reach)
    return Bound(changed, blocked, kept)


def _draws(job: JobRecord) -> Draws | None:
    return draws_in(job.options)


def _is_too_much(job: JobRecord, new: Draws | None) -> bool:
    """True if a change would add a budget to a job that has the most already."""
    return len(new or ()) > max(MOST_BUDGETS_A_JOB, len(_draws(job) or ()))


def _bound(job: JobRecord, binding: Binding) -> Draws | None:
    """A job's draws after a change. Raises `BudgetBound` or `BudgetNotBound`."""
    now = {draw.key: draw for draw in _draws(job) or ()}
    wanted = {request.key: Draw(request.key, request.cost) for request in binding.requests}
    match binding.verb:
        case "replace":
            return draws_of(binding.requests)
        case "add":
            for key in wanted.keys() & now.keys():
                raise BudgetBound(key)
            return (*now.values(), *wanted.values())
        case "put":
            return tuple((now | wanted).values())
        case "change":
            for key in wanted.keys() - now.keys():
                raise BudgetNotBound(key)
            return tuple((now | wanted).values())
        case "remove":
            for key in wanted.keys() - now.keys():
                raise BudgetNotBound(key)
            return tuple([draw for key, draw in now.items() if key not in wanted]) or None


def _rebind(
    work: UnitOfWork,
    jobs: Sequence[JobRecord],
    draws: Sequence[Draws | None],
    binding: Binding,
    reach: Reach,
) -> int:
    """Give waiting jobs new draws. Return how many jobs there were."""
    made = {r.key: r.create_with for r in binding.requests if r.create_with is not None}
    for new in draws:
        if new is not None and (
            refusal := _refusal(hold_of(work, TokenLedger), new, made, {}, reach.maker)
        ):
            raise refusal
    if not jobs:
        return 0
    _create(work, made, reach.maker)
    rows: list[tuple[object, ...]] = []
    for job, new in zip(jobs, draws, strict=True):
        said = replace(job.options or NO_OPTIONS, budgets=new)
        options = None if said == NO_OPTIONS else said
        rows.append((job.key, options, with_options(job, options)))
        hold_of(work, TokenLedger).rebind(_draws(job), job.status, new, job.status)
        work.lines.rename(job)
        work.effects.woken.add(job.queue)
    work.tx.write("rebind", draws=rows)
    return len(jobs)


_decode_draws = msgspec.json.Decoder(Draws).decode


class BudgetHold(TokenLedger):
    """Holds jobs that draw from budgets. It follows `zq.tick.hooks.Hold`."""

    def holds(self, options: JobSettings | None) -> bool:
        """True if jobs with these options draw from budgets."""
        return draws_in(options) is not None

    def refuse_new(
        self, jobs: Sequence[NewJob], maker: BudgetMaker | None, place: str
    ) -> Unprocessable | None:
        """Why new jobs cannot be stored: a budget is missing, or could never pay one of them."""
        return refuse_unpayable(self, jobs, maker, place)

    def admit_new(
        self, work: UnitOfWork, jobs: Sequence[NewJob], maker: BudgetMaker | None
    ) -> None:
        """Create the budgets that new jobs bring, if they do not exist."""
        create_missing(work, jobs, maker)

    def refuse_return(self, jobs: Sequence[JobRecord | NewJob]) -> Unprocessable | None:
        """Why finished jobs cannot come back: one of their budgets was deleted or narrowed."""
        return refuse_gone(self, jobs)

    def review(self, queue: str) -> None:
        """No budget depends on the settings of a queue."""

    def allowances(self, work: UnitOfWork) -> "TokenAllowances":
        return TokenAllowances(self)


class TokenAllowances:
    """Pays for jobs with the tokens that there are now. It follows `zq.tick.hooks.Allowances`."""

    def __init__(self, ledger: TokenLedger) -> None:
        self._ledger = ledger
        self._left: dict[str, int] = {}
        """The tokens of budgets after what was paid."""
        self._allowances: dict[str, TokenAllowance] = {}

    def learn(self, lines: Sequence[Line]) -> None:
        """Learn nothing: budgets do not depend on the places of lines."""

    def of(self, line: Line) -> "TokenAllowance | None":
        """The budgets from which the jobs of a line draw; None if there are none."""
        if not line.draws:
            return None
        allowance = self._allowances.get(line.draws)
        if allowance is None:
            draws = _decode_draws(line.draws)
            for draw in draws:
                if draw.key not in self._left:
                    self._left[draw.key] = self._ledger.available(draw.key)
            allowance = self._allowances[line.draws] = TokenAllowance(
                self._ledger, draws, self._left
            )
        return allowance

    def turn(self, line: Line) -> None:
        """Budgets give no turns."""


class TokenAllowance:
    """The budgets from which the jobs of some lines draw. It follows `zq.tick.hooks.Allowance`."""

    def __init__(self, ledger: TokenLedger, draws: Draws, left: dict[str, int]) -> None:
        """`left` has the tokens of budgets, after what others of the same claim have paid."""
        self._ledger = ledger
        self._draws = draws
        self._left = left

    def refuses(self) -> tuple[str, int] | None:
        """The first budget that cannot pay for a job, and the cost."""
        for draw in self._draws:
            left = self._left[draw.key]
            if left < draw.cost:
                self._ledger.refuse(self._draws, draw, left)
                return draw.key, draw.cost
        return None

    def pay(self) -> None:
        for draw in self._draws:
            self._left[draw.key] -= draw.cost


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """A ledger of at most `max_budgets` budgets."""
    hold = BudgetHold(options.get("max_budgets", MAX_BUDGETS))
    # What is due in a budget, it finds when a transaction begins.
    return Hooks(hold=hold, cleared=_clear)


def _clear(work: UnitOfWork, settings: bool) -> None:
    ledger = hold_of(work, TokenLedger)
    if ledger.is_used:
        ledger.clear(budgets=settings)


PHASES = (Phase(Stage.CHANGE, by_slices(change_budgets), get_args(AnyBudgetChange)),)
