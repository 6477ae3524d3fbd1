"""The options of jobs. They are checked where they are written, not where they are sent."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypedDict, get_args

from msgspec.structs import replace

from zq.client import replaced
from zq.client.amounts import Seconds, milliseconds, positive_ms, whole
from zq.client.errors import InvalidOption
from zq.client.running import current
from zq.client.values import Dedupe, Submission
from zq.features.batches.client import Batch
from zq.features.batches.model import BatchRule
from zq.features.budgets.client_limits import Budget
from zq.features.budgets.model import MOST_BUDGETS_A_JOB
from zq.features.fair.client_key import FairKey, key_of_calls, key_of_payloads
from zq.features.fair.model import check_weight
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_PRIORITY, MAX_UINT32, Retention
from zq.model.job import BackoffRule as WireBackoff
from zq.model.names import meant

UniqueWhile = Literal["queued", "active", "exists"]


@dataclass(frozen=True)
class Backoff:
    """How long a failed job waits: ``attempts ** exponent + base + random() * jitter * attempts``.

    The server computes this in seconds. `attempts` includes the last failure, so the first retry
    comes after at least 1 s. For earlier retries, raise `zq.Retry(delay=…)`.
    """

    exponent: float = 1.5
    base: Seconds = 0.0
    jitter: Seconds = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.exponent <= 100:
            raise InvalidOption(f"Backoff: exponent {self.exponent!r} is not between 0 and 100")
        self.wire()

    def wire(self) -> WireBackoff:
        """This back-off in milliseconds, as the server has it."""
        base = milliseconds("Backoff: base", self.base, high=MAX_UINT32)
        return WireBackoff(
            float(self.exponent), base, milliseconds("Backoff: jitter", self.jitter, MAX_UINT32)
        )


class JobOptions(TypedDict, total=False):
    """Options of each job. Missing ones come from the task, then its app, then `DEFAULTS`."""

    max_attempts: int
    """The number of executions in all, the first one included."""
    result_ttl: Seconds | None
    """How long the result is kept. With None, only those who are waiting for it get it."""
    priority: int
    """From 0, the most urgent, to 65535."""
    delay: Seconds
    run_at: datetime
    backoff: Backoff
    group: str
    """Jobs of a group run one after the other, in their order."""
    dedupe: str | None
    budgets: Sequence[Budget]
    """The job runs when it can draw from all of them."""
    fair_key: FairKey | None
    """The key by which the job shares its queue. For a task it is the name of an argument, or a
    function of the arguments; for a queue it is the key, or a function of the payload."""
    fair_weight: float
    """From 0.01 to 100. A key of weight 2 gets twice the share of one of weight 1."""
    stall_limit: int
    """How often the job may end its worker and be tried again. By default, its queue or its worker
    says it."""
    user: str
    meta: Mapping[str, Any]
    traceparent: str
    content_type: str


class CallOptions(JobOptions, total=False):
    """Further options of the calls of a task."""

    key: str
    """The unique key. While another job has it, this one is a duplicate."""
    unique_while: UniqueWhile
    """How long a job holds its key: until it is taken, until it is finished, or while it exists."""
    timeout: Seconds
    """The most time that one execution may take."""
    wait: Seconds
    """How long `call` waits for the result."""
    batch: Batch | None
    """Calls are joined to one job while it waits for a worker. It cannot have a key."""


class Options(CallOptions, total=False):
    """Further options of declarations, which workers read there: no job has them."""

    on_exception: Mapping[type[Exception], Backoff | Seconds | None]
    """By class of the handler's exception: the delay of the next try, or None for no other try."""


DEFAULTS: Options = {
    "max_attempts": 3,
    "result_ttl": 3600.0,
    "backoff": Backoff(),
    "wait": 30.0,
    "unique_while": "active",
}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidOption(f"{name}: {value!r} is not text")
    return value


def _kind(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise InvalidOption(f"{name}: {value!r} is not a {kind.__name__}")


def _moment(name: str, value: object) -> None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidOption(f"{name}: {value!r} is not a datetime with a time zone")


def _scope(name: str, value: object) -> None:
    if value not in get_args(UniqueWhile):
        raise InvalidOption(f"{name}: {value!r} is not one of {', '.join(get_args(UniqueWhile))}")


def _ttl(name: str, value: Any) -> None:
    if value is not None:
        positive_ms(name, value)


def _dedupe(name: str, value: object) -> None:
    if value is not None:
        _text(name, value)


def _batch(name: str, value: object) -> None:
    if value is not None:
        _kind(name, value, Batch)


def _budgets(name: str, value: object) -> None:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidOption(f"{name}: {value!r} is not a list of Budgets")
    if len(value) > MOST_BUDGETS_A_JOB:
        raise InvalidOption(f"{name}: a job draws from at most {MOST_BUDGETS_A_JOB} budgets")
    keys = set()
    for each in value:
        _kind(name, each, Budget)
        if each.key in keys:
            raise InvalidOption(f"{name}: {each.key!r} is named more than once")
        keys.add(each.key)


def _fair_key(name: str, value: object) -> None:
    if value is not None and not isinstance(value, str) and not callable(value):
        raise InvalidOption(f"{name}: {value!r} is neither text nor a function")


def _fair_weight(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidOption(f"{name}: {value!r} is not a number")
    try:
        check_weight(name, value)
    except InvalidRequest as error:
        raise InvalidOption(error.message) from None


def _by_exception(name: str, value: object) -> None:
    _kind(name, value, Mapping)
    assert isinstance(value, Mapping)
    for kind, then in value.items():
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            raise InvalidOption(f"{name}: {kind!r} is not an exception class")
        if then is not None and not isinstance(then, Backoff):
            milliseconds(f"{name}: {kind.__name__}", then)


CHECKS: dict[str, Any] = {
    "key": _text,
    "unique_while": _scope,
    "max_attempts": partial(whole, low=1, high=MAX_UINT32),
    "result_ttl": _ttl,
    "priority": partial(whole, low=0, high=MAX_PRIORITY),
    "delay": milliseconds,
    "run_at": _moment,
    "backoff": partial(_kind, kind=Backoff),
    "on_exception": _by_exception,
    "timeout": positive_ms,
    "wait": milliseconds,
    "group": _text,
    "dedupe": _dedupe,
    "budgets": _budgets,
    "fair_key": _fair_key,
    "fair_weight": _fair_weight,
    "stall_limit": partial(whole, low=0, high=MAX_UINT32),
    "user": _text,
    "meta": partial(_kind, kind=Mapping),
    "traceparent": _text,
    "content_type": _text,
    "batch": _batch,
}


_CONVERTED = ("unique_while", "backoff", "dedupe", "budgets", "meta", "batch", "fair_key")
_AS_SENT = tuple(
    name for name in CHECKS if name in Submission.__struct_fields__ and name not in _CONVERTED
)
"""Options that are fields of a job in the form in which they are given."""


def check(options: Mapping[str, object], *others: str) -> None:
    """Raise `InvalidOption` for the first option that is unknown or has an invalid value.

    `others` are names of options that were checked elsewhere.
    """
    for name, value in options.items():
        if name not in CHECKS:
            known = (*CHECKS, *others)
            question = meant(name, known)
            remedy = f"{question[2:]} The" if question else "the"
            remedy = replaced.OPTIONS.get(name, f"{remedy} options are {', '.join(known)}")
            raise InvalidOption(f"{name} is not an option: {remedy}")
        CHECKS[name](name, value)
    if "delay" in options and "run_at" in options:
        raise InvalidOption("give delay or run_at, not both")


def merge(*layers: JobOptions) -> Options:
    """Merge options: later layers win. A later `delay` replaces an earlier `run_at`, or reverse."""
    merged: Options = {}
    for layer in layers:
        if "delay" in layer:
            merged.pop("run_at", None)
        if "run_at" in layer:
            merged.pop("delay", None)
        merged.update(layer)  # type: ignore[typeddict-item]
    return merged


class Form:
    """Makes jobs with the same options from any payloads. The options are computed once."""

    def __init__(
        self,
        queue: str,
        type: str,
        options: Options,
        *,
        keep_dead: bool = False,
        timeout: Seconds | None = None,
        function: Callable[..., Any] | None = None,
    ) -> None:
        """With `keep_dead` the last error is kept as long as a result would be.

        Workers know the time-outs of their tasks. `timeout` overrides them. Payloads are calls of
        the `function` of a task.
        """
        self._fair = _fair_reader(options.get("fair_key"), type, function)
        ttl = options.get("result_ttl")
        kept = 0 if ttl is None else positive_ms("result_ttl", ttl)
        backoff = options.get("backoff")
        dedupe = options.get("dedupe")
        batch = options.get("batch")
        if batch is not None and "key" in options:
            raise InvalidOption("give key or batch, not both")
        self._delay = milliseconds("delay", options.get("delay", 0))
        self._user = options.get("user")
        self._meta = _meta(options, timeout)
        moment = options.get("run_at")
        as_sent: dict[str, Any] = {
            name: value for name, value in options.items() if name in _AS_SENT
        }
        self._fixed = Submission(
            queue=queue,
            type=type,
            payload=None,
            ready_at=None if moment is None else round(moment.timestamp() * 1000),
            retry_limit=options["max_attempts"] - 1,
            backoff=None if backoff is None else backoff.wire(),
            retention=Retention(kept, kept if keep_dead else None),
            unique_key=options.get("key"),
            unique_while=options["unique_while"] if "key" in options else None,
            dedupe=None if dedupe is None else Dedupe(dedupe),
            meta=self._meta or None,
            batch=None if batch is None else BatchRule(batch.key, batch.when, batch.fold),
            budgets=tuple([budget.wire() for budget in options.get("budgets", ())]) or None,
            **as_sent,
        )

    def submission(
        self, payload: Any, *, key: str | None = None, on_conflict: str | None = None
    ) -> Submission:
        """The job for a payload. A job that another one enqueues inherits its user and trace."""
        fixed = self._fixed
        meta, traceparent = fixed.meta, fixed.traceparent
        parent = current.get(None)
        if parent is not None:
            traceparent = traceparent or parent.traceparent
            if self._user is None and parent.user is not None:
                meta = {**self._meta, "user": parent.user}
        return replace(
            fixed,
            payload=payload,
            ready_at=round(time.time() * 1000) + self._delay if self._delay else fixed.ready_at,
            unique_key=fixed.unique_key if key is None else key,
            unique_while=fixed.unique_while if key is None else "exists",
            on_conflict=on_conflict,
            meta=meta,
            traceparent=traceparent,
            fair_key=None if self._fair is None else self._fair(payload),
        )


def _fair_reader(
    said: FairKey | None, name: str, function: Callable[..., Any] | None
) -> Callable[[Any], str | None] | None:
    """What reads the fair key of a payload; None if there is no such option."""
    if said is None:
        return None
    if function is None:
        return key_of_payloads(said, name)
    return key_of_calls(said, name, function)


def _meta(options: Options, timeout: Seconds | None) -> dict[str, Any]:
    meta = dict(options.get("meta", {}))
    if "user" in options:
        meta["user"] = options["user"]
    if timeout is not None:
        meta["timeout_ms"] = positive_ms("timeout", timeout)
    return meta
