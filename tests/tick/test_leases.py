"""Leases in the tick: the winner when two commands meet, and the counts."""

from pathlib import Path

import pytest
from store.rig import NOW, Ticker, make_ticker

from zq.model.commands import (
    AnyCommand,
    Claim,
    DeleteJob,
    Extend,
    Extended,
    Fail,
    Release,
    Return,
    SetQueue,
    Settled,
    Succeed,
)
from zq.model.errors import NotInFlight, StaleLease
from zq.model.job import JobRecord, JobSettings, Reason
from zq.model.leasing import Terms
from zq.model.lifecycle import Status
from zq.model.reach import reach_of
from zq.model.settings import QueueSettings
from zq.model.settling import Completion, Failure
from zq.tick.due import SLICE

PLAYER = 7
LEASE_MS = 1_000


def claim(ticker: Ticker, count: int = 1) -> list[JobRecord]:
    """Jobs for a claimant."""
    terms = {PLAYER: Terms(LEASE_MS, "c")}
    result = ticker.run(claims=[Claim(None, [(PLAYER, count)], terms=terms)])
    return result.claimed[0]


def row(ticker: Ticker, key: int) -> JobRecord:
    return ticker.jobs()[key]


def test_a_claimed_job_has_a_claimant_and_a_deadline_instead_of_a_stream(ticker: Ticker) -> None:
    (key,) = ticker.store(1)
    (job,) = claim(ticker)
    assert (job.key, job.holder, job.claimant) == (key, PLAYER, "c")
    assert job.lease_until == NOW + LEASE_MS
    stored = row(ticker, key)
    assert (stored.status, stored.holder, stored.claimant) == (Status.IN_FLIGHT, 0, "c")
    assert stored.lease_until == NOW + LEASE_MS
    ticker.check_counts()


def test_one_claim_deals_to_streams_and_claimants_on_their_own_terms(ticker: Ticker) -> None:
    keys = ticker.store(3)
    terms = {2: Terms(lease_ms=50), 3: Terms(claimant="c")}
    result = ticker.run(claims=[Claim(None, [(1, 1), (2, 1), (3, 1)], terms=terms)])
    assert [job.holder for job in result.claimed[0]] == [1, 2, 3]
    found = [row(ticker, key) for key in keys]
    assert [job.holder for job in found] == [1, 2, 0]
    assert [job.claimant for job in found] == [None, None, "c"]
    assert [job.lease_until for job in found] == [None, NOW + 50, NOW + 30_000]


def test_a_plain_claim_of_plain_jobs_runs_the_statement_without_leases(ticker: Ticker) -> None:
    ticker.store(2)
    ticker.store(1, options=JobSettings(lease_ms=9))
    texts: list[str] = []
    ticker.sqlite.set_trace_callback(texts.append)
    ticker.take(2)
    assert not any("claimant =" in text for text in texts)
    ticker.take(1)
    ticker.sqlite.set_trace_callback(None)
    assert any("claimant =" in text for text in texts)


@pytest.mark.parametrize("late_ms", [0, 1])
def test_a_lease_lapses_strictly_after_its_deadline(ticker: Ticker, late_ms: int) -> None:
    (key,) = ticker.store(1)
    claim(ticker)
    ticker.now += LEASE_MS + late_ms
    result = ticker.run(lapse=True)
    assert result.lapsed == ([key] if late_ms else [])
    assert result.ended == ([(0, key)] if late_ms else [])
    job = row(ticker, key)
    assert (job.status, job.stalls) == ((Status.READY, 1) if late_ms else (Status.IN_FLIGHT, 0))
    assert (job.claimant, job.lease_until) == ((None, None) if late_ms else ("c", NOW + LEASE_MS))
    assert result.tally.stalled == late_ms
    ticker.check_counts()


def test_leases_go_by_the_steady_time_whatever_the_wall_clock_says(ticker: Ticker) -> None:
    ticker.store(1)
    claim(ticker)
    tick = ticker.tick([], lapse=True)
    for now, steady, lapsed in [
        (NOW + 10**9, NOW + LEASE_MS, 0),
        (NOW - 10**9, NOW + LEASE_MS + 1, 1),
    ]:
        tick = type(tick)(now, steady, (), (), tick.due, durable=False)
        assert len(ticker.runner.run(tick).lapsed) == lapsed


def test_thousands_of_leases_lapse_slice_by_slice(ticker: Ticker) -> None:
    ticker.store(2 * SLICE + 7)
    claim(ticker, 2 * SLICE + 7)
    ticker.now += LEASE_MS + 1
    found = [len(ticker.run(lapse=True).lapsed) for _ in range(4)]
    assert found == [SLICE, SLICE, 7, 0]
    ticker.check_counts()


# Races: both are pending in one tick


def test_extend_against_expiry_extend_wins(ticker: Ticker) -> None:
    (key,) = ticker.store(1)
    claim(ticker)
    ticker.now += LEASE_MS + 1
    result = ticker.run(Extend([key], {key: 1}, 500), lapse=True)
    assert result.replies == [Extended(Settled(frozenset()), ticker.now + 500)]
    assert result.lapsed == []
    assert row(ticker, key).lease_until == ticker.now + 500


def test_expiry_before_extend_makes_its_token_stale(ticker: Ticker) -> None:
    (key,) = ticker.store(1)
    claim(ticker)
    ticker.now += LEASE_MS + 1
    ticker.run(lapse=True)
    result = ticker.run(Extend([key], {key: 1}, 500))
    assert result.replies == [Extended(Settled(frozenset(), frozenset({key})), ticker.now + 500)]
    # Without a token there is nothing to extend: nobody holds the job.
    result = ticker.run(Extend([key], {}, 500))
    assert result.replies == [Extended(Settled(frozenset({key})), ticker.now + 500)]
    assert row(ticker, key).lease_until is None


def test_success_against_expiry_success_wins(ticker: Ticker) -> None:
    (key,) = ticker.store(1)
    claim(ticker)
    ticker.now += LEASE_MS + 1
    result = ticker.run(Succeed([key], said={key: Completion(lease=1)}), lapse=True)
    assert result.replies == [Settled(frozenset())]
    assert (result.lapsed, result.ended) == ([], [(0, key)])
    assert key not in ticker.jobs()


def test_a_claim_in_the_tick_of_the_expiry_makes_the_old_token_stale(ticker: Ticker) -> None:
    (key,) = ticker.store(1)
    claim(ticker)
    ticker.now += LEASE_MS + 1
    again = ticker.run(claims=[Claim(None, [(1, 1)])], lapse=True)
    assert (again.lapsed, [job.deliveries for job in again.claimed[0]]) == ([key], [2])
    result = ticker.run(Fail(key, Failure("late", lease=1)))
    assert isinstance(result.replies[0], StaleLease)
    assert row(ticker, key).attempts == 0
    assert ticker.run(Succeed([key], said={key: Completion(lease=2)})).tally.completed == 1


@pytest.mark.parametrize("first", ["success", "release"])
def test_release_against_success_whoever_comes_second_finds_nothing(
    ticker: Ticker, first: str
) -> None:
    (key,) = ticker.store(1)
    claim(ticker)
    success = Succeed([key], said={key: Completion(lease=1)})
    release = Release([key], {key: 1})
    commands = (success, release) if first == "success" else (release, success)
    assert ticker.run(commands[0]).replies == [Settled(frozenset())]
    (second,) = ticker.run(commands[1]).replies
    # A job that is gone is missing; one that waits has had this delivery.
    gone = first == "success"
    assert second == Settled(frozenset({key} if gone else ()), frozenset(() if gone else {key}))
    assert (key in ticker.jobs()) is not gone


def test_a_claim_whose_reply_was_lost_goes_back_by_its_own_token_only(ticker: Ticker) -> None:
    first, second = ticker.store(2)
    claim(ticker, 2)
    ticker.run(Release([first], {}))
    claim(ticker, 1)
    # The reply of the first claim could not be written; its first job has been taken again since.
    result = ticker.run(Return(0, [first, second], leases={first: 1, second: 1}))
    assert result.ended == [(0, second)]
    assert [row(ticker, key).status for key in (first, second)] == [Status.IN_FLIGHT, Status.READY]
    assert row(ticker, second).stalls == 0
    ticker.check_counts()


def test_a_return_of_a_stream_does_not_touch_what_a_claimant_has(ticker: Ticker) -> None:
    (key,) = ticker.store(1)
    claim(ticker)
    assert ticker.run(Return(PLAYER, [key])).ended == []
    assert row(ticker, key).status is Status.IN_FLIGHT


# What comes of a lease that ends


@pytest.mark.parametrize("how", ["success", "failure", "death", "delete", "release", "return"])
def test_a_claimed_lease_ends_with_its_delivery(ticker: Ticker, how: str) -> None:
    (key,) = ticker.store(1)
    claim(ticker)
    commands: dict[str, AnyCommand] = {
        "success": Succeed([key]),
        "failure": Fail(key, Failure("m")),
        "death": Fail(key, Failure("m", kill=True)),
        "delete": DeleteJob(key),
        "release": Release([key], {}, delay_ms=5),
        "return": Return(0, [key], leases={key: 1}),
    }
    result = ticker.run(commands[how])
    assert result.ended == [(0, key)]
    assert result.revoked == ([key] if how == "delete" else [])
    left = ticker.jobs().get(key)
    assert left is None or (left.holder, left.claimant, left.lease_until) == (None, None, None)
    ticker.check_counts()


def test_a_lease_out_of_reach_is_neither_stale_nor_there(ticker: Ticker) -> None:
    (key,) = ticker.store(1, queue="q")
    claim(ticker)
    reach = reach_of(["other"])
    missing = Settled(frozenset({key}))
    for leases in ({}, {key: 1}, {key: 9}):
        extended, released = ticker.run(
            Extend([key], leases, 5, reach), Release([key], leases, 0, reach)
        ).replies
        assert extended == Extended(missing, NOW + 5)
        assert released == missing
        (failed,) = ticker.run(Fail(key, Failure("m", lease=leases.get(key)), reach)).replies
        assert isinstance(failed, NotInFlight)
    assert row(ticker, key).lease_until == NOW + LEASE_MS


def test_a_job_that_stalls_too_often_moves_to_the_dead_letter_queue(ticker: Ticker) -> None:
    settings = QueueSettings(stall_limit=0, dead_letter="graves")
    ticker.run(SetQueue("q", settings))
    (key,) = ticker.store(1)
    claim(ticker)
    ticker.now += LEASE_MS + 1
    result = ticker.run(lapse=True)
    assert result.buried == {key: (Reason.STALLED, 1)}
    job = row(ticker, key)
    assert (job.queue, job.status, job.stalls) == ("graves", Status.READY, 0)
    assert job.extras is not None
    assert (job.extras.origin, job.extras.reason) == ("q", "stalled")
    ticker.check_counts()


# A new life of the server


@pytest.mark.parametrize("survive", [None, True, False])
def test_a_start_keeps_claimed_leases_unless_their_queue_says_otherwise(
    ticker: Ticker, tmp_path: Path, survive: bool | None
) -> None:
    ticker.run(SetQueue("q", QueueSettings(leases_survive=survive)))
    claimed, streamed = ticker.store(2)
    claim(ticker)
    ticker.run(claims=[Claim(None, [(1, 1)], terms={1: Terms(lease_ms=LEASE_MS)})])
    ticker.close()
    again = make_ticker(tmp_path / "zq.db")
    kept = survive is not False
    assert row(again, streamed).status is Status.READY
    job = row(again, claimed)
    assert job.status is (Status.IN_FLIGHT if kept else Status.READY)
    assert (job.claimant, job.stalls) == ("c" if kept else None, 0)
    again.check_counts()
    again.now += LEASE_MS + 1
    assert again.run(lapse=True).lapsed == ([claimed] if kept else [])
    again.close()
