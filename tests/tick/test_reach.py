"""A tick with a bounded reach: jobs beyond it do not exist."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store.rig import FOREVER, NOW, Ticker, make_ticker, new_job

from zq.model.commands import (
    Claim,
    DeleteJob,
    DeleteSlice,
    Enqueue,
    EnqueueResult,
    Entered,
    Fail,
    PatchJob,
    PatchSlice,
    Settled,
    Succeed,
)
from zq.model.errors import JobNotFound, KeyConflict, NotInFlight
from zq.model.filters import Filter
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE, Reach, reach_of
from zq.model.settling import Completion, Failure
from zq.model.unique import Scope
from zq.store import lookups

SHOP = reach_of(["shop-"])


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    ticker = make_ticker(tmp_path / "zq.db")
    yield ticker
    ticker.check_counts()
    ticker.close()


def claimed(ticker: Ticker, reach: Reach, count: int = 10) -> list[str]:
    result = ticker.run(claims=[Claim(None, [(1, count)], reach)])
    return [job.queue for job in result.claimed[0]]


def unique(ticker: Ticker, *jobs: tuple[str, str, Scope]) -> Enqueue:
    """An enqueue within SHOP of jobs given as (queue, unique key, scope)."""
    command = ticker.enqueue(
        new_job(queue=queue, unique_key=key, unique_while=scope) for queue, key, scope in jobs
    )
    return msgspec.structs.replace(command, reach=SHOP)


def test_a_claim_takes_from_every_queue_with_the_prefix_and_no_other(ticker: Ticker) -> None:
    for queue in ("shop", "shop,", "shop-", "shop-b", "shop-a", "shop.", "Shop-a", "zoo"):
        ticker.store(1, queue=queue)

    assert claimed(ticker, SHOP) == ["shop-", "shop-b", "shop-a"]


def test_a_claim_by_prefix_keeps_the_order_of_dispatch_over_its_queues(ticker: Ticker) -> None:
    ticker.store(1, queue="shop-a", priority=2)
    ticker.store(1, queue="shop-b", priority=1)
    ticker.store(1, queue="mail", priority=0)
    ticker.store(1, queue="shop-a", priority=1)

    assert claimed(ticker, SHOP, 2) == ["shop-b", "shop-a"]
    assert claimed(ticker, SHOP) == ["shop-a"]


def test_a_claim_by_prefix_sees_a_queue_that_its_own_tick_brings_into_being(
    ticker: Ticker,
) -> None:
    enqueue = ticker.enqueue([new_job(queue="shop-new"), new_job(queue="mail")])

    result = ticker.run(enqueue, claims=[Claim(None, [(1, 5)], SHOP)])

    assert [job.queue for job in result.claimed[0]] == ["shop-new"]


def test_several_prefixes_are_claimed_from_together(ticker: Ticker) -> None:
    for queue in ("b-1", "c-1", "a-1"):
        ticker.store(1, queue=queue)

    assert claimed(ticker, reach_of(["a-", "b-"])) == ["b-1", "a-1"]


NAMES = st.text(st.sampled_from("ab-.Z é\U0010ffff\ue000\ud7ff"), min_size=1, max_size=3)


@given(queues=st.sets(NAMES, max_size=8), prefixes=st.sets(NAMES, min_size=1, max_size=3))
def test_store_and_model_agree_on_what_a_reach_covers(
    tmp_path_factory: pytest.TempPathFactory, queues: set[str], prefixes: set[str]
) -> None:
    ticker = make_ticker(tmp_path_factory.mktemp("reach") / "zq.db")
    ticker.run(ticker.enqueue(new_job(queue=queue) for queue in sorted(queues)))
    reach = reach_of(prefixes)
    within = {queue for queue in queues if any(queue.startswith(p) for p in prefixes)}

    found = lookups.list_jobs(ticker.core, Filter(reach=reach), -1, False, 100, NOW)
    assert {job.queue for job in found} == within
    assert lookups.count_jobs(ticker.core, Filter(reach=reach), NOW) == len(within)
    assert sorted(claimed(ticker, reach)) == sorted(within)
    ticker.close()


def test_settlements_beyond_reach_find_nothing_and_change_nothing(ticker: Ticker) -> None:
    mine, other = *ticker.store(1, queue="shop-a"), *ticker.store(1, queue="mail")
    ticker.take(2)

    result = ticker.run(Succeed([mine, other], SHOP))

    assert result.replies == [Settled(frozenset({other}))]
    assert result.ended == [(1, mine)]
    (refusal,) = ticker.run(Fail(other, Failure("m"), SHOP)).replies
    assert isinstance(refusal, NotInFlight)
    assert {key: job.status for key, job in ticker.jobs().items()} == {other: Status.IN_FLIGHT}


def test_a_lease_beyond_reach_is_not_found_whatever_it_is(ticker: Ticker) -> None:
    mine, other = *ticker.store(1, queue="shop-a"), *ticker.store(1, queue="mail")
    ticker.take(2)
    stale = Completion(lease=9)

    result = ticker.run(Succeed([mine, other], SHOP, {mine: stale, other: stale}))

    assert result.replies == [Settled(frozenset({other}), frozenset({mine}))]
    assert result.ended == []


def test_each_acknowledgement_of_a_tick_goes_by_its_own_reach(ticker: Ticker) -> None:
    first, second = ticker.store(2, queue="mail")
    ticker.take(2)

    result = ticker.run(Succeed([first], SHOP), Succeed([second]))

    assert result.replies == [Settled(frozenset({first})), Settled(frozenset())]
    assert set(ticker.jobs()) == {first}


def test_changes_beyond_reach_find_nothing_and_change_nothing(ticker: Ticker) -> None:
    (key,) = ticker.store(1, queue="mail", priority=5)
    patch, filter = Patch(priority=1), Filter(reach=SHOP)

    replies = ticker.run(
        PatchJob(key, "id", patch, SHOP),
        PatchSlice([key], filter, patch),
        DeleteJob(key, SHOP),
        DeleteSlice([key], filter),
    ).replies

    assert [type(reply) for reply in replies] == [JobNotFound, Entered, JobNotFound, int]
    assert (replies[1], replies[3]) == (Entered(0), 0)
    assert ticker.jobs()[key].priority == 5


def test_changes_within_reach_are_made(ticker: Ticker) -> None:
    first, second = ticker.store(2, queue="shop-a", priority=5)

    ticker.run(PatchJob(first, "id", Patch(priority=1), SHOP), DeleteJob(second, SHOP))

    assert {key: job.priority for key, job in ticker.jobs().items()} == {first: 1}


def test_readers_see_jobs_within_reach_only(ticker: Ticker) -> None:
    mine, other = *ticker.store(1, queue="shop-a"), *ticker.store(1, queue="mail")
    core, filter = ticker.core, Filter(reach=SHOP)

    assert lookups.get_job(core, mine, SHOP, NOW) is not None
    assert lookups.get_job(core, other, SHOP, NOW) is None
    assert lookups.list_keys(core, filter, -1, FOREVER, 10) == [mine]
    assert lookups.count_jobs(core, filter, NOW) == 1
    assert lookups.count_jobs(core, Filter(types=("t",), reach=SHOP), NOW) == 1
    assert lookups.count_jobs(core, Filter(queues=("mail",), reach=SHOP), NOW) == 0


def test_a_duplicate_of_a_job_beyond_reach_is_a_conflict_and_nothing_is_stored(
    ticker: Ticker,
) -> None:
    ticker.store(1, queue="mail", unique_key="k", unique_while=Scope.QUEUED)
    before = set(ticker.jobs())

    (reply,) = ticker.run(
        unique(ticker, ("shop-a", "fresh", Scope.QUEUED), ("shop-a", "k", Scope.QUEUED))
    ).replies

    assert isinstance(reply, KeyConflict)
    assert set(ticker.jobs()) == before
    # The refused command has not taken the fresh key either.
    (reply,) = ticker.run(unique(ticker, ("shop-a", "fresh", Scope.QUEUED))).replies
    assert reply == EnqueueResult({})


def test_a_duplicate_of_a_job_within_reach_is_answered_with_it(ticker: Ticker) -> None:
    (key,) = ticker.store(1, queue="shop-b", unique_key="k", unique_while=Scope.QUEUED)

    (reply,) = ticker.run(unique(ticker, ("shop-a", "k", Scope.QUEUED))).replies

    assert isinstance(reply, EnqueueResult)
    assert reply.owners[0].key == key


def test_the_first_use_of_a_key_decides_even_if_a_later_one_has_a_wider_scope(
    ticker: Ticker,
) -> None:
    ticker.store(1, queue="mail", unique_key="k", unique_while=Scope.QUEUED)
    ticker.take(1)

    # In flight, the other's job is no obstacle to the first, which owns the key from then on.
    (reply,) = ticker.run(
        unique(ticker, ("shop-a", "k", Scope.QUEUED), ("shop-a", "k", Scope.EXISTS))
    ).replies

    assert isinstance(reply, EnqueueResult)
    assert [owner.queue for owner in reply.owners.values()] == ["shop-a"]


def test_a_reach_is_the_least_set_of_its_prefixes() -> None:
    assert reach_of([]) is EVERYWHERE
    assert reach_of(["a", ""]) is EVERYWHERE
    assert reach_of(["shop-b", "shop-", "mail", "shop-"]).prefixes == ("mail", "shop-")
    assert EVERYWHERE.covers("anything")
    assert not Reach(()).covers("anything")
