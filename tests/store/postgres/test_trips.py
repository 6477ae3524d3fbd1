"""How often a tick waits for PostgreSQL: it does not depend on its jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from store.on_postgres import PostgresTicker
from store.rig import new_job
from zq.model.commands import Claim, Fail, Succeed
from zq.model.errors import ZqError
from zq.model.lifecycle import Move, Status
from zq.model.settling import Failure
from zq.store.errors import RowsDiffer
from zq.tick import moves
from zq.tick.work import UnitOfWork


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[PostgresTicker]:
    ticker = PostgresTicker(tmp_path)
    yield ticker
    ticker.close()


@pytest.mark.parametrize("count", [1, 50, 500])
def test_a_tick_waits_three_times_at_most(ticker: PostgresTicker, count: int) -> None:
    """It settles, inserts and claims: it reads what it settles, finds what it claims, commits."""
    ticker.store(2 * count)
    held = ticker.take(count)
    command = ticker.enqueue([new_job()] * count)
    before = ticker.pipeline.trips
    result = ticker.run(Succeed(held), command, claims=[Claim(None, [(1, count)])])
    assert ticker.pipeline.trips - before == 3
    assert len(result.claimed[0]) == count
    ticker.check_counts()


def test_few_ticks_wait_so_often(ticker: PostgresTicker) -> None:
    def trips(*commands: object, claims: int = 0) -> int:
        before = ticker.pipeline.trips
        wanted = [Claim(None, [(1, claims)])] if claims else []
        ticker.run(*commands, claims=wanted)  # type: ignore[arg-type]
        return ticker.pipeline.trips - before

    assert trips(ticker.enqueue([new_job()] * 100)) == 1
    assert trips(ticker.enqueue([new_job(group="g"), new_job(ttl_ms=5)])) == 1
    assert trips(claims=100) == 2
    held = [job.key for job in ticker.jobs().values() if job.status is Status.IN_FLIGHT]
    assert trips(Succeed(held[1:])) == 2
    # It reads the lines and the group of its error as well. What falls due next comes with COMMIT.
    assert trips(Fail(held[0], Failure("m", None, None))) <= 4


def test_a_command_that_fails_alone_leaves_the_others(
    ticker: PostgresTicker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its statement fails after others were sent, and is undone with them."""
    first, second = ticker.store(2)
    ticker.take(2)
    write = UnitOfWork.write_counts

    def fails(work: UnitOfWork) -> None:
        if work.counts["lost", Status.READY]:
            work.tx.write("delete_jobs", keys=[f"no key {first}"])
        write(work)

    monkeypatch.setattr(UnitOfWork, "write_counts", fails)
    result = ticker.run(
        ticker.enqueue([new_job()]),
        ticker.enqueue([new_job(queue="lost")]),
        Succeed([second]),
        ticker.enqueue([new_job()]),
    )
    assert [isinstance(reply, ZqError) for reply in result.replies] == [False, True, False, False]
    assert {job.queue for job in ticker.jobs().values()} == {"q"}
    assert len(ticker.jobs()) == 3
    ticker.check_counts()


def test_a_move_that_is_not_legal_by_now_fails_the_commit(ticker: PostgresTicker) -> None:
    (ready,) = ticker.store(1)
    tx = ticker.runner._transactions(ticker.now)
    tx.begin()
    tx.write("delete_payloads", keys=[1])
    tx.write("take", 2, holders={ready: 1, ready + 1: 1}, now=1, steady=1)
    tx.write("clear_jobs")
    with pytest.raises(RowsDiffer):
        tx.commit()
    assert tx.is_open
    tx.roll_back()
    assert not tx.is_open
    assert ticker.jobs()[ready].status is Status.READY
    assert ticker.take(1) == [ready]


def test_every_move_can_be_counted(ticker: PostgresTicker) -> None:
    """What a statement of a move is wrapped in fits each of them."""
    from zq.store.postgres.transaction import _expecting

    for move in Move:
        for name in moves.TABLE[move].statements.values():
            prepared = ticker.connection.pgconn.prepare(name.encode(), _expecting(name).sql)
            assert not prepared.error_message, name


def test_prepared_statements_are_few(
    ticker: PostgresTicker, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'zq%'"
    most = ticker.value(kept)
    monkeypatch.setattr("zq.store.postgres.pipeline.STATEMENTS", most)
    for _ in range(3):
        ticker.store(2)
        ticker.run(Succeed(ticker.take(2)))
    assert ticker.value(kept) == most
    ticker.check_counts()
