"""Queues with targets: each target gets each job once, whatever comes with it in a tick."""

from collections import Counter
from typing import Any

import pytest
from rooms import joining
from store.rig import NOW, Ticker, new_job

from zq.features.batches.model import BatchRule
from zq.features.targets.model import (
    AddTarget,
    GroupInFlight,
    RemoveTarget,
    TargetExists,
    TargetNotFound,
)
from zq.features.targets.tick import SLICE
from zq.model.commands import (
    EnqueueResult,
    Fail,
    PatchJob,
    PatchSlice,
    Revive,
    ReviveSlice,
    SetQueue,
    Succeed,
)
from zq.model.errors import (
    DeadLetterCycle,
    FanOutChain,
    QueueFull,
    QueueNotRegistered,
    Unprocessable,
)
from zq.model.filters import EVERYTHING, Filter
from zq.model.job import INLINE_PAYLOAD, DedupeRule, JobRecord
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.model.settling import Failure
from zq.model.unique import OnConflict, Scope


def by_queue(ticker: Ticker) -> dict[str, list[str | None]]:
    """The payloads of the stored jobs in the order of their keys, by queue."""
    found: dict[str, list[str | None]] = {}
    for job in ticker.jobs().values():
        found.setdefault(job.queue, []).append(job.payload)
    return found


def waiting(ticker: Ticker, queue: str) -> list[JobRecord]:
    return [job for job in ticker.jobs().values() if job.queue == queue]


def fan_out(ticker: Ticker, queue: str, *targets: str, **fields: Any) -> None:
    ticker.run(SetQueue(queue, QueueSettings(fan_out=targets, **fields)))


def test_each_target_gets_a_job_of_its_own_and_the_queue_none(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a", "b", "c")
    command = ticker.enqueue([new_job(payload="1"), new_job(payload="2"), new_job(queue="other")])
    (reply,) = ticker.run(command).replies
    assert by_queue(ticker) == {
        "a": ["1", "2"], "b": ["1", "2"], "c": ["1", "2"], "other": ['{"n":1}']
    }  # fmt: skip
    assert isinstance(reply, EnqueueResult) and reply.queues == {0: "a", 1: "a"}
    assert [job.key for job in waiting(ticker, "a")] == list(command.keys[:2])
    copies = [job.extras and job.extras.twin_of for job in waiting(ticker, "b")]
    assert copies == list(command.keys[:2])

    first, _ = ticker.take(2, queues=("a",))
    ticker.run(Succeed([first]))
    assert by_queue(ticker)["a"] == ["2"] and by_queue(ticker)["b"] == ["1", "2"]


def test_a_queue_may_be_its_own_target(ticker: Ticker) -> None:
    fan_out(ticker, "q", "q", "a")
    ticker.store(2)
    assert Counter(job.queue for job in ticker.jobs().values()) == {"q": 2, "a": 2}


def test_a_queue_behind_other_targets_of_its_own_gets_its_jobs_alone(ticker: Ticker) -> None:
    """Its twins go to no other target, though they name a queue with targets."""
    fan_out(ticker, "q", "a")
    ticker.store(2)
    assert ticker.run(AddTarget("q", "q")).replies == [2]
    assert Counter(job.queue for job in ticker.jobs().values()) == {"a": 2, "q": 2}
    (key,) = ticker.store(1, queue="elsewhere")
    ticker.run(PatchJob(key, "", Patch(queue="q")))
    assert Counter(job.queue for job in ticker.jobs().values()) == {"a": 3, "q": 3}


@pytest.mark.parametrize("settings", [QueueSettings(fan_out=("a", "b")), QueueSettings()])
def test_the_settings_and_the_jobs_of_one_tick_belong_together(
    ticker: Ticker, settings: QueueSettings
) -> None:
    fan_out(ticker, "q", "old")
    ticker.run(ticker.enqueue([new_job()]), SetQueue("q", settings))
    expected = settings.fan_out or ("q",)
    assert sorted(by_queue(ticker)) == sorted(expected)


def test_keys_belong_to_each_target_by_itself(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a", "b")
    keyed: dict[str, Any] = {
        "unique_key": "k",
        "unique_while": Scope.QUEUED,
        "on_conflict": OnConflict.REPLACE_CONTENT,
    }
    command = ticker.enqueue([new_job(payload="1", **keyed)])
    ticker.run(command)
    ticker.take(1, queues=("b",))
    (reply,) = ticker.run(ticker.enqueue([new_job(payload="2", **keyed)])).replies
    assert isinstance(reply, EnqueueResult)
    assert [owner.key for owner in reply.owners.values()] == list(command.keys)
    assert by_queue(ticker) == {"a": ["2"], "b": ["1", "2"]}


def test_the_keys_of_jobs_that_waited_belong_to_their_target(ticker: Ticker) -> None:
    keyed: dict[str, Any] = {"unique_key": "k", "unique_while": Scope.ACTIVE}
    (waits,) = ticker.store(1, **keyed)
    ticker.run(AddTarget("q", "a"))
    (reply,) = ticker.run(ticker.enqueue([new_job(**keyed)])).replies
    assert isinstance(reply, EnqueueResult)
    assert [owner.key for owner in reply.owners.values()] == [waits]


@pytest.mark.parametrize("before", [(), ("a",)], ids=["first", "second"])
def test_the_keys_of_jobs_that_waited_hold_where_their_queue_becomes_its_own_target(
    ticker: Ticker, before: tuple[str, ...]
) -> None:
    keyed: dict[str, dict[str, Any]] = {
        name: {"unique_key": name, "unique_while": scope, "priority": 1}
        for name, scope in (("runs", Scope.ACTIVE), ("free", Scope.QUEUED), ("dead", Scope.EXISTS))
    } | {"waits": {"unique_key": "waits", "unique_while": Scope.ACTIVE}}
    keys = {name: ticker.store(1, **fields)[0] for name, fields in keyed.items()}
    assert len(ticker.take(3)) == 3
    ticker.run(Fail(keys["dead"], Failure("m", kill=True)))
    if before:
        fan_out(ticker, "q", *before)
    ticker.run(AddTarget("q", "q"))
    for fields in keyed.values():
        ticker.store(1, **fields)
    found = Counter(job.unique_key for job in waiting(ticker, "q"))
    assert found == {"runs": 1, "free": 2, "dead": 1, "waits": 1}


def test_names_belong_to_each_target_by_itself(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a", "b")
    for _ in range(2):
        ticker.run(ticker.enqueue([new_job(dedupe=DedupeRule("once"))]))
    assert Counter(job.queue for job in ticker.jobs().values()) == {"a": 1, "b": 1}


@pytest.mark.parametrize("own", [(), ("q",)], ids=["others", "own too"])
def test_a_new_target_knows_the_names_of_the_jobs_before_it(
    ticker: Ticker, own: tuple[str, ...]
) -> None:
    """A producer repeats what it has sent, since its answer was lost."""
    named = [
        new_job(payload=str(n), group="g" if n else None, dedupe=DedupeRule("once", 1000 + n))
        for n in range(2)
    ]
    ticker.run(ticker.enqueue(named))
    for target in (*own, "a", "b"):
        ticker.run(AddTarget("q", target))
        ticker.run(ticker.enqueue(named))
    targets = (*own, "a", "b")
    assert by_queue(ticker) == {target: ["0", "1"] for target in targets}
    ticker.now += 1000
    ticker.run(ticker.enqueue(named))
    assert by_queue(ticker) == {target: ["0", "1", "0"] for target in targets}


def test_a_new_target_knows_no_name_whose_time_is_over(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a", "b")
    named = new_job(dedupe=DedupeRule("once", 1000))
    ticker.run(ticker.enqueue([named]))
    ticker.run(RemoveTarget("q", "b"))
    ticker.now += 1000
    ticker.run(ticker.enqueue([named]))
    ticker.run(AddTarget("q", "b"), ticker.enqueue([named]))
    assert Counter(job.queue for job in ticker.jobs().values()) == {"a": 2, "b": 2}


def test_all_or_none_holds_over_targets(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a", "b")
    ticker.run(SetQueue("b", QueueSettings(max_depth=1)))
    ticker.run(ticker.enqueue([new_job()] * 2))
    assert ticker.jobs() == {}
    ticker.run(ticker.enqueue([new_job()]))
    assert len(ticker.jobs()) == 2


def test_a_job_that_comes_back_needs_room_in_the_target(ticker: Ticker) -> None:
    (key,) = ticker.store(1)
    ticker.take(1)
    ticker.run(Fail(key, Failure("m", kill=True)))
    ticker.run(SetQueue("q", QueueSettings(fan_out=("a",), max_depth=1)))
    ticker.run(SetQueue("a", QueueSettings(max_depth=1)))
    ticker.store(1)
    (reply,) = ticker.run(Revive(key)).replies
    assert isinstance(reply, QueueFull) and "the queue 'a' is full" in reply.message


@pytest.mark.parametrize("targets", [("q", "a"), ("a", "q")], ids=["first", "second"])
@pytest.mark.parametrize("letter", [None, "dlq"], ids=["dead", "dead letter"])
@pytest.mark.parametrize("by_filter", [False, True], ids=["one", "by filter"])
def test_a_job_that_comes_back_to_its_queue_among_the_targets_stays_there_alone(
    ticker: Ticker, targets: tuple[str, ...], letter: str | None, by_filter: bool
) -> None:
    """The other target has done its twin, and gets no second one."""
    keyed: dict[str, Any] = {"unique_key": "k", "unique_while": Scope.QUEUED}
    fan_out(ticker, "q", *targets, dead_letter=letter)
    ticker.store(1, **keyed)
    (key,) = ticker.take(1, queues=("q",))
    ticker.run(Succeed(ticker.take(1, queues=("a",))), Fail(key, Failure("m", kill=True)))
    one = Revive(key, home=letter is not None)
    ticker.run(ReviveSlice([key], Filter(revivable=True)) if by_filter else one)
    found = [(job.key, job.queue, job.status) for job in ticker.jobs().values()]
    assert found == [(key, "q", Status.READY)]
    ticker.store(1, **keyed)
    assert Counter(job.queue for job in ticker.jobs().values()) == {"q": 1, "a": 1}


def test_a_dead_letter_that_is_moved_home_leaves_others_to_the_targets(ticker: Ticker) -> None:
    """They are moved together, and come to different queues."""
    fan_out(ticker, "q", "a", "q", dead_letter="dlq")
    ticker.store(1)
    ticker.run(Succeed(ticker.take(1, queues=("a",))))
    (letter,) = ticker.take(1, queues=("q",))
    ticker.run(Fail(letter, Failure("m", kill=True)))
    (other,) = ticker.store(1, queue="dlq", payload="other")
    ticker.run(PatchSlice([letter, other], EVERYTHING, Patch(queue="q")))
    assert by_queue(ticker) == {"q": ['{"n":1}', "other"], "a": ["other"]}
    assert ticker.jobs()[letter].queue == "q" and ticker.jobs()[other].queue == "a"


def test_limits_are_those_of_the_queue_that_was_named(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a", "b", retry_limit=7, ttl_ms=9)
    defaults = QueueSettings(retry_limit=1, dead_letter="grave")
    command = ticker.enqueue([new_job()])
    ticker.run(type(command)(command.keys, command.jobs, NOW, 1, defaults=defaults))
    for job in ticker.jobs().values():
        assert job.options is not None and job.expires_at == NOW + 9
        assert (job.options.retry_limit, job.options.dead_letter) == (7, "grave")


def test_targets_are_known_where_strangers_are_refused(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a")
    command = ticker.enqueue([new_job()])
    strict = type(command)(command.keys, command.jobs, NOW, 1, registered_only=True)
    (reply,) = ticker.run(strict).replies
    assert isinstance(reply, EnqueueResult)
    stranger = ticker.enqueue([new_job(queue="x")])
    strict = type(stranger)(stranger.keys, stranger.jobs, NOW, 1, registered_only=True)
    (reply,) = ticker.run(strict).replies
    assert isinstance(reply, QueueNotRegistered)


def test_a_batch_cannot_be_spread(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a", "b")
    batched = new_job(extras=joining(BatchRule("k", "true", ".new")))
    replies = ticker.run(ticker.enqueue([batched]), ticker.enqueue([new_job()])).replies
    assert isinstance(replies[0], Unprocessable) and len(ticker.jobs()) == 2


def test_a_target_has_no_targets(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a")
    chained = SetQueue("a", QueueSettings(fan_out=("b",)))
    (reply,) = ticker.run(chained).replies
    assert isinstance(reply, FanOutChain)
    (reply,) = ticker.run(SetQueue("p", QueueSettings(fan_out=("q",)))).replies
    assert isinstance(reply, FanOutChain)
    ticker.run(SetQueue("q", NO_SETTINGS))
    assert ticker.run(chained).replies == [QueueSettings(fan_out=("b",))]


def test_the_first_target_gets_what_waits_and_leaves_what_runs(ticker: Ticker) -> None:
    ticker.store(3)
    (running,) = ticker.take(1)
    ticker.run(ticker.enqueue([new_job(ready_at=NOW + 5)]))
    keys = [key for key in ticker.jobs() if key != running]
    assert ticker.run(AddTarget("q", "a")).replies == [3]
    assert [job.key for job in waiting(ticker, "a")] == keys
    assert [job.key for job in waiting(ticker, "q")] == [running]
    statuses = Counter(job.status for job in waiting(ticker, "a"))
    assert statuses == {Status.READY: 2, Status.SCHEDULED: 1}


def test_a_first_target_waits_until_no_job_of_a_group_is_in_flight(ticker: Ticker) -> None:
    keys = ticker.store(3, group="g")
    other = ticker.store(1, queue="another", group="g")
    (head, _) = ticker.take(4)
    (reply,) = ticker.run(AddTarget("q", "a")).replies
    assert isinstance(reply, GroupInFlight) and "'g'" in str(reply)
    assert waiting(ticker, "a") == [] and ticker.run(AddTarget("q", "q")).replies == [0]
    ticker.run(RemoveTarget("q", "q"), Fail(head, Failure("m")))
    assert ticker.run(AddTarget("q", "a")).replies == [3]
    assert ticker.take(1, queues=("a",)) == [], "the first one is to be tried again before"
    assert [job.key for job in waiting(ticker, "a")] == keys
    assert ticker.jobs()[other[0]].status is Status.IN_FLIGHT


def test_a_later_target_gets_what_any_other_has_not_finished(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a", "b")
    ticker.run(ticker.enqueue([new_job(payload=str(n)) for n in range(5)]))
    done_by_a = ticker.take(3, queues=("a",))
    done_by_b = ticker.take(1, queues=("b",))
    ticker.take(1, queues=("b",))
    ticker.run(Succeed(done_by_a), Succeed(done_by_b))
    # Only the first one is finished by both. The second is running somewhere, which counts.
    assert ticker.run(AddTarget("q", "c")).replies == [4]
    assert sorted(p or "" for p in by_queue(ticker)["c"]) == ["1", "2", "3", "4"]
    assert {job.status for job in waiting(ticker, "c")} == {Status.READY}
    assert ticker.run(AddTarget("q", "d")).replies == [4]


def test_a_later_target_gets_the_jobs_in_the_order_in_which_they_came(ticker: Ticker) -> None:
    """Those that only a later target has were stored behind all others of their command."""
    fan_out(ticker, "q", "a", "b")
    numbers = [str(n) for n in range(2 * SLICE + 2)]
    ticker.run(ticker.enqueue([new_job(payload=n, group="g") for n in numbers]))
    for _ in numbers[: SLICE + 1]:
        ticker.run(Succeed(ticker.take(1, queues=("a",))))
    assert ticker.run(AddTarget("q", "c")).replies == [len(numbers)]
    assert by_queue(ticker)["c"] == by_queue(ticker)["b"] == numbers
    (first,) = ticker.take(2, queues=("c",))
    assert ticker.jobs()[first].payload == "0"


def test_a_copy_begins_anew_with_its_payload_and_its_time_to_live(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a")
    large = "9" * (INLINE_PAYLOAD + 1)
    ticker.run(ticker.enqueue([new_job(payload=large, ttl_ms=1000)]))
    (key,) = ticker.take(1, queues=("a",))
    ticker.run(Fail(key, Failure("boom")))
    ticker.now += 400
    ticker.run(AddTarget("q", "b"))
    (copy,) = waiting(ticker, "b")
    assert copy.attempts == 0 and copy.expires_at == NOW + 1000
    assert copy.status is Status.READY
    body = ticker.value("SELECT body FROM payloads WHERE job_id = ?", copy.key)
    assert body == large


@pytest.mark.parametrize("jobs_first", [True, False])
def test_a_target_beside_new_jobs_of_the_same_tick_misses_none_and_doubles_none(
    ticker: Ticker, jobs_first: bool
) -> None:
    fan_out(ticker, "q", "a")
    ticker.store(2)
    commands = [ticker.enqueue([new_job()]), AddTarget("q", "b"), ticker.enqueue([new_job()])]
    ticker.run(*(commands if jobs_first else reversed(commands)))
    assert Counter(job.queue for job in ticker.jobs().values()) == {"a": 4, "b": 4}


def test_a_target_that_goes_takes_its_jobs_and_settings_with_it(ticker: Ticker) -> None:
    fan_out(ticker, "q", "a", "b", max_depth=9)
    assert ticker.run(AddTarget("q", "c")).replies == [0]
    assert ticker.run(SetQueue("c", QueueSettings(max_depth=9))).replies
    ticker.store(3)
    ticker.take(1, queues=("c",))
    result = ticker.run(RemoveTarget("q", "c"))
    assert result.replies == [3] and len(result.revoked) == 1
    ticker.store(1)
    assert Counter(job.queue for job in ticker.jobs().values()) == {"a": 4, "b": 4}
    settings = ticker.value("SELECT group_concat(queue) FROM queue_settings")
    assert settings == "q"
    for target in ("a", "b"):
        ticker.run(RemoveTarget("q", target))
    ticker.store(1)
    assert by_queue(ticker) == {"q": ['{"n":1}']}


def test_a_new_target_begins_with_the_settings_of_the_queue(ticker: Ticker) -> None:
    ticker.run(SetQueue("q", QueueSettings(max_depth=9)), SetQueue("own", QueueSettings(rate=2.5)))
    ticker.run(AddTarget("q", "a"), AddTarget("q", "own"))
    found = dict(ticker.sqlite.execute("SELECT queue, settings FROM queue_settings"))
    assert found["a"] == '{"max_depth":9}' and found["own"] == '{"rate":2.5}'


@pytest.mark.parametrize("before", [(), ("a", "b")], ids=["first", "third"])
def test_a_new_target_has_to_have_room_for_all_that_it_gets(
    ticker: Ticker, before: tuple[str, ...]
) -> None:
    ticker.run(SetQueue("small", QueueSettings(max_depth=3)))
    if before:
        fan_out(ticker, "q", *before)
    ticker.store(3)
    ticker.run(ticker.enqueue([new_job(queue="small")]))
    (reply,) = ticker.run(AddTarget("q", "small")).replies
    assert isinstance(reply, QueueFull)
    assert len(waiting(ticker, "small")) == 1
    ticker.run(SetQueue("small", QueueSettings(max_depth=4)))
    assert ticker.run(AddTarget("q", "small")).replies == [3]
    (reply,) = ticker.run(ticker.enqueue([new_job()])).replies
    assert isinstance(reply, QueueFull)


def test_a_target_whose_settings_would_be_wrong_changes_nothing(ticker: Ticker) -> None:
    ticker.run(SetQueue("q", QueueSettings(dead_letter="grave")))
    (reply,) = ticker.run(AddTarget("q", "grave")).replies
    assert isinstance(reply, DeadLetterCycle)
    (said,) = ticker.sqlite.execute("SELECT group_concat(settings) FROM queue_settings").fetchone()
    assert said == ('{"dead_letter":"grave"}')


def test_targets_are_added_and_removed_once(ticker: Ticker) -> None:
    replies = ticker.run(
        AddTarget("q", "a"), AddTarget("q", "a"), RemoveTarget("q", "b"), RemoveTarget("q", "a")
    ).replies
    assert replies[0] == replies[3] == 0
    assert isinstance(replies[1], TargetExists) and isinstance(replies[2], TargetNotFound)
    assert ticker.value("SELECT count(*) FROM queue_settings") == 0
