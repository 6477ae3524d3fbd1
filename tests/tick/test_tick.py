"""The cost and the limits of a tick: statements, slices, syncs, jobs handed out in turn."""

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store.rig import Ticker, new_job

from zq.features.budgets.model import BudgetPolicy
from zq.features.budgets.model_jobs import CreateBudget
from zq.model.commands import (
    AnyCommand,
    CancelSlice,
    Claim,
    Clear,
    DeleteSlice,
    Due,
    Enqueue,
    EnqueueResult,
    Fail,
    PatchSlice,
    Return,
    Succeed,
)
from zq.model.filters import EVERYTHING
from zq.model.job import INLINE_PAYLOAD, JobRecord, JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.settling import Completion, Failure
from zq.model.unique import OnConflict, Scope
from zq.store.sqlite.transaction import FEW_COUNTS, LARGEST_INSERT, MOST_ARMS
from zq.tick.claim import share_out
from zq.tick.due import SLICE
from zq.tick.slices import FAILURE_ROWS, SLICE_ROWS

KEPT = JobSettings(retention=Retention(completed_ms=60_000))
LARGE_PAYLOAD = f'"{"x" * INLINE_PAYLOAD}"'
FEW, MANY = 20, 900
BATCHED = re.compile("^INSERT INTO (jobs|payloads|results|errors) |key_lock IN ")
"""Statements that carry their values as parameters, and so up to so many rows each."""


def statements(ticker: Ticker, run: Callable[[], object]) -> list[str]:
    """The statements that a function runs."""
    seen: list[str] = []
    ticker.sqlite.set_trace_callback(seen.append)
    try:
        run()
    finally:
        ticker.sqlite.set_trace_callback(None)
    return seen


def held(ticker: Ticker, count: int, **fields: object) -> list[int]:
    """Jobs in flight, of several queues."""
    jobs = [new_job(**{"queue": f"q{i % 7}"} | fields) for i in range(count)]
    ticker.run(ticker.enqueue(jobs))
    return ticker.take(count)


class Case(NamedTuple):
    """Prepares a number of jobs and answers the commands of the tick that is looked at."""

    prepare: Callable[[Ticker, int], list[AnyCommand]]
    claims: bool = False
    due: bool = False


def fail_all(ticker: Ticker, count: int, failure: Failure) -> list[AnyCommand]:
    return [Fail(key, failure) for key in held(ticker, count, payload=LARGE_PAYLOAD)]


def finish(ticker: Ticker, count: int) -> list[AnyCommand]:
    """Leave finished jobs whose retention is over."""
    ticker.run(Succeed(held(ticker, count, options=KEPT, payload=LARGE_PAYLOAD)))
    ticker.now += 60_000
    return []


def schedule(ticker: Ticker, count: int) -> list[AnyCommand]:
    ticker.store(count, ready_at=ticker.now + 10)
    ticker.now += 10
    return []


def duplicate(ticker: Ticker, count: int) -> list[AnyCommand]:
    jobs = [new_job(unique_key=f"k{i}", unique_while=Scope.EXISTS) for i in range(count)]
    ticker.run(ticker.enqueue(jobs))
    return [ticker.enqueue([job]) for job in jobs]


def unique_returns(ticker: Ticker, count: int) -> list[AnyCommand]:
    jobs = [new_job(unique_key=f"k{i}", unique_while=Scope.QUEUED) for i in range(count)]
    ticker.run(ticker.enqueue(jobs))
    return [Return(1, ticker.take(count))]


def clear(ticker: Ticker, count: int) -> list[AnyCommand]:
    ticker.store(count)
    return [Clear()]


def wait(ticker: Ticker, count: int) -> list[AnyCommand]:
    ticker.store(count)
    return []


def with_results(ticker: Ticker, count: int, result: str) -> list[AnyCommand]:
    told = Completion(result, len(result.encode()), Retention(completed_ms=60_000), 1)
    return [Succeed(keys := held(ticker, count), said=dict.fromkeys(keys, told))]


def replacement(ticker: Ticker, count: int) -> AnyCommand:
    """New payloads for jobs that wait."""

    def jobs(**fields: Any) -> Enqueue:
        names = [f"replaced {number}" for number in range(count)]
        scope = Scope.QUEUED
        return ticker.enqueue(
            new_job(unique_key=name, unique_while=scope, **fields) for name in names
        )

    ticker.run(jobs())
    return jobs(payload="[1]", on_conflict=OnConflict.REPLACE_PAYLOAD)


CASES = {
    "succeed, one request": Case(lambda t, n: [Succeed(held(t, n))]),
    "succeed, many requests": Case(lambda t, n: [Succeed([key]) for key in held(t, n)]),
    "succeed and keep": Case(lambda t, n: [Succeed(held(t, n, options=KEPT))]),
    "succeed with large payloads": Case(lambda t, n: [Succeed(held(t, n, payload=LARGE_PAYLOAD))]),
    "succeed with results": Case(lambda t, n: with_results(t, n, '{"n":1}')),
    "succeed with large results": Case(lambda t, n: with_results(t, n, LARGE_PAYLOAD)),
    "fail and retry": Case(lambda t, n: fail_all(t, n, Failure("m"))),
    "fail and die": Case(lambda t, n: fail_all(t, n, Failure("m", kill=True))),
    "return": Case(lambda t, n: [Return(1, held(t, n))]),
    "return unique jobs": Case(unique_returns),
    "patch a slice": Case(
        lambda t, n: [PatchSlice(t.store(n), EVERYTHING, Patch(queue="other", priority=1))]
    ),
    "delete a slice": Case(
        lambda t, n: [DeleteSlice(t.store(n, payload=LARGE_PAYLOAD), EVERYTHING)]
    ),
    "cancel a slice": Case(lambda t, n: [CancelSlice(t.store(n), EVERYTHING, False)]),
    "cancel a slice by force": Case(lambda t, n: [CancelSlice(held(t, n), EVERYTHING, True)]),
    "replace payloads": Case(lambda t, n: [replacement(t, n)]),
    "clear": Case(clear),
    "duplicates": Case(duplicate),
    "promote": Case(schedule, due=True),
    "purge": Case(finish, due=True),
    "claim": Case(wait, claims=True),
}


@pytest.mark.parametrize("name", CASES)
def test_the_statements_of_a_tick_grow_with_its_slices_and_not_with_its_jobs(
    ticker: Ticker, name: str
) -> None:
    case = CASES[name]
    fixed, batched = Counter[int](), Counter[int]()
    for count in (FEW, MANY):
        commands = case.prepare(ticker, count)
        claims = [Claim(None, [(1, count // 2), (2, count - count // 2)])] if case.claims else []
        tick = ticker.tick(commands, claims, promote=case.due, purge=case.due)
        for sql in statements(ticker, partial(ticker.runner.run, tick)):
            (batched if BATCHED.search(sql) else fixed)[count] += 1
        ticker.check_counts()
        ticker.run(Clear())
    slices = -(-MANY * FAILURE_ROWS // SLICE_ROWS)
    assert fixed[FEW] <= 13
    assert fixed[MANY] <= fixed[FEW] * slices
    assert batched[MANY] <= MANY // LARGEST_INSERT + slices


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"payload": LARGE_PAYLOAD},
        {"options": KEPT},
    ],
)
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 127, 511, 512, 513, 1_500, 5_000])
def test_new_jobs_go_in_by_a_few_statements_of_many_rows(
    ticker: Ticker, count: int, fields: dict[str, object]
) -> None:
    enqueue = ticker.enqueue([new_job(queue=f"q{i % 3}", **fields) for i in range(count)])
    seen = statements(ticker, partial(ticker.run, enqueue))
    inserts = [sql for sql in seen if sql.startswith(("INSERT INTO jobs", "INSERT INTO payloads"))]
    tables = 2 if "payload" in fields else 1
    assert len(inserts) <= tables * (count // LARGEST_INSERT + 4)
    assert len(seen) - len(inserts) <= FEW_COUNTS + 3
    jobs = ticker.jobs()
    assert list(jobs) == list(enqueue.keys)
    assert [job.queue for job in jobs.values()] == [job.queue for job in enqueue.jobs]
    assert [job.payload for job in jobs.values()] == [job.payload for job in enqueue.jobs]
    ticker.check_counts()


def test_ticks_of_all_sizes_keep_few_statements_prepared(ticker: Ticker) -> None:
    texts = set()
    for count in range(1, 1_200, 7):
        enqueue = ticker.enqueue([new_job()] * count)
        seen = statements(ticker, partial(ticker.run, enqueue))
        texts |= {sql.count("(") for sql in seen if sql.startswith("INSERT INTO jobs")}
    assert len(texts) < 80


def test_a_mixed_tick_is_one_transaction(ticker: Ticker) -> None:
    keys = held(ticker, 9)
    commands: list[AnyCommand] = [
        Succeed(keys[:3]),
        Fail(keys[3], Failure("m")),
        Return(1, keys[4:6]),
        ticker.enqueue([new_job()]),
    ]
    tick = ticker.tick(commands, [Claim(None, [(1, 5)])], promote=True, purge=True)
    seen = statements(ticker, partial(ticker.runner.run, tick))
    ends = Counter(sql for sql in seen if sql.split()[0] in ("BEGIN", "COMMIT", "ROLLBACK"))
    assert ends == {"BEGIN IMMEDIATE": 1, "COMMIT": 1}
    assert seen[-1] == "COMMIT"


def test_a_job_is_stored_and_handed_out_by_the_same_tick(ticker: Ticker) -> None:
    enqueue = ticker.enqueue([new_job(), new_job(priority=1)])
    result = ticker.run(enqueue, claims=[Claim(("q",), [(4, 2)])])
    assert result.replies == [EnqueueResult({})]
    assert [(job.key, job.holder) for job in result.claimed[0]] == [
        (enqueue.keys[1], 4),
        (enqueue.keys[0], 4),
    ]


def test_an_empty_tick_changes_nothing(ticker: Ticker) -> None:
    ticker.store(3)
    changes = ticker.sqlite.total_changes
    result = ticker.run(promote=True, purge=True)
    assert ticker.sqlite.total_changes == changes
    assert (result.replies, result.ended, result.claimed, result.rows) == ([], [], [], 0)
    assert result.deadlines == {}


def test_promotion_takes_a_slice_a_tick_in_order_and_purge_the_most_overdue(ticker: Ticker) -> None:
    first_stored = ticker.store(SLICE, ready_at=ticker.now + 20)
    ticker.store(5, ready_at=ticker.now + 10)
    ticker.now += 20
    first = ticker.run(promote=True)
    ready = {key for key, job in ticker.jobs().items() if job.status is Status.READY}
    assert ready == set(first_stored)
    assert first.deadlines is not None
    assert first.deadlines[Due.PROMOTION] == ticker.now - 10
    second = ticker.run(promote=True)
    assert second.deadlines == {}
    ticker.check_counts()

    taken = ticker.take(SLICE + 5)
    ticker.run(*(Fail(key, Failure("m", kill=True)) for key in taken))
    ticker.now += 60_000
    ticker.run(purge=True)
    assert len(ticker.jobs()) == 5
    assert ticker.run(purge=True).deadlines == {}
    assert ticker.jobs() == {}
    assert ticker.value("SELECT count(*) FROM errors") == 0
    ticker.check_counts()


def test_a_claim_of_very_many_queues_keeps_the_order_over_all_of_them(ticker: Ticker) -> None:
    queues = tuple(f"q{n:04}" for n in range(2 * MOST_ARMS + 3))
    # Every second job of the order lies in another statement's part of the queues.
    order = [queues[(i * MOST_ARMS) % len(queues)] for i in range(40)]
    jobs = [new_job(queue=queue, priority=i % 4) for i, queue in enumerate(order)]
    enqueue = ticker.enqueue(jobs)
    ticker.run(enqueue)
    pairs = zip(jobs, enqueue.keys, strict=True)
    expected = [key for _, key in sorted((job.priority, key) for job, key in pairs)]
    assert ticker.take(25, queues=queues) == expected[:25]
    assert ticker.take(25, queues=queues) == expected[25:]


def test_claims_of_one_tick_never_share_a_job(ticker: Ticker) -> None:
    keys = ticker.store(5)
    claims = [Claim(None, [(1, 3)]), Claim(("q",), [(2, 3)]), Claim(None, [(3, 3)])]
    result = ticker.run(claims=claims)
    assert [[job.key for job in jobs] for jobs in result.claimed] == [keys[:3], keys[3:], []]


def test_the_high_water_mark_is_not_written_by_every_tick(ticker: Ticker) -> None:
    def marks() -> int:
        seen = statements(ticker, lambda: ticker.store(10))
        return sum("high_water" in sql for sql in seen)

    assert marks() == 1
    assert [marks() for _ in range(20)] == [0] * 20
    ticker.now += 60_000
    assert marks() == 1
    assert ticker.value("SELECT value FROM meta WHERE name = 'high_water'") > max(ticker.jobs())


def waiting_job(key: int) -> JobRecord:
    return JobRecord(
        key=key,
        queue="q",
        type="t",
        priority=0,
        status=Status.READY,
        ready_at=0,
        payload_size=2,
        payload="{}",
    )


@given(
    st.integers(0, 40),
    st.lists(st.integers(1, 12), max_size=6).map(lambda credits: list(enumerate(credits, 1))),
)
def test_jobs_are_dealt_in_turn_up_to_each_credit(
    count: int, credits: list[tuple[int, int]]
) -> None:
    count = min(count, sum(credit for _, credit in credits))
    jobs = [waiting_job(key) for key in range(count)]
    assert share_out(jobs, Claim(None, credits)) == jobs
    left = dict(credits)
    expected: list[int] = []
    while len(expected) < count:
        for holder in left:
            if left[holder] and len(expected) < count:
                left[holder] -= 1
                expected.append(holder)
    assert [job.holder for job in jobs] == expected


def test_idle_places_get_jobs_before_windows_do() -> None:
    jobs = [waiting_job(key) for key in range(7)]
    claim = Claim(None, [(1, 1), (2, 3), (1, 2), (3, 9)], idle=2)
    assert share_out(jobs, claim) == jobs
    assert [job.holder for job in jobs] == [1, 2, 2, 2, 1, 3, 1]


def test_a_job_is_what_was_sent(ticker: Ticker) -> None:
    sent = new_job(
        queue="ü/'\"",
        type="t:q0",
        payload='{"a": [1.0, 1e3, "\\u0000", "é"]}',
        priority=65_535,
        ready_at=0,
        options=KEPT,
        unique_key="k",
        unique_while=Scope.ACTIVE,
        group="ü/'\"",
    )
    enqueue = ticker.enqueue([sent])
    ticker.run(enqueue)
    stored = ticker.jobs()[enqueue.keys[0]]
    for field in set(sent.__struct_fields__) - {
        "on_conflict",
        "dedupe",
        "ttl_ms",
        "makes",
    }:
        assert getattr(stored, field) == getattr(sent, field), field


def test_race_a_job_expires_while_it_runs_and_is_to_be_tried_again_at_once(ticker: Ticker) -> None:
    (key,) = ticker.store(1, ttl_ms=10)
    assert ticker.take(1) == [key]
    ticker.now += 10
    failure = Fail(key, Failure("m", retry_at=ticker.now))
    result = ticker.run(failure, claims=[Claim(None, [(1, 1)])], promote=True)
    assert (result.claimed, result.tally.expired) == ([[]], 1)


@pytest.mark.parametrize("with_budget", [False, True])
def test_of_many_jobs_that_are_due_at_once_the_most_urgent_are_promoted_first(
    ticker: Ticker, with_budget: bool
) -> None:
    """They become ready in several ticks, and the one stored last goes out with the first."""
    if with_budget:
        ticker.run(CreateBudget("b", BudgetPolicy(1)))
    ticker.store(3 * SLICE, ready_at=ticker.now + 5, priority=100)
    (urgent,) = ticker.store(1, ready_at=ticker.now + 6, priority=0)
    ticker.now += 7
    result = ticker.run(claims=[Claim(None, [(1, 2)])], promote=True)
    assert result.claimed[0][0].key == urgent
    for _ in range(3):
        ticker.run(promote=True)
    assert Status.SCHEDULED not in {job.status for job in ticker.jobs().values()}


def test_a_job_whose_life_is_over_when_its_date_is_met_is_not_delivered(ticker: Ticker) -> None:
    (key,) = ticker.store(1, ready_at=ticker.now + 1_000, ttl_ms=10)
    ticker.now += 5_000
    assert ticker.run(promote=True, claims=[Claim(None, [(1, 1)])]).claimed == [[]]
    assert ticker.jobs()[key].status is Status.EXPIRED
