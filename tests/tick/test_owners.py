"""Owners of unique keys at rare points of a job's life. Other tests cover the usual ones."""

from collections.abc import Callable
from typing import Any

import pytest
from store.rig import Ticker, new_job

from zq.features.sweeps.model import SweepMark, UndoSlice
from zq.features.targets.model import AddTarget
from zq.model.commands import (
    AnyCommand,
    CancelSlice,
    DeleteJob,
    Enqueue,
    EnqueueResult,
    Entered,
    Fail,
    PatchJob,
    PatchSlice,
    Release,
    Return,
    ReviveSlice,
    Succeed,
)
from zq.model.filters import EVERYTHING, Filter
from zq.model.job import JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.settling import Failure
from zq.model.unique import KeySpace, Scope
from zq.tick import slices
from zq.tick.slices import SLICE_ROWS

KEPT = JobSettings(retention=Retention(completed_ms=60_000))
QUEUED, ACTIVE, EXISTS = Scope


def unique(ticker: Ticker, scope: Scope = EXISTS, count: int = 1, **fields: object) -> Enqueue:
    """Jobs that are to be the only ones of their key."""
    return ticker.enqueue([new_job(unique_key="k", unique_while=scope, **fields)] * count)


def owner(ticker: Ticker) -> int | None:
    """The job that owns the key."""
    rows = ticker.connection.execute(
        "SELECT id FROM jobs WHERE owns_key AND unique_key = 'k'"
    ).fetchall()
    assert len(rows) <= 1
    return rows[0][0] if rows else None


def finish(ticker: Ticker) -> int:
    """A job that owns the key and is completed, for a minute."""
    enqueue = unique(ticker, options=KEPT)
    ticker.run(enqueue)
    ticker.run(Succeed(ticker.take(1)))
    return enqueue.keys[0]


@pytest.mark.parametrize("scope", Scope)
def test_an_owner_whose_retention_is_over_never_blocks(ticker: Ticker, scope: Scope) -> None:
    expired = finish(ticker)
    ticker.now += 60_000
    newcomer = unique(ticker, scope)
    assert ticker.run(newcomer).replies == [EnqueueResult({})]
    assert expired in ticker.jobs(), "not purged yet"
    assert owner(ticker) == newcomer.keys[0]
    ticker.run(purge=True)
    assert owner(ticker) == newcomer.keys[0]


def test_an_owner_blocks_until_the_last_moment_of_its_retention(ticker: Ticker) -> None:
    old = finish(ticker)
    ticker.now += 59_999
    (reply,) = ticker.run(unique(ticker)).replies
    assert isinstance(reply, EnqueueResult)
    assert [job.key for job in reply.owners.values()] == [old]


def test_an_expired_owner_does_not_come_back_with_the_clock(ticker: Ticker) -> None:
    finish(ticker)
    ticker.now += 60_000
    newcomer = unique(ticker)
    ticker.run(newcomer)
    ticker.now -= 60_000
    (reply,) = ticker.run(unique(ticker)).replies
    assert isinstance(reply, EnqueueResult)
    assert [job.key for job in reply.owners.values()] == list(newcomer.keys)


def revival(ticker: Ticker, **fields: object) -> AnyCommand:
    """What brings back a dead job."""
    (key,) = ticker.store(1, unique_key="k", unique_while=ACTIVE, **fields)
    ticker.take(1)
    ticker.run(Fail(key, Failure("m", kill=True)))
    return ReviveSlice([key], EVERYTHING)


def undoing(ticker: Ticker, **fields: object) -> AnyCommand:
    """What takes the cancellation of a job back."""
    keys = ticker.store(1, unique_key="k", unique_while=ACTIVE, **fields)
    ticker.run(CancelSlice(keys, EVERYTHING, False, SweepMark(7, "{}", 1.0)))
    return UndoSlice(keys, Filter(swept=7))


def moving(ticker: Ticker, **fields: object) -> AnyCommand:
    """What moves a job to the queue q."""
    fields |= {"queue": "another", "unique_key": "k", "unique_while": ACTIVE}
    return PatchSlice(ticker.store(1, **fields), EVERYTHING, Patch(queue="q"))


ENTRIES = pytest.mark.parametrize("enters", [revival, undoing, moving])


@ENTRIES
def test_an_owner_in_flight_has_its_key_although_its_time_to_wait_is_over(
    ticker: Ticker, enters: Callable[..., AnyCommand]
) -> None:
    command = enters(ticker, unique_in=KeySpace.QUEUE)
    ticker.run(unique(ticker, ACTIVE, unique_in=KeySpace.QUEUE, ttl_ms=1_000))
    (running,) = ticker.take(1, queues=("q",))
    ticker.now += 2_000
    assert ticker.run(command).replies == [Entered(0, {"key_taken": 1})]
    assert ticker.value("SELECT owns_key FROM jobs WHERE id = ?", running)


@ENTRIES
@pytest.mark.parametrize("space", KeySpace)
def test_a_job_enters_a_queue_with_targets_by_the_keys_of_the_first_one(
    ticker: Ticker, enters: Callable[..., AnyCommand], space: KeySpace
) -> None:
    command = enters(ticker, unique_in=space)
    ticker.run(AddTarget("q", "a"))
    fields: dict[str, Any] = {"unique_key": "k", "unique_while": ACTIVE, "queue": "q"}
    ticker.store(1, **fields)
    assert ticker.run(command).replies == [Entered(0, {"key_taken": 1})]
    ticker.run(Succeed(ticker.take(1, queues=("a",))))
    assert ticker.run(command).replies == [Entered(1)]
    (reply,) = ticker.run(ticker.enqueue([new_job(**fields)])).replies
    assert isinstance(reply, EnqueueResult)
    assert [job.queue for job in reply.owners.values()] == ["a"]


def test_of_two_cancelled_jobs_that_come_to_one_target_one_has_the_key(ticker: Ticker) -> None:
    undo = undoing(ticker, unique_in=KeySpace.QUEUE)
    ticker.run(AddTarget("q", "a"))
    again = undoing(ticker)
    assert isinstance(undo, UndoSlice) and isinstance(again, UndoSlice)
    both = UndoSlice([*undo.keys, *again.keys], undo.filter)
    assert ticker.run(both).replies == [Entered(1, {"key_taken": 1})]


@pytest.mark.parametrize("scope", Scope)
def test_of_one_request_the_first_is_stored_and_the_others_are_its_duplicates(
    ticker: Ticker, scope: Scope
) -> None:
    enqueue = unique(ticker, scope, count=5)
    (reply,) = ticker.run(enqueue).replies
    assert isinstance(reply, EnqueueResult)
    first = enqueue.keys[0]
    assert {index: job.key for index, job in reply.owners.items()} == dict.fromkeys(
        range(1, 5), first
    )
    assert list(ticker.jobs()) == [first]
    assert owner(ticker) == first


def test_of_many_requests_in_one_tick_exactly_one_is_stored(ticker: Ticker) -> None:
    requests = [unique(ticker, scope) for scope in [*Scope] * 7]
    replies = ticker.run(*requests).replies
    stored = [i for i, reply in enumerate(replies) if reply == EnqueueResult({})]
    assert stored == [0]
    assert list(ticker.jobs()) == list(requests[0].keys)


def test_the_owner_is_judged_after_the_settlements_and_changes_of_the_tick(ticker: Ticker) -> None:
    ticker.run(unique(ticker))
    newcomer = unique(ticker)
    ticker.run(Succeed(ticker.take(1)), newcomer)
    assert owner(ticker) == newcomer.keys[0]
    another = unique(ticker)
    ticker.run(DeleteJob(newcomer.keys[0]), another)
    assert list(ticker.jobs()) == list(another.keys)


@pytest.mark.parametrize(
    "settle", [lambda key: Return(1, [key]), lambda key: Fail(key, Failure("m"))]
)
def test_a_restored_lock_is_there_for_the_enqueues_of_its_tick(
    ticker: Ticker, settle: Callable[[int], AnyCommand]
) -> None:
    ticker.run(unique(ticker, QUEUED))
    (key,) = ticker.take(1)
    assert owner(ticker) is None
    _, reply = ticker.run(settle(key), unique(ticker, QUEUED)).replies
    assert isinstance(reply, EnqueueResult)
    assert [job.key for job in reply.owners.values()] == [key]


def test_a_job_that_dies_or_is_patched_keeps_no_lock_it_has_lost(ticker: Ticker) -> None:
    enqueue = unique(ticker, QUEUED)
    ticker.run(enqueue)
    (key,) = ticker.take(1)
    ticker.run(PatchJob(key, "ID", Patch(ready_at=ticker.now + 5, priority=0)))
    assert owner(ticker) is None
    ticker.run(Fail(key, Failure("m", kill=True)))
    assert owner(ticker) is None


def test_two_former_owners_that_fail_in_one_tick_leave_one_owner(ticker: Ticker) -> None:
    keys = []
    for _ in range(2):
        ticker.run(unique(ticker, QUEUED))
        keys += ticker.take(1)
    ticker.run(*(Fail(key, Failure("m")) for key in keys))
    assert owner(ticker) in keys


Ends = Callable[[list[int]], list[AnyCommand]]

SEVERAL: dict[str, Ends] = {
    "failures": lambda keys: [Fail(key, Failure("m")) for key in keys],
    "a stream that ends": lambda keys: [Return(1, keys, frozenset(keys))],
    "streams that end": lambda keys: [Return(1, [key], frozenset({key})) for key in keys],
    "leases that are over": lambda keys: [],
}


@pytest.mark.parametrize("ends", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("rows", [1, SLICE_ROWS])
def test_a_key_that_another_releases_in_the_same_tick_is_free_for_who_waits_again(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch, rows: int, order: int, ends: Ends
) -> None:
    """However the tick is cut, and in whatever order the reports come."""
    monkeypatch.setattr(slices, "SLICE_ROWS", rows)
    keys: list[int] = []
    for scope, limit in ((QUEUED, 5), (ACTIVE, 0)):
        options = JobSettings(retry_limit=limit, stall_limit=limit, lease_ms=50)
        ticker.run(unique(ticker, scope, options=options))
        keys += ticker.take(1)
    ticker.now += 51
    commands = ends(keys[::order])
    ticker.run(*commands, lapse=not commands)
    assert [ticker.jobs()[key].status is Status.DEAD for key in keys] == [False, True]
    assert owner(ticker) == keys[0]
    (reply,) = ticker.run(unique(ticker, QUEUED)).replies
    assert isinstance(reply, EnqueueResult)
    assert [job.key for job in reply.owners.values()] == keys[:1], "it is no second one"


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("rows", [1, SLICE_ROWS])
def test_of_several_that_wait_again_in_one_tick_the_oldest_has_the_key(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch, rows: int, order: int
) -> None:
    monkeypatch.setattr(slices, "SLICE_ROWS", rows)
    keys: list[int] = []
    for _ in range(3):
        ticker.run(unique(ticker, QUEUED))
        keys += ticker.take(1)
    ticker.run(Release(keys[::order], {}))
    assert owner(ticker) == keys[0]


def test_a_purge_leaves_the_key_with_whoever_took_it_over(ticker: Ticker) -> None:
    """The old owner is outside the incoming scope, so it loses the key although it lives on."""
    old = finish(ticker)
    newcomer = unique(ticker, ACTIVE)
    ticker.run(newcomer)
    assert old in ticker.jobs()
    ticker.now += 60_000
    ticker.run(purge=True)
    assert list(ticker.jobs()) == list(newcomer.keys)
    assert owner(ticker) == newcomer.keys[0]
