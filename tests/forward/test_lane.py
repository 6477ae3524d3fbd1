"""Lanes in the tick: jobs get numbers, keep them, and are complete once they have arrived."""

import msgspec
import pytest
from store.rig import Ticker, new_job

from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import CreateBudget
from zq.features.forward.commands import (
    Arrive,
    BeginEpoch,
    DropLane,
    LaneJobs,
    NameHeir,
    NumberLane,
    PauseLane,
    PutLane,
    ReadLane,
)
from zq.features.forward.model import (
    MOST_HEIRS,
    LaneBatch,
    LaneNotFound,
    LaneRefusal,
    LaneRule,
    LanesMeet,
    epoch_of,
)
from zq.features.forward.wire_sent import sent_jobs
from zq.model.commands import CancelJob, Claim, DeleteJob, Fail, Release, SetQueue, Succeed
from zq.model.job import JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.settings import QueueSettings
from zq.model.settling import Failure
from zq.model.unique import Scope
from zq.store.sqlite.upkeep import recover


def lay(ticker: Ticker, *queues: str, name: str = "up", epoch: str = "e.1") -> None:
    (reply,) = ticker.run(PutLane(name, LaneRule(queues or ("out*",)), epoch)).replies
    assert reply.name == name, reply  # type: ignore[attr-defined]


def numbered(ticker: Ticker, most: int = 100, lane: str = "up") -> LaneBatch:
    (batch,) = ticker.run(NumberLane(lane, most)).replies
    assert isinstance(batch, LaneBatch), batch
    return batch


def lane_jobs(ticker: Ticker, lane: str = "up") -> LaneJobs:
    (found,) = ticker.run(ReadLane(lane)).replies
    assert isinstance(found, LaneJobs), found
    return found


def arrived(ticker: Ticker, last: int, epoch: str = "e.1") -> object:
    (count,) = ticker.run(Arrive("up", epoch, last)).replies
    return count


def taken(ticker: Ticker, queues: tuple[str, ...] | None = None) -> list[str]:
    jobs = ticker.run(claims=[Claim(queues, [(1, 100)])]).claimed[0]
    return [job.queue for job in jobs]


def test_workers_take_nothing_from_the_queues_of_a_lane(ticker: Ticker) -> None:
    for queue in ("out", "out/mail", "other"):
        ticker.store(2, queue=queue)
    ticker.store(1, queue="out", options=JobSettings(fair_key="k"))  # type: ignore[call-arg]
    lay(ticker)

    assert taken(ticker) == ["other", "other"]
    assert taken(ticker, ("out", "out/mail")) == []

    ticker.restart()
    assert taken(ticker) == []
    ticker.run(DropLane("up"))
    assert sorted(taken(ticker)) == ["out", "out", "out", "out/mail", "out/mail"]


def test_jobs_get_numbers_in_the_order_in_which_workers_would_get_them(ticker: Ticker) -> None:
    late = ticker.store(2, queue="out")
    early = ticker.store(1, queue="out/mail", priority=1)
    ticker.store(1, queue="other")
    lay(ticker)

    first, second = numbered(ticker, 2), numbered(ticker)

    assert (first.first, first.keys) == (1, [*early, late[0]])
    assert (second.first, second.keys) == (3, [late[1]])
    assert numbered(ticker).keys == []
    ticker.check_counts()


def test_what_was_stored_in_a_tick_gets_its_number_in_the_same(ticker: Ticker) -> None:
    lay(ticker)

    _, batch = ticker.run(ticker.enqueue([new_job(queue="out")]), NumberLane("up", 9)).replies

    assert len(batch.keys) == 1  # type: ignore[attr-defined]


def test_what_has_arrived_is_done_once(ticker: Ticker) -> None:
    keys = ticker.store(5, queue="out")
    lay(ticker)
    numbered(ticker, 3)
    numbered(ticker, 3)

    assert arrived(ticker, 2) == 2
    assert arrived(ticker, 2) == 0
    assert list(ticker.jobs()) == keys[2:]
    assert arrived(ticker, 5, "another") == 0
    assert [batch.keys for batch in lane_jobs(ticker).batches] == [keys[2:3], keys[3:]]
    assert arrived(ticker, 5) == 3
    assert ticker.jobs() == {}
    ticker.check_counts()


def test_retention_is_that_of_jobs_that_succeed(ticker: Ticker) -> None:
    kept = JobSettings(retention=Retention(completed_ms=9000))
    (key,) = ticker.store(1, queue="out", options=kept)
    lay(ticker)
    numbered(ticker)

    arrived(ticker, 1)

    assert ticker.jobs()[key].status is Status.COMPLETED


def test_a_dead_letter_leaves_without_the_unique_key_of_its_former_life(ticker: Ticker) -> None:
    options = JobSettings(dead_letter="graves")
    keyed = new_job(unique_key="k", unique_while=Scope.QUEUED, options=options)
    ticker.run(ticker.enqueue([keyed]))
    (key,) = ticker.take(1)
    ticker.run(Fail(key, Failure("no", kill=True)))
    letter = ticker.jobs()[key]
    assert letter.queue == "graves"
    assert b'"k"' not in sent_jobs([letter], ticker.now)


def test_numbers_outlive_the_process(ticker: Ticker) -> None:
    keys = ticker.store(3, queue="out")
    lay(ticker)
    numbered(ticker, 2)

    ticker.restart()

    found = lane_jobs(ticker)
    assert found.lane.next == 3
    assert [(batch.first, batch.keys, batch.is_whole) for batch in found.batches] == [
        (1, keys[:2], True)
    ]
    assert [job.payload for job in found.batches[0].jobs] == ['{"n":1}'] * 2
    assert numbered(ticker).keys == keys[2:]


def test_all_of_a_group_may_be_under_way_at_once(ticker: Ticker) -> None:
    jobs = [new_job(queue="out", group=group) for group in "abab"]
    command = ticker.enqueue(jobs)
    ticker.run(command)
    lay(ticker)

    assert numbered(ticker).keys == list(command.keys)
    arrived(ticker, 4)
    assert ticker.jobs() == {}


def test_a_job_that_waits_for_its_time_keeps_those_of_its_group(ticker: Ticker) -> None:
    first, later, last = (
        ticker.enqueue([new_job(queue="out", group="a", ready_at=ready)])
        for ready in (None, ticker.now + 1000, None)
    )
    ticker.run(first, later, last)
    lay(ticker)

    assert numbered(ticker).keys == list(first.keys)
    assert arrived(ticker, 1) == 1
    assert numbered(ticker).keys == []


def test_a_paused_queue_stays_and_limits_are_for_workers(ticker: Ticker) -> None:
    ticker.store(3, queue="out")
    lay(ticker)
    ticker.run(SetQueue("out", QueueSettings(paused=True)))
    assert numbered(ticker).keys == []
    ticker.run(SetQueue("out", QueueSettings(concurrency=2, rate=1)))
    assert len(numbered(ticker).keys) == 3


@pytest.mark.parametrize("asked", [False, True])
def test_what_leaves_spends_nothing_of_the_rate_of_a_queue(ticker: Ticker, asked: bool) -> None:
    """Otherwise workers wait for as long as that would take them, once the lane has gone."""
    ticker.run(SetQueue("out", QueueSettings(rate=1)))
    keys = ticker.store(20, queue="out")
    first = ticker.take(1, queues=("out",)) if asked else []
    lay(ticker)
    assert len(numbered(ticker).keys) == 20 - len(first)
    ticker.run(DropLane("up"))

    a_second_later = ticker.tick((), [Claim(("out",), [(1, 20)])])
    tick = msgspec.structs.replace(a_second_later, monotonic=1.0)
    (taken,) = ticker.runner.run(tick).claimed
    assert [job.key for job in taken] == keys[len(first) :][:1]


def test_jobs_that_share_a_queue_or_draw_from_budgets_leave_as_well(ticker: Ticker) -> None:
    ticker.run(CreateBudget("b", BudgetPolicy(3)))
    for options in (JobSettings(fair_key="k"), JobSettings(budgets=(Draw("b", 1),))):  # type: ignore[call-arg]
        ticker.store(1, queue="out", options=options)
    lay(ticker)

    assert len(numbered(ticker).keys) == 2
    arrived(ticker, 2)
    assert ticker.jobs() == {}


@pytest.mark.parametrize("change", [DeleteJob, lambda key: CancelJob(key, force=True)])
def test_a_job_that_is_gone_is_missed_before_anything_is_sent_again(
    ticker: Ticker, change: object
) -> None:
    keys = ticker.store(3, queue="out")
    lay(ticker)
    numbered(ticker)
    ticker.run(change(keys[1]))  # type: ignore[operator]

    (batch,) = lane_jobs(ticker).batches
    assert not batch.is_whole

    (done,) = ticker.run(BeginEpoch("up", "e.1", 1, "e.2")).replies
    assert done is True
    found = lane_jobs(ticker)
    assert (found.lane.epoch, found.lane.next) == ("e.2", 2)
    assert [(batch.first, batch.keys) for batch in found.batches] == [(1, keys[2:])]


def test_a_refused_job_is_dead_and_the_others_go_on_under_new_numbers(ticker: Ticker) -> None:
    keys = ticker.store(4, queue="out")
    lay(ticker)
    numbered(ticker)

    refusal = LaneRefusal(2, "the payload is too large", "payload_too_large")
    ticker.run(BeginEpoch("up", "e.1", 1, "e.2", refusal))

    jobs = ticker.jobs()
    assert list(jobs) == keys[1:]
    assert jobs[keys[1]].status is Status.DEAD
    assert [batch.keys for batch in lane_jobs(ticker).batches] == [keys[2:]]
    assert arrived(ticker, 2, "e.2") == 2
    assert list(ticker.jobs()) == [keys[1]]
    ticker.check_counts()


def test_a_job_that_somebody_made_ready_again_is_done_when_it_arrives(ticker: Ticker) -> None:
    (key,) = ticker.store(1, queue="out")
    lay(ticker)
    numbered(ticker)
    ticker.run(Release([key], {}))
    assert ticker.jobs()[key].status is Status.READY

    arrived(ticker, 1)

    assert ticker.jobs() == {}


def test_an_epoch_ends_once(ticker: Ticker) -> None:
    lay(ticker)
    assert ticker.run(BeginEpoch("up", "e.1", 0, "e.2")).replies == [True]
    assert ticker.run(BeginEpoch("up", "e.1", 0, "e.3")).replies == [False]


def test_a_lane_follows_its_own_epochs_if_nothing_can_arrive_twice(ticker: Ticker) -> None:
    """Those that it has left, and those in which nothing has arrived."""
    instances = [f"identity.{number}" for number in range(MOST_HEIRS + 2)]

    def begin(instance: str, number: int) -> None:
        epoch, to = lane_jobs(ticker).lane.epoch, epoch_of(instance, number)
        ticker.run(NameHeir("up", to))
        ticker.run(BeginEpoch("up", epoch, 0, to))

    lay(ticker, epoch="identity.new")
    for instance in instances:
        begin(instance, 1)
    begin(instances[-1], 9)
    begin(instances[-1], 10)
    ticker.run(NameHeir("up", epoch_of("identity.next", 12)))

    lane = lane_jobs(ticker).lane
    for instance, number, last, may in (
        (instances[-1], 9, 5, True),
        (instances[-2], 1, 5, True),
        (instances[-2], 2, 5, False),
        (instances[-1], 12, 0, False),
        ("identity.next", 12, 0, True),
        ("identity.next", 12, 5, False),
        ("identity.next", 13, 0, False),
        ("identity.another", 1, 0, False),
        (instances[0], 1, 0, False),
    ):
        assert lane.may_follow(epoch_of(instance, number), last) is may, (instance, number, last)
    assert not lane.may_follow("of another program", 0)


def test_a_lane_that_is_dropped_gives_its_jobs_back(ticker: Ticker) -> None:
    keys = ticker.store(3, queue="out")
    lay(ticker)
    numbered(ticker, 2)

    ticker.run(DropLane("up"))

    assert ticker.take(9) == keys
    (reply,) = ticker.run(ReadLane("up")).replies
    assert isinstance(reply, LaneNotFound)


def test_a_queue_is_on_one_lane(ticker: Ticker) -> None:
    lay(ticker, "a*", "b")
    for queues in (("ab",), ("*",), ("b*",), ("x", "b")):
        (reply,) = ticker.run(PutLane("two", LaneRule(queues), "e.9")).replies
        assert isinstance(reply, LanesMeet), queues
    lay(ticker, "ba", "c*", name="two")
    lay(ticker, "a", name="up")


def test_a_lane_keeps_its_numbers_when_its_rule_changes(ticker: Ticker) -> None:
    ticker.store(1, queue="out")
    lay(ticker)
    numbered(ticker)
    lay(ticker, "out", "more", epoch="e.7")

    ticker.run(PauseLane("up", True))

    lane = lane_jobs(ticker).lane
    assert (lane.epoch, lane.next, lane.paused) == ("e.1", 2, True)
    assert lane.rule.queues == ("out", "more")


def test_jobs_of_a_lane_stay_with_it_at_a_start(ticker: Ticker) -> None:
    keys = ticker.store(2, queue="out")
    ticker.run(SetQueue("out", QueueSettings(leases_survive=False)))
    lay(ticker)
    numbered(ticker)

    recovered = recover(ticker.connection)

    assert (recovered.returned, recovered.claimed) == (0, 0)
    assert ticker.jobs()[keys[0]].status is Status.IN_FLIGHT


def test_an_acknowledgement_of_a_worker_is_missed_like_a_deletion(ticker: Ticker) -> None:
    keys = ticker.store(2, queue="out")
    lay(ticker)
    numbered(ticker)
    ticker.run(Succeed(keys[:1]))

    assert not lane_jobs(ticker).batches[0].is_whole
    assert msgspec.to_builtins(arrived(ticker, 2)) == 2
    assert ticker.jobs() == {}
