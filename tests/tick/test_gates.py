"""Claims through gates: as few statements for many queues as for few, also after failures."""

import sqlite3

import pytest
from store.rig import Ticker, new_job

from zq.model.commands import AnyCommand, Claim, Clear, DeleteJob, SetQueue, Succeed
from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.reach import reach_of
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.store.errors import StoreError

from .test_tick import statements

PAUSED = QueueSettings(paused=True)
ALL = Claim(None, [(1, 1_000)])


def claimed(ticker: Ticker, *commands: AnyCommand, claim: Claim = ALL) -> list[str]:
    """The queues of the jobs that a claim gets, which are settled at once."""
    jobs: list[JobRecord] = ticker.run(*commands, claims=[claim]).claimed[0]
    ticker.run(Succeed([job.key for job in jobs]))
    return sorted(job.queue for job in jobs)


def store(ticker: Ticker, *queues: str) -> None:
    ticker.run(ticker.enqueue([new_job(queue=queue) for queue in queues]))


def reads_of(ticker: Ticker, claim: Claim) -> list[str]:
    """The statements by which a claim finds its jobs."""
    ran = statements(ticker, lambda: ticker.run(claims=[claim]))
    return [sql for sql in ran if sql.startswith(("SELECT", "WITH"))]


def test_while_no_gate_is_shut_a_claim_reads_as_ever(ticker: Ticker) -> None:
    store(ticker, *"ab" * 4)
    one = Claim(None, [(1, 1)])
    plain = reads_of(ticker, one)
    ticker.run(SetQueue("c", QueueSettings(concurrency=1, rate=1)))
    assert reads_of(ticker, one) == plain
    ticker.run(SetQueue("d", PAUSED))
    assert reads_of(ticker, one) == plain


def test_statements_of_a_claim_do_not_grow_with_the_gates(ticker: Ticker) -> None:
    store(ticker, *(f"p{n}" for n in range(200)), *["a"] * 9)
    ticker.run(SetQueue("a", QueueSettings(concurrency=9, rate=9)))
    ticker.run(*(SetQueue(f"p{n}", PAUSED) for n in range(190)))
    few = len(reads_of(ticker, Claim(None, [(1, 12)])))
    ticker.run(*(SetQueue(f"p{n}", PAUSED) for n in range(200)))
    assert len(reads_of(ticker, Claim(None, [(1, 2)]))) <= few


def test_a_queue_is_found_from_its_first_job_to_its_last(ticker: Ticker) -> None:
    ticker.run(SetQueue("shut", PAUSED))
    for _ in range(2):
        assert claimed(ticker) == []
        store(ticker, "a", "shut")
        assert claimed(ticker, ticker.enqueue([new_job(queue="b")])) == ["a", "b"]
    (key,) = ticker.store(1, queue="c")
    assert claimed(ticker, DeleteJob(key)) == []
    store(ticker, "a", "d")
    assert claimed(ticker, Clear(), ticker.enqueue([new_job(queue="e")])) == ["e"]
    store(ticker, "shut", "d")
    assert claimed(ticker, SetQueue("shut", NO_SETTINGS)) == ["d", "shut"]


def test_a_gate_that_is_set_in_a_tick_holds_for_its_claims(ticker: Ticker) -> None:
    store(ticker, *["a"] * 3, *["b"] * 3)
    gates = [SetQueue("a", PAUSED), SetQueue("b", QueueSettings(concurrency=2))]
    assert claimed(ticker, *gates) == ["b", "b"]
    assert claimed(ticker, SetQueue("b", QueueSettings(rate=1))) == ["b"]
    assert claimed(ticker) == []


def test_several_claims_of_a_tick_share_what_a_gate_lets_through(ticker: Ticker) -> None:
    ticker.run(SetQueue("a", QueueSettings(concurrency=5)), SetQueue("b", QueueSettings(rate=5)))
    store(ticker, *["a"] * 9, *["b"] * 9)
    claims = [Claim(None, [(1, 3)]), Claim(("a", "b"), [(2, 4)]), Claim(None, [(3, 9)])]
    parts = ticker.run(claims=claims).claimed
    assert [len(part) for part in parts] == [3, 4, 3]
    jobs = [job.queue for part in parts for job in part]
    assert (jobs.count("a"), jobs.count("b")) == (5, 5)


def test_a_tick_that_fails_spends_no_tokens_and_forgets_no_queue(ticker: Ticker) -> None:
    ticker.run(SetQueue("a", QueueSettings(rate=2)), SetQueue("shut", PAUSED))
    store(ticker, *["a"] * 4)
    assert claimed(ticker, claim=Claim(None, [(1, 1)])) == ["a"]
    ticker.sqlite.set_authorizer(_no_commit)
    with pytest.raises(StoreError, match="not authorized"):
        ticker.run(ticker.enqueue([new_job(queue="b")]), claims=[ALL])
    ticker.sqlite.set_authorizer(None)
    assert claimed(ticker) == ["a"]
    assert claimed(ticker) == []
    assert {job.queue for job in ticker.jobs().values()} == {"a"}


def test_after_a_command_that_raises_the_claims_find_what_the_others_have_stored(
    ticker: Ticker,
) -> None:
    ticker.run(SetQueue("shut", PAUSED))
    store(ticker, "a")
    assert claimed(ticker) == ["a"]
    bad = ticker.enqueue([new_job(type="")])
    ticker.run(bad, ticker.enqueue([new_job(queue="b"), new_job(queue="shut")]))
    assert claimed(ticker) == ["b"]


def test_a_claim_within_a_reach_sees_its_gates(ticker: Ticker) -> None:
    ticker.run(SetQueue("x-shut", PAUSED), SetQueue("x-one", QueueSettings(concurrency=1)))
    store(ticker, "x-a", "x-shut", "x-one", "x-one", "y")
    assert claimed(ticker, claim=Claim(None, [(1, 9)], reach_of(["x-"]))) == ["x-a", "x-one"]


def test_a_settlement_wakes_a_queue_that_was_full(ticker: Ticker) -> None:
    ticker.run(SetQueue("a", QueueSettings(concurrency=1)))
    store(ticker, "a", "a")
    (key,) = ticker.take(5)
    assert ticker.run(Succeed([key])).woken == {"a"}
    assert [job.status for job in ticker.jobs().values()] == [Status.READY]


def test_a_rate_tells_when_it_opens_again(ticker: Ticker) -> None:
    ticker.run(SetQueue("a", QueueSettings(rate=0.5)))
    store(ticker, "a", "a")
    result = ticker.run(claims=[ALL])
    assert result.openings == {"a": 2.0}
    store(ticker, "b")
    assert ticker.run(claims=[Claim(("b",), [(1, 1)])]).openings == {}


def _no_commit(action: int, operation: str | None, *_: object) -> int:
    refused = action == sqlite3.SQLITE_TRANSACTION and operation == "COMMIT"
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


def test_a_rate_goes_on_after_a_restart_from_what_was_left(ticker: Ticker) -> None:
    ticker.run(SetQueue("a", QueueSettings(rate=0.05)))
    store(ticker, *["a"] * 4)
    assert claimed(ticker) == ["a"]
    for later_ms, jobs in ((0, []), (19_000, []), (1_000, ["a"]), (3_600_000, ["a"])):
        ticker.restart()
        ticker.now += later_ms
        assert claimed(ticker) == jobs
    # A clock that was set back fills nothing.
    ticker.restart()
    ticker.now -= 3_600_000
    assert claimed(ticker) == []


def test_a_rate_that_is_given_up_is_full_when_it_is_set_again(ticker: Ticker) -> None:
    ticker.run(SetQueue("a", QueueSettings(rate=0.05)))
    store(ticker, *["a"] * 3)
    assert claimed(ticker) == ["a"]
    ticker.run(SetQueue("a", NO_SETTINGS))
    assert ticker.value("SELECT count(*) FROM queue_rates") == 0
    ticker.run(SetQueue("a", QueueSettings(rate=0.05)))
    assert claimed(ticker) == ["a"]
    ticker.run(Clear(settings=True))
    assert ticker.value("SELECT count(*) FROM queue_rates") == 0
