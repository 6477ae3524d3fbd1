"""Random values that commands hold: jobs' parts, filters, settings, patches."""

from typing import TypeVar

import msgspec
from hypothesis import strategies as st

from zq.features.batches.model import BatchRule
from zq.features.sweeps.model import SweepMark
from zq.model.filters import Filter, ValueRange
from zq.model.job import BackoffRule, DedupeRule, Extras, JobSettings, Retention
from zq.model.leasing import Terms
from zq.model.lifecycle import Status
from zq.model.patching import UNSET, Patch, RetentionPatch
from zq.model.settings import QueueSettings, SettingsPatch
from zq.model.settling import Completion, Failure
from zq.model.unique import Scope

T = TypeVar("T")

QUEUES = ["a", "b", "ü/c 'x\" :q0"]
TYPES = ["mail", "t\\n'\"2"]
GROUPS = ["g", "ü\"'"]

MARKS = [None, SweepMark(1, "{}", 0.5), SweepMark(2, "{}", 1)]

mostly = st.sampled_from([True, True, True, False])
groups = st.sampled_from([None, None, *GROUPS])
dedupes = st.none() | st.builds(
    DedupeRule, st.sampled_from(["d", 'é"\\']), st.sampled_from([1, 1_000, 3_600_000])
)
queues = st.sampled_from(QUEUES)
priorities = st.sampled_from([0, 5, 32768, 65535])
millis = st.sampled_from([0, 1, 1_000, 60_000])
backoffs = st.builds(BackoffRule, st.sampled_from([0.0, 1.0, 2.0]), millis, st.just(0))
retentions = st.builds(Retention, st.none() | millis, st.none() | millis)
extras = st.builds(
    Extras,
    meta=st.sampled_from(['{"a":"\\u0000"}', None]),
    content_type=st.just("text/plain"),
    traceparent=st.none() | st.just("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    batch=st.none()
    | st.builds(BatchRule, st.sampled_from(["b", "b\0", "é'"]), st.just("true"), st.just("$new")),
)
plain_extras = extras.map(lambda chosen: msgspec.structs.replace(chosen, batch=None))
retry_limits = st.sampled_from([0, 1, 5])
lease_times = st.sampled_from([1, 50, 1_000, 60_000])
payloads = st.sampled_from(
    [
        "null",
        '{"a":[1,2.5,"\\u0000"]}',
        '"é\\"😀"',
        f'"{"x" * 510}"',  # the largest that lies in the row
        f'"{"é" * 256}"',  # few characters, but too many bytes
        f"[{'9,' * 3000}9]",
    ]
)
options = st.builds(
    JobSettings,
    retry_limit=st.none() | retry_limits,
    backoff=st.none() | backoffs,
    retention=st.none() | retentions.filter(lambda retention: retention != Retention()),
    lease_ms=st.none() | lease_times,
    stall_limit=st.none() | st.integers(0, 2),
).filter(lambda chosen: chosen != JobSettings())
lettered = st.builds(
    JobSettings,
    retry_limit=st.none() | retry_limits,
    dead_letter=queues,
    dead_letter_after=st.sampled_from([None, 0, 1, 2]),
)
NOT_UNIQUE: tuple[str | None, Scope | None] = (None, None)
unique = st.sampled_from(
    [NOT_UNIQUE] * 12 + [(key, scope) for key in ("k", "k\0", "", 'é" ,') for scope in Scope]
)


asked = st.builds(Terms, st.none() | lease_times, st.none() | st.sampled_from(["c", "é 'c\""]))
late = st.sampled_from([None, None, "late"])
leases = st.sampled_from([None, None, 1, 1, 2, 3])
later_ms = [0, 1, 50, 1_000, 4_100, 60_000]
offsets = st.sampled_from([-ms for ms in later_ms] + later_ms)
"""Times, as distances from now."""

failures = st.builds(
    Failure,
    message=st.sampled_from(["boom", "", 'déjà "vu"\n\0']),
    error_type=st.none() | st.just("E"),
    backtrace=st.none() | st.just("at\n  line 1"),
    retry_at=st.none() | st.none() | offsets,
    kill=st.sampled_from([None, None, False, True]),
    lease=leases,
    at_once=st.sampled_from([None, None, True]),
)
results = st.sampled_from([None, "null", '{"a":"\\u0000é"}', f'"{"x" * 510}"', f'"{"é" * 300}"'])
completions = st.builds(
    lambda result, retention, lease, used: Completion(
        result, 0 if result is None else len(result.encode()), retention, lease, used
    ),
    results,
    st.none() | retentions,
    leases,
    st.none() | st.dictionaries(st.sampled_from(["x", "y", "none"]), st.integers(0, 5)),
)


def unset_or(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[object]:
    return st.just(UNSET) | strategy


patches = st.builds(
    Patch,
    queue=unset_or(queues),
    priority=unset_or(priorities),
    ready_at=st.just(UNSET),
    retry_limit=unset_or(st.none() | retry_limits),
    backoff=unset_or(st.none() | backoffs),
    lease_ms=unset_or(st.none() | lease_times),
    retention=unset_or(
        st.none()
        | st.builds(RetentionPatch, unset_or(st.none() | millis), unset_or(st.none() | millis))
    ),
)
ranges = st.none() | st.builds(ValueRange, st.none() | st.just(1), st.none() | st.just(40_000))
gates = {
    "paused": st.none() | st.booleans(),
    "max_depth": st.none() | st.integers(0, 12),
    "concurrency": st.none() | st.integers(1, 3),
    "dead_letter_after": st.sampled_from([None, None, 0, 1, 2]),
    "retry_limit": st.none() | retry_limits,
    "ttl_ms": st.none() | st.sampled_from([1, 50, 4_100]),
    "stall_limit": st.none() | st.integers(0, 2),
    "lease_ms": st.none() | lease_times,
    "priority_aging_ms": st.sampled_from([None, None, 1, 50, 100_000]),
    "leases_survive": st.none() | st.booleans(),
    "dead_letter": st.none() | st.sampled_from([*QUEUES, "dlq"]),
}
settings = st.builds(
    QueueSettings,
    backoff=st.none() | backoffs,
    retention=st.none() | retentions.filter(lambda retention: retention != Retention()),
    **gates,
)
settings_patches = st.builds(
    SettingsPatch, **{name: unset_or(strategy) for name, strategy in gates.items()}
)
filters = st.builds(
    Filter,
    statuses=st.lists(st.sampled_from(Status), max_size=2, unique=True).map(tuple),
    queues=st.lists(queues, max_size=2, unique=True).map(tuple),
    types=st.just(()) | st.just(("mail",)),
    groups=st.sampled_from([(), (), (), ("g",), ("g", "none")]),
    priority=ranges,
    attempts=ranges,
    budgets=st.sampled_from([(), (), (), ("x",), ("x", "none")]),
)
