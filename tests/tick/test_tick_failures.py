"""Ticks that fail: a command that raises, a full disk, a database that cannot be written."""

import logging
import sqlite3
from collections.abc import Callable

import pytest
from store.rig import Ticker, new_job

from zq.model.commands import (
    AnyCommand,
    Claim,
    Clear,
    DeleteJob,
    Due,
    EnqueueResult,
    Fail,
    PatchJob,
    Return,
    Settled,
    Succeed,
)
from zq.model.errors import Internal, NotInFlight, StorageFull
from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.settling import Failure
from zq.model.unique import Scope
from zq.store.errors import StoreError, StoreFailed

READY, IN_FLIGHT = Status.READY, Status.IN_FLIGHT

LARGE_PAYLOAD = f'"{"x" * 100_000}"'


def bad_enqueue(ticker: Ticker) -> AnyCommand:
    """Two jobs of which the schema refuses the second."""
    return ticker.enqueue([new_job(), new_job(type="")])


def bad_text(ticker: Ticker) -> AnyCommand:
    """A name that cannot be written as UTF-8 at all."""
    return ticker.enqueue([new_job(queue="\ud800")])


def bad_patch(ticker: Ticker) -> AnyCommand:
    (key,) = ticker.store(1, queue="patched")
    return PatchJob(key, "ID", Patch(priority=70_000))


@pytest.mark.parametrize("bad", [bad_enqueue, bad_text, bad_patch])
@pytest.mark.parametrize("place", [0, 3, 7])
def test_a_command_that_raises_fails_alone_and_its_neighbours_are_kept(
    ticker: Ticker,
    bad: Callable[[Ticker], AnyCommand],
    place: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ticker.store(6)
    held = ticker.take(5)
    (waiting,) = (key for key, job in ticker.jobs().items() if job.status is READY)
    before = set(ticker.jobs())
    good: list[AnyCommand] = [
        Succeed([held[0], 7]),
        Fail(held[1], Failure("boom")),
        Fail(7, Failure("nobody has it")),
        Return(1, [held[2]]),
        PatchJob(held[3], "ID", Patch(queue="other")),
        DeleteJob(waiting),
        ticker.enqueue([new_job(queue="new"), new_job(payload=LARGE_PAYLOAD)]),
    ]
    commands = [*good[:place], bad(ticker), *good[place:]]

    result = ticker.run(*commands)

    replies = list(result.replies)
    assert isinstance(replies.pop(place), Internal)
    assert replies[0] == Settled(frozenset({7}))
    assert isinstance(replies[1], JobRecord)
    assert isinstance(replies[2], NotInFlight)
    assert isinstance(replies[4], JobRecord)
    assert replies[3] is replies[5] is None
    assert replies[6] == EnqueueResult({})
    jobs = ticker.jobs()
    new = [job for key, job in jobs.items() if key not in before and job.queue != "patched"]
    assert [(job.queue, job.payload_size) for job in new] == [("new", 7), ("q", 100_002)]
    assert held[0] not in jobs
    assert waiting not in jobs
    assert jobs[held[1]].status is Status.SCHEDULED
    assert jobs[held[2]].status is READY
    assert (jobs[held[3]].queue, jobs[held[3]].status) == ("other", IN_FLIGHT)
    assert jobs[held[4]].status is IN_FLIGHT
    assert sorted(result.ended) == [(1, key) for key in held[:3]]
    ticker.check_counts()
    assert any(record.exc_info for record in caplog.records if record.levelno == logging.ERROR)


def test_a_bulk_of_which_one_job_is_refused_stores_none(ticker: Ticker) -> None:
    unique = new_job(unique_key="k", unique_while=Scope.EXISTS)
    command = ticker.enqueue([new_job(payload=LARGE_PAYLOAD), unique, new_job(type="")])
    assert [type(reply) for reply in ticker.run(command).replies] == [Internal]
    assert ticker.jobs() == {}
    assert ticker.value("SELECT count(*) FROM payloads") == 0
    assert ticker.value("SELECT count(*) FROM queue_counts WHERE n <> 0") == 0


def test_commands_that_raise_do_not_spoil_each_other(ticker: Ticker) -> None:
    good = ticker.enqueue([new_job()])
    result = ticker.run(bad_enqueue(ticker), good, bad_text(ticker), bad_enqueue(ticker))
    assert [type(reply) for reply in result.replies] == [
        Internal,
        EnqueueResult,
        Internal,
        Internal,
    ]
    assert list(ticker.jobs()) == list(good.keys)
    ticker.check_counts()


def test_a_tick_in_which_a_command_raises_makes_no_claims_and_the_next_one_does(
    ticker: Ticker,
) -> None:
    good = ticker.enqueue([new_job()])
    result = ticker.run(good, bad_enqueue(ticker), claims=[Claim(None, [(1, 9)])])
    assert result.claimed == []
    assert result.woken == {"q"}
    assert ticker.take(9) == list(good.keys)


def test_what_is_due_is_done_although_a_command_raises(ticker: Ticker) -> None:
    (key,) = ticker.store(1, ready_at=ticker.now + 5)
    ticker.now += 5
    result = ticker.run(bad_enqueue(ticker), promote=True, purge=True)
    assert ticker.jobs()[key].status is READY
    assert result.deadlines is not None
    assert Due.PROMOTION not in result.deadlines
    ticker.check_counts()


def test_a_key_freed_by_a_command_that_failed_is_not_free(ticker: Ticker) -> None:
    (owner,) = ticker.store(1, unique_key="k", unique_while=Scope.EXISTS)
    ticker.take(1)
    # Takes the key over, then breaks a rule of the schema, so it has never been.
    usurper = new_job(unique_key="k", unique_while=Scope.QUEUED)
    ticker.run(ticker.enqueue([usurper, new_job(type="")]))
    assert ticker.value("SELECT id FROM jobs WHERE owns_key") == owner
    again = ticker.enqueue([new_job(unique_key="k", unique_while=Scope.EXISTS)])
    (reply,) = ticker.run(again).replies
    assert isinstance(reply, EnqueueResult)
    assert [job.key for job in reply.owners.values()] == [owner]


@pytest.mark.parametrize("bad", [False, True])
def test_clearing_beside_other_commands_counts_and_leaves_what_is_there(
    ticker: Ticker, bad: bool
) -> None:
    """The end of all jobs comes after the settlements and changes of its tick, before new jobs."""
    ticker.store(5)
    acknowledged, deleted, *_ = ticker.take(3)
    commands: list[AnyCommand] = [Succeed([acknowledged]), DeleteJob(deleted), Clear()]
    new = ticker.enqueue([new_job(queue="new")])
    if bad:
        commands.append(bad_enqueue(ticker))
    result = ticker.run(*commands, new)
    assert result.replies[:3] == [Settled(frozenset()), None, 3]
    assert list(ticker.jobs()) == list(new.keys)
    assert len(result.ended) == 3
    ticker.check_counts()


def test_clearing_after_an_enqueue_that_ran_alone_leaves_no_counts(ticker: Ticker) -> None:
    result = ticker.run(ticker.enqueue([new_job()] * 2), bad_enqueue(ticker), Clear())
    assert isinstance(result.replies[1], Internal)
    # Alone, commands run in the order given.
    assert result.replies[2] == 2
    assert ticker.jobs() == {}
    ticker.check_counts()


# A database that can grow no more.


def fill_up(ticker: Ticker) -> None:
    """No page is free and none can be added."""
    # Migrations leave a few pages free.
    ticker.sqlite.execute("VACUUM")
    pages = ticker.value("PRAGMA page_count")
    assert ticker.value("PRAGMA freelist_count") == 0
    ticker.sqlite.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_refuses_new_jobs_and_lets_acknowledgements_pass(ticker: Ticker) -> None:
    ticker.store(40)
    held = ticker.take(20)
    fill_up(ticker)
    before = ticker.jobs()
    failure = Failure("m", kill=True)
    settled: list[AnyCommand] = [
        Succeed(held[:10]),
        Fail(held[10], failure),
        Return(1, held[11:15]),
    ]
    many = ticker.enqueue([new_job(payload=LARGE_PAYLOAD), *[new_job()] * 500])
    large = ticker.enqueue([new_job(), new_job(payload=LARGE_PAYLOAD)])

    result = ticker.run(*settled, many, large)

    assert [type(reply) for reply in result.replies[3:]] == [StorageFull, StorageFull]
    assert result.replies[0] == Settled(frozenset())
    assert isinstance(result.replies[1], JobRecord)
    after = ticker.jobs()
    assert after.keys() == before.keys() - set(held[:10])
    assert after[held[10]].status is Status.DEAD
    assert {after[key].status for key in held[11:15]} == {READY}
    assert ticker.value("SELECT count(*) FROM payloads") == 0
    ticker.check_counts()
    assert ticker.value("PRAGMA integrity_check") == "ok"


def test_new_jobs_are_stored_again_once_there_is_space(ticker: Ticker) -> None:
    ticker.store(10)
    fill_up(ticker)
    enqueue = ticker.enqueue([new_job(payload=LARGE_PAYLOAD)])
    assert [type(reply) for reply in ticker.run(enqueue).replies] == [StorageFull]
    ticker.sqlite.execute("PRAGMA max_page_count = 100000")
    assert ticker.run(enqueue).replies == [EnqueueResult({})]
    assert ticker.jobs()[enqueue.keys[0]].payload == LARGE_PAYLOAD


def test_a_read_only_database_stops_the_server_and_changes_nothing(ticker: Ticker) -> None:
    ticker.store(1)
    before = ticker.jobs()
    ticker.sqlite.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreFailed):
        ticker.run(Clear(), ticker.enqueue([new_job()]))
    assert not ticker.connection.in_transaction
    ticker.sqlite.execute("PRAGMA query_only = OFF")
    assert ticker.jobs() == before


def _no_forgetting(action: int, table: str | None, *_: object) -> int:
    denied = (action, table) == (sqlite3.SQLITE_DELETE, "dedupe")
    return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK


def test_what_is_due_and_raises_fails_no_command(ticker: Ticker) -> None:
    ticker.sqlite.set_authorizer(_no_forgetting)
    enqueue = ticker.enqueue([new_job()])
    assert ticker.run(enqueue, names=True).replies == [EnqueueResult({})]
    # A tick without commands has nobody to spare, so it says what has failed.
    with pytest.raises(StoreError, match="not authorized"):
        ticker.run(names=True)
    ticker.sqlite.set_authorizer(None)
    ticker.run(names=True)
    assert list(ticker.jobs()) == list(enqueue.keys)
