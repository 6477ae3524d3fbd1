"""Settings of queues in the store: stored, merged, effective in their own tick, never half."""

import itertools
import sqlite3
import tracemalloc
from typing import Any

import pytest
from store.rig import POLICY, Rig, Ticker, new_job

from zq.model.commands import AnyCommand, Enqueue, Fail, SetQueue, Succeed
from zq.model.errors import DeadLetterCycle, Internal, InvalidRequest
from zq.model.job import BackoffRule, JobRecord, JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.settings import NO_SETTINGS, QueueSettings, SettingsPatch
from zq.model.settling import Failure
from zq.store.errors import StoreError
from zq.tick.rulebook import Rulebook


def put(queue: str, **fields: Any) -> SetQueue:
    return SetQueue(queue, QueueSettings(**fields))


def settings_of(ticker: Ticker, queue: str) -> object:
    """What a patch that changes nothing answers."""
    (reply,) = ticker.run(SetQueue(queue, SettingsPatch())).replies
    return reply


def test_settings_are_replaced_merged_and_cleared(ticker: Ticker) -> None:
    first = QueueSettings(paused=True, retention=Retention(completed_ms=1, dead_ms=2), rate=0.5)
    assert ticker.run(SetQueue("q", first)).replies == [first]
    patch = SettingsPatch(paused=None, concurrency=3)
    (merged,) = ticker.run(SetQueue("q", patch)).replies
    assert merged == QueueSettings(concurrency=3, retention=first.retention, rate=0.5)
    assert settings_of(ticker, "q") == merged
    assert settings_of(ticker, "other") == NO_SETTINGS
    assert ticker.run(put("q", max_depth=0)).replies == [QueueSettings(max_depth=0)]
    assert ticker.value("SELECT count(*) FROM queue_settings") == 1
    ticker.run(SetQueue("q", NO_SETTINGS))
    assert ticker.value("SELECT count(*) FROM queue_settings") == 0


async def test_settings_survive_a_restart(rig: Rig) -> None:
    await rig.run(
        put("ü 'x\"", dead_letter="b", backoff=BackoffRule(1.5, 2, 3), leases_survive=False)
    )
    await rig.reopen()
    (reply,) = (await rig.run(SetQueue("ü 'x\"", SettingsPatch(ttl_ms=5)))).replies
    assert reply == QueueSettings(
        backoff=BackoffRule(1.5, 2, 3), ttl_ms=5, dead_letter="b", leases_survive=False
    )


def test_a_tick_that_is_rolled_back_leaves_no_settings_in_memory(ticker: Ticker) -> None:
    ticker.run(put("q", retry_limit=7))
    ticker.sqlite.set_authorizer(_no_commit)
    with pytest.raises(StoreError, match="not authorized"):
        ticker.run(put("q", retry_limit=8), put("new", paused=True))
    ticker.sqlite.set_authorizer(None)
    assert settings_of(ticker, "q") == QueueSettings(retry_limit=7)
    assert settings_of(ticker, "new") == NO_SETTINGS


@pytest.mark.parametrize("field", ["paused", "rate", "max_depth", "ttl_ms", "lease_ms"])
def test_a_change_of_one_queue_costs_nothing_for_the_others(field: str) -> None:
    fields: dict[str, Any] = {field: True if field == "paused" else 5}
    settings = {f"q{n}": QueueSettings(**fields) for n in range(5_000)}
    book = Rulebook(POLICY, settings)
    tracemalloc.start()
    try:
        for n in range(100):
            book = book.with_settings(f"q{n}", QueueSettings(retry_limit=n))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A table of 5,000 queues takes more than 200 KiB.
    assert peak < 64 * 1024
    assert book.of("q99") == QueueSettings(retry_limit=99)
    assert book.of("q100") == settings["q100"]


def test_a_rulebook_stays_as_it_was_whatever_is_made_from_it() -> None:
    first = Rulebook(POLICY, {"a": QueueSettings(paused=True)})
    second = first.with_settings("a", QueueSettings(rate=1.0))
    third = second.with_settings("b", QueueSettings(lease_ms=5, ttl_ms=6)).with_settings(
        "a", NO_SETTINGS
    )
    aside = second.with_settings("a", QueueSettings(max_depth=7))
    none = second.without_settings()

    def seen(book: Rulebook) -> tuple[Any, ...]:
        names = (book.shut("abcd"), book.limited, book.bounded, book.timed)
        return (dict(book.settings), *map(sorted, names), book.has_gates, book.has_leases)

    b = QueueSettings(lease_ms=5, ttl_ms=6)
    expected = {
        first: ({"a": QueueSettings(paused=True)}, ["a"], [], [], [], True, False),
        second: ({"a": QueueSettings(rate=1.0)}, [], ["a"], [], [], True, False),
        third: ({"b": b}, [], [], [], ["b"], False, True),
        aside: ({"a": QueueSettings(max_depth=7)}, [], [], ["a"], [], False, False),
        none: ({}, [], [], [], [], False, False),
    }
    for order in itertools.permutations(expected):
        for book in order:
            assert seen(book) == expected[book]
    with pytest.raises(DeadLetterCycle):
        first.with_settings("x", QueueSettings(dead_letter="y")).with_settings(
            "y", QueueSettings(dead_letter="x")
        )
    assert seen(first) == expected[first]


def _no_commit(action: int, operation: str | None, *_: object) -> int:
    refused = action == sqlite3.SQLITE_TRANSACTION and operation == "COMMIT"
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


def test_where_a_neighbour_raises_settings_hold_and_are_seen_by_what_follows(
    ticker: Ticker,
) -> None:
    bad = ticker.enqueue([new_job(type="")])
    patch = SetQueue("q", SettingsPatch(ttl_ms=9))
    replies = ticker.run(put("q", retry_limit=7), bad, patch).replies
    assert isinstance(replies[1], Internal)
    assert replies[2] == settings_of(ticker, "q") == QueueSettings(retry_limit=7, ttl_ms=9)


@pytest.mark.parametrize("path", [["a", "a"], ["a", "b", "a"], ["a", "b", "c", "d", "a"]], ids=repr)
def test_a_circle_of_dead_letter_queues_is_refused_with_its_path(
    ticker: Ticker, path: list[str]
) -> None:
    *links, last = itertools.pairwise(path)
    for queue, target in links[::-1]:
        ticker.run(put(queue, dead_letter=target))
    (refusal,) = ticker.run(put(last[0], dead_letter=last[1])).replies
    assert isinstance(refusal, DeadLetterCycle)
    start = last[0]
    shown = " -> ".join(map(repr, [start, *path[: path.index(start) + 1]]))
    assert refusal.message.endswith(shown)
    assert settings_of(ticker, start) == NO_SETTINGS


def test_a_name_that_cannot_be_is_refused(ticker: Ticker) -> None:
    for name in ("", "a,b", "a*"):
        (refusal,) = ticker.run(SetQueue("q", SettingsPatch(dead_letter=name))).replies
        assert isinstance(refusal, InvalidRequest)


def one(ticker: Ticker, command: Enqueue) -> int:
    ticker.run(command)
    return command.keys[0]


@pytest.mark.parametrize(
    ("own", "queue", "limit"),
    [(None, None, 2), (None, 4, 4), (1, 4, 1), (0, 4, 0), (None, 0, 0)],
)
def test_the_limit_of_a_queue_stands_between_the_jobs_own_and_the_servers(
    ticker: Ticker, own: int | None, queue: int | None, limit: int
) -> None:
    ticker.run(put("q", retry_limit=queue, backoff=BackoffRule(0.0, 0, 0)))
    options = None if own is None else JobSettings(retry_limit=own)
    key = one(ticker, ticker.enqueue([new_job(options=options)]))
    for attempt in range(limit + 1):
        assert ticker.take(1) == [key]
        (job,) = ticker.run(Fail(key, Failure("m"))).replies
        assert isinstance(job, JobRecord)
        assert job.status is (Status.DEAD if attempt == limit else Status.SCHEDULED)
        ticker.now += 1_000
        ticker.run(promote=True)


def test_the_retention_of_a_queue_stands_between_the_jobs_own_and_the_servers(
    ticker: Ticker,
) -> None:
    ticker.run(put("q", retention=Retention(completed_ms=50)))
    own = JobSettings(retention=Retention(completed_ms=9, dead_ms=8))
    jobs = [new_job(), new_job(options=own), new_job(queue="other")]
    ticker.run(ticker.enqueue(jobs * 2))
    keys = ticker.take(6)
    deaths: list[AnyCommand] = [Fail(key, Failure("m", kill=True)) for key in keys[3:]]
    ticker.run(Succeed(keys[:3]), *deaths)
    kept = {key: job.purge_at for key, job in ticker.jobs().items()}
    times = [50, 9, None, 60_000, 8, 60_000]
    assert [kept.get(key) for key in keys] == [
        None if ms is None else ticker.now + ms for ms in times
    ]


def test_a_change_of_the_retention_touches_no_finished_job(ticker: Ticker) -> None:
    ticker.run(put("q", retention=Retention(completed_ms=50)))
    (key,) = ticker.store(1)
    ticker.run(Succeed(ticker.take(1)))
    ticker.run(put("q", retention=Retention(completed_ms=5_000)))
    assert ticker.jobs()[key].purge_at == ticker.now + 50
