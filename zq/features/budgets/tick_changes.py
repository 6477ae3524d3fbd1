"""Changes of budgets themselves: policies, budgets that jobs bring, and the draws of jobs."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from zq.features.budgets.commands import (
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
)
from zq.features.budgets.errors import (
    BudgetBound,
    BudgetExists,
    BudgetInUse,
    BudgetNotBound,
    BudgetNotFound,
    BudgetQuotaReached,
)
from zq.features.budgets.model import (
    Account,
    BudgetPolicy,
    BudgetState,
    Draw,
    Draws,
    draws_of,
    patched_policy,
    unpayable,
)
from zq.features.budgets.model_jobs import draws_in
from zq.features.budgets.tick_ledger import TokenLedger
from zq.model.checksums import with_options
from zq.model.errors import JobNotFound, Unprocessable, ZqError
from zq.model.job import NO_OPTIONS, JobRecord, NewJob
from zq.model.lifecycle import Status
from zq.model.reach import BudgetMaker, Reach
from zq.tick.holds import hold_of
from zq.tick.work import UnitOfWork, note_slice, visible_job

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


def refuse_gone(ledger: TokenLedger, jobs: Sequence[JobRecord]) -> Unprocessable | None:
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
    if _rebind(work, [job], [_bound(job, command.binding)], command.binding, command.reach):
        return work.tx.jobs("read_jobs", keys=[command.key])[0]
    return job


def _bind_slice(work: UnitOfWork, command: BindSlice) -> Bound:
    """Change what jobs draw from a budget. Jobs in flight keep their draws and are named."""
    jobs = work.tx.jobs("read_jobs", keys=work.matching(command.keys, command.filter))
    chosen: list[JobRecord] = []
    draws: list[Draws | None] = []
    blocked: list[int] = []
    for job in jobs:
        try:
            new = _bound(job, command.binding)
        except (BudgetBound, BudgetNotBound):
            continue
        if new == _draws(job):
            continue
        if job.status is Status.IN_FLIGHT:
            blocked.append(job.key)
        elif job.status in _QUEUED:
            chosen.append(job)
            draws.append(new)
    changed = _rebind(work, chosen, draws, command.binding, command.filter.reach)
    return Bound(changed, blocked)


def _draws(job: JobRecord) -> Draws | None:
    return draws_in(job.options)


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
