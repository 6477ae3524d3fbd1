"""Takers, tested by hand: changes between a plan and the result of its tick."""

from typing import Any

from zq.engine.delivery.streams import Streams
from zq.engine.delivery.takers import Plan, Stream, StreamNotice, Subscription
from zq.model.commands import Return, TickResult
from zq.model.effects import Tally
from zq.model.job import JobRecord
from zq.model.leasing import Terms
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE

KEY = 16


def job(key: int, holder: int, **fields: Any) -> JobRecord:
    values: dict[str, Any] = {"deliveries": 1, "holder": holder, "dequeued_at": 5} | fields
    return JobRecord(key, "q", "t", 0, Status.IN_FLIGHT, 5, 2, "{}", **values)


def result(*claimed: list[JobRecord], **fields: Any) -> TickResult:
    """What a tick answers that has made these claims."""
    values: dict[str, Any] = dict.fromkeys(("replies", "ended"), ())
    values |= {"revoked": (), "lapsed": (), "buried": {}, "woken": set(), "tally": Tally()}
    values |= {"deadlines": None, "rows": 0, "claimed": list(claimed), "logged": 0}
    values |= {"traffic": [], "news": []}
    return TickResult(**(values | fields))


def refuse(rest: Return) -> None:
    """Nothing is given back here but what `apply` answers."""
    raise AssertionError(rest)


def stream_of(streams: Streams, **wish: Any) -> Stream:
    return streams.open(["q"], EVERYWHERE, Subscription(**wish), 0, lambda: 0)


def planned(streams: Streams) -> Plan:
    plan = streams.plan([])
    assert len(plan.claims) == 1
    return plan


def holding(streams: Streams, *keys: int, **wish: Any) -> Stream:
    """A stream that holds jobs, all of them written."""
    stream = stream_of(streams, window=len(keys), **wish)
    streams.apply(result([job(key, stream.number) for key in keys]), planned(streams))
    assert len(stream.next_jobs(10**6)) == len(keys)
    return stream


async def test_a_claim_under_way_when_its_stream_is_drained_goes_back() -> None:
    streams = Streams(0, 0, refuse)
    stream = stream_of(streams)
    plan = planned(streams)
    assert stream.drain() is None
    assert streams.apply(result([job(KEY, stream.number)]), plan) == [Return(stream.number, [KEY])]
    assert (stream.held, stream.next_jobs(9)) == ({}, [])
    # Until the return is committed, the job counts as held, and then no longer.
    assert not streams.is_empty
    streams.apply(result(ended=[(stream.number, KEY)]), Plan())
    streams.close(stream)
    assert streams.is_empty


async def test_what_a_drained_stream_has_not_been_sent_yet_goes_back() -> None:
    streams = Streams(0, 0, refuse)
    stream = stream_of(streams, window=2)
    streams.apply(result([job(KEY, stream.number)]), planned(streams))
    assert stream.drain() == Return(stream.number, [KEY])
    assert stream.drain() is None
    assert stream.next_jobs(9) == []
    assert stream.unsent == 0


async def test_what_is_claimed_for_a_claimant_who_has_gone_goes_back_by_its_token() -> None:
    streams = Streams(0, 0, refuse)
    claimer = streams.ask("q", 2, Terms(claimant="c"), hasty=False)
    plan = planned(streams)
    streams.dismiss(claimer)
    claimed = job(KEY, claimer.number, claimant="c", deliveries=4)
    assert streams.apply(result([claimed]), plan) == [Return(0, [KEY], leases={KEY: 4})]
    assert not streams.is_empty
    streams.apply(result(ended=[(0, KEY)]), Plan())
    assert streams.is_empty


async def test_a_job_that_is_claimed_again_in_the_tick_of_its_lapse_is_not_sent_twice() -> None:
    streams = Streams(0, 0, refuse)
    stream = holding(streams, KEY, lease_ms=5)
    streams.credit_changed(stream)
    other = stream_of(streams)
    plan = planned(streams)
    back = streams.apply(
        result([job(KEY, stream.number, deliveries=2)], lapsed=[KEY], ended=[(stream.number, KEY)]),
        plan,
    )
    assert back == [Return(stream.number, [KEY])]
    assert stream.ended
    assert stream.next_jobs(9) == []
    assert other.held == {}


async def test_a_lapsed_stream_gives_back_the_rest_of_what_it_holds_at_once() -> None:
    streams = Streams(0, 0, refuse)
    stream = holding(streams, 1, 2, 3, 4, lease_ms=5, concurrency=2)
    (back,) = streams.apply(result(lapsed=[1], ended=[(stream.number, 1)]), Plan())
    assert back == Return(stream.number, [2, 3, 4], frozenset({2}))


async def test_what_was_never_written_has_not_stalled() -> None:
    streams = Streams(0, 0, refuse)
    stream = stream_of(streams, window=3, concurrency=3)
    streams.apply(result([job(key, stream.number) for key in (1, 2, 3)]), planned(streams))
    assert [written.key for written in stream.next_jobs(1)] == [1]
    assert streams.close(stream) == Return(stream.number, [1, 2, 3], frozenset({1}))


async def test_a_stream_is_told_of_no_job_that_it_has_not_been_sent() -> None:
    streams = Streams(0, 0, refuse)
    stream = stream_of(streams, window=2, control=True, lease_ms=5)
    streams.apply(result([job(key, stream.number) for key in (1, 2)]), planned(streams))
    assert [written.key for written in stream.next_jobs(1)] == [1]
    for key in (1, 2):
        stream.tell("cancel", key)
    assert stream.next_notices() == [StreamNotice("cancel", 1, 1)]
    assert [written.key for written in stream.next_jobs(1)] == [2]
    assert stream.next_notices() == [StreamNotice("cancel", 2, 1)]


async def test_a_lapsed_stream_is_told_of_the_leases_that_it_knows() -> None:
    streams = Streams(0, 0, refuse)
    stream = stream_of(streams, window=2, control=True, lease_ms=5)
    streams.apply(result([job(key, stream.number) for key in (1, 2)]), planned(streams))
    assert [written.key for written in stream.next_jobs(1)] == [1]
    ended = [(stream.number, 1), (stream.number, 2)]
    streams.apply(result(lapsed=[1, 2], ended=ended), Plan())
    assert [notice.key for notice in stream.next_notices()] == [1]


async def test_a_claim_that_waits_for_nothing_is_answered_where_nothing_can_come() -> None:
    streams = Streams(1, 1, refuse)
    limited = streams.ask("q", 1, Terms(claimant="c"), hasty=True)
    assert streams.plan([]).claims == []
    assert list(await limited.take()) == []


async def test_a_claim_that_waits_for_nothing_outlives_a_tick_that_comes_to_nothing() -> None:
    streams = Streams(0, 0, refuse)
    claimer = streams.ask("q", 1, Terms(claimant="c"), hasty=True)
    streams.postpone(planned(streams))
    plan = planned(streams)
    # Its commands had to run again one by one, without the claims.
    streams.apply(result(), plan)
    assert not claimer.is_done
    streams.apply(result([job(KEY, claimer.number, claimant="c")]), planned(streams))
    assert [found.key for found in await claimer.take()] == [KEY]
    later = streams.ask("q", 1, Terms(claimant="c"), hasty=True)
    streams.apply(result([]), planned(streams))
    assert list(await later.take()) == []


async def test_more_claimants_than_a_claim_deals_to_have_their_turn_one_after_the_other() -> None:
    streams = Streams(0, 0, refuse)
    claimers = [streams.ask("q", 1, Terms(claimant="c"), hasty=True) for _ in range(300)]
    first = planned(streams)
    assert len(first.claims[0].credits) == 256
    numbers = [number for number, _ in first.claims[0].credits]
    hands = [job(key, number, claimant="c") for key, number in enumerate(numbers)]
    streams.apply(result(hands), first)
    assert sum(claimer.is_done for claimer in claimers) == 256
    second = planned(streams)
    assert len(second.claims[0].credits) == 44


async def test_a_stream_and_claims_of_a_queue_share_one_claim() -> None:
    streams = Streams(0, 0, refuse)
    stream = stream_of(streams, window=3, lease_ms=9)
    plain = stream_of(streams)
    claimer = streams.ask("q", 2, Terms(5, "c"), hasty=True)
    (claim,) = planned(streams).claims
    idle = [(stream.number, 1), (plain.number, 1), (claimer.number, 2)]
    assert (claim.credits, claim.idle) == ([*idle, (stream.number, 2)], 3)
    assert claim.terms == {stream.number: Terms(9), claimer.number: Terms(5, "c")}
