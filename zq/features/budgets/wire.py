"""The bodies of requests about budgets, and budgets as documents for clients."""

import re
from collections.abc import Sequence
from datetime import UTC

import msgspec
from msgspec import UNSET, UnsetType

from zq.features.budgets.model import (
    MOST_HOLD_MS,
    TIME_BASED,
    WHILE_IN_FLIGHT,
    BudgetPatch,
    BudgetPolicy,
    BudgetRequest,
    BudgetState,
    Draws,
    check_requests,
    checked_policy,
    draws_of,
)
from zq.model.errors import InvalidRequest, Unprocessable
from zq.model.job import NO_OPTIONS, JobSettings
from zq.model.names import check_name
from zq.wire.codecs import BodyCodec, decode

_SECONDS = re.compile(r"\d{1,9}", re.ASCII)


class Strategy(msgspec.Struct, omit_defaults=True):
    """How tokens come back. `burst` is the most tokens there can be, by default the allocation."""

    type: str
    duration_ms: int | None = None
    burst: int | None = None


class PolicyBody(msgspec.Struct):
    """The number of tokens of a budget, and how they come back."""

    allocation: int
    strategy: Strategy


class StrategyPatchBody(msgspec.Struct):
    """A change of a strategy, field by field. Another `type` drops the fields of the former."""

    type: str | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    burst: int | None | UnsetType = UNSET


class PolicyPatchBody(msgspec.Struct):
    """A change of a policy, field by field."""

    allocation: int | UnsetType = UNSET
    strategy: StrategyPatchBody | UnsetType = UNSET


class BindingBody(msgspec.Struct, omit_defaults=True):
    """What jobs draw from the budget in the path."""

    cost: int | None = None
    create_with: PolicyBody | None = None


class HoldBody(msgspec.Struct, forbid_unknown_fields=True):
    """How long a budget is held: `for_ms`, or what a service has sent as `Retry-After`.

    That is a number of seconds, or a date of HTTP.
    """

    for_ms: int | None = None
    retry_after: int | str | None = None


class _NewCost(msgspec.Struct):
    cost: int


class DrawBody(msgspec.Struct, omit_defaults=True, gc=False):
    """What a job draws from a budget. `create_with` applies if the budget does not exist."""

    key: str
    cost: int | None = None
    create_with: PolicyBody | None = None


class _Draws(msgspec.Struct):
    budgets: list[DrawBody]


class DrawDocument(msgspec.Struct):
    """What a job draws from a budget."""

    key: str
    cost: int


class BudgetDocument(msgspec.Struct):
    """A budget with its present tokens, its waiting ready jobs and its unfinished jobs.

    `held_until` is there while it is held, in milliseconds since the epoch.
    """

    key: str
    allocation: int
    strategy: Strategy
    created_at: int
    updated_at: int
    available: int
    waiting: int
    unfinished: int
    held_until: int | UnsetType = UNSET


class BudgetsDocument(msgspec.Struct):
    """Budgets in the order of their keys."""

    budgets: list[BudgetDocument]


class Rebindings(msgspec.Struct, omit_defaults=True):
    """How many jobs have changed draws, and which could not change because they are in flight.

    `kept` counts others that stay as they are, by the reasons.
    """

    changed: int
    blocked: list[str]
    kept: dict[str, int] = {}


_policy = msgspec.json.Decoder(PolicyBody)
_patch = msgspec.json.Decoder(PolicyPatchBody)
_cost = msgspec.json.Decoder(BindingBody)
_new_cost = msgspec.json.Decoder(_NewCost)
_draws = msgspec.json.Decoder(_Draws)
_hold = msgspec.json.Decoder(HoldBody)


def decode_policy(body: bytes, codec: BodyCodec) -> BudgetPolicy:
    """The body that creates or replaces a budget."""
    return _checked(decode(body, codec, _policy))


def decode_policy_patch(body: bytes, codec: BodyCodec) -> BudgetPatch:
    """The body that changes a budget field by field."""
    sent = decode(body, codec, _patch)
    strategy = StrategyPatchBody() if sent.strategy is UNSET else sent.strategy
    return BudgetPatch(sent.allocation, strategy.type, strategy.duration_ms, strategy.burst)


def decode_hold(body: bytes, codec: BodyCodec, now: int) -> int:
    """The body that holds a budget: for how many milliseconds. `now` is the present date."""
    sent = decode(body, codec, _hold)
    if (sent.for_ms is None) == (sent.retry_after is None):
        raise InvalidRequest("a hold takes for_ms or retry_after: send one of them")
    for_ms = _retry_after(str(sent.retry_after), now) if sent.for_ms is None else sent.for_ms
    if not 0 <= for_ms <= MOST_HOLD_MS:
        raise Unprocessable(f"a budget is held for 0 to {MOST_HOLD_MS} ms, not for {for_ms}")
    return for_ms


def _retry_after(text: str, now: int) -> int:
    """The wait in milliseconds that a header asks for: RFC 9110, section 10.2.3."""
    if _SECONDS.fullmatch(text):
        return int(text) * 1000
    try:
        from email.utils import parsedate_to_datetime  # few limits are dates

        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"retry_after: {text[:100]!r} is neither a number of seconds nor a date of HTTP"
        ) from None
    dated = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(round(dated.timestamp() * 1000) - now, 0)


def decode_binding(key: str, body: bytes, codec: BodyCodec) -> BudgetRequest:
    """The body that makes jobs draw from a budget. It may be missing."""
    sent = decode(body, codec, _cost) if body else BindingBody()
    return requests_of([DrawBody(key, sent.cost, sent.create_with)])[0]


def decode_cost(key: str, body: bytes, codec: BodyCodec) -> BudgetRequest:
    """The body that changes what jobs draw from a budget."""
    return requests_of([DrawBody(key, decode(body, codec, _new_cost).cost)])[0]


def decode_bindings(body: bytes, codec: BodyCodec) -> tuple[BudgetRequest, ...]:
    """The body that lists all draws of a job."""
    return requests_of(decode(body, codec, _draws).budgets)


def requests_of(sent: Sequence[DrawBody]) -> tuple[BudgetRequest, ...]:
    """The draws of a job, checked. Raises `InvalidRequest` or `Unprocessable`."""
    requests = tuple(
        [
            BudgetRequest(
                check_name("budget key", draw.key),
                1 if draw.cost is None else draw.cost,
                None if draw.create_with is None else _checked(draw.create_with),
            )
            for draw in sent
        ]
    )
    check_requests(requests)
    return requests


def with_draws(
    options: JobSettings | None, sent: Sequence[DrawBody]
) -> tuple[JobSettings | None, dict[str, BudgetPolicy] | None]:
    """The options of a new job with these draws, and the budgets that it brings."""
    requests = requests_of(sent)
    draws = draws_of(requests)
    made = {r.key: r.create_with for r in requests if r.create_with is not None}
    if draws is None:
        return options, None
    return msgspec.structs.replace(options or NO_OPTIONS, budgets=draws), made or None


def budget_document(budget: BudgetState) -> BudgetDocument:
    return BudgetDocument(
        budget.key,
        budget.policy.allocation,
        _strategy(budget.policy),
        *(budget.created_at, budget.updated_at),
        *(budget.available, budget.waiting, budget.unfinished),
        UNSET if budget.held_until is None else budget.held_until,
    )


def draw_documents(draws: Draws | None) -> list[DrawDocument] | None:
    """The draws of a job as documents for clients."""
    return None if draws is None else [DrawDocument(draw.key, draw.cost) for draw in draws]


def _strategy(policy: BudgetPolicy) -> Strategy:
    kind = WHILE_IN_FLIGHT if policy.duration_ms is None else TIME_BASED
    return Strategy(kind, policy.duration_ms, policy.burst)


def _checked(sent: PolicyBody) -> BudgetPolicy:
    strategy = sent.strategy
    return checked_policy(sent.allocation, strategy.type, strategy.duration_ms, strategy.burst)


# The names of these shapes in the description of the API.
CostBody, BindingsBody = _NewCost, _Draws
