"""Claims past closed queues: always the next jobs in order, and the cost of that."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import msgspec
import pytest
from store.rig import Ticker, new_job

from zq.model.commands import (
    AnyCommand,
    Claim,
    DeleteJob,
    Fail,
    PatchJob,
    Return,
    SetQueue,
    Succeed,
)
from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.reach import EVERYWHERE, Reach, reach_of
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.model.settling import Failure
from zq.store.errors import StoreError
from zq.tick import walk

PAUSED, ONE = QueueSettings(paused=True), QueueSettings(concurrency=1)
REACHES = (EVERYWHERE, reach_of(["a"]), reach_of(["a1", "b"]), reach_of(["none"]))
QUEUES = tuple(f"{letter}{n}" for letter in "abc" for n in range(4))


@pytest.fixture
def short_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walks that are given up soon, and places that are kept whatever was passed."""
    monkeypatch.setattr(walk, "LONGEST_WALK", 2)
    monkeypatch.setattr(walk, "MOST_HELD_BACK", 2)
    monkeypatch.setattr(walk, "WORTH_KEEPING", 1_000)


class World:
    """Random changes, and after each of them a claim that is checked against all stored jobs."""

    def __init__(self, ticker: Ticker, seed: int) -> None:
        self._ticker = ticker
        self._random = Random(seed)
        self._settings: dict[str, QueueSettings] = {}

    def step(self) -> None:
        random = self._random
        reach, limit = random.choice(REACHES), random.choice((1, 2, 5))
        for _ in range(random.randrange(4)):
            # One a tick: the inbox sees to it that no job is settled twice in one.
            self._ticker.run(self._command())
        if random.random() < 0.3:
            self._ticker.now += 1_000
            self._ticker.run(promote=True)
        expected = self._next(reach, limit)
        claimed = self._ticker.run(claims=[Claim(None, [(1, limit)], reach)]).claimed[0]
        assert [job.key for job in claimed] == expected

    def step_in_one_tick(self) -> None:
        """The same where the changes come with the claim: nothing may be missed or taken twice."""
        reach = self._random.choice(REACHES)
        claimed = self._ticker.run(self._command(), claims=[Claim(None, [(1, 3)], reach)]).claimed[
            0
        ]
        assert len(claimed) == 3 or not self._next(reach, 1)

    def _next(self, reach: Reach, limit: int) -> list[int]:
        jobs = self._ticker.jobs().values()
        flying = Counter(job.queue for job in jobs if job.status is Status.IN_FLIGHT)
        found: list[int] = []
        for job in sorted(self._ready(), key=lambda job: (job.priority, job.key)):
            own = self._settings.get(job.queue, NO_SETTINGS)
            is_full = own.concurrency is not None and flying[job.queue] >= own.concurrency
            if own.paused or is_full or not reach.covers(job.queue):
                continue
            flying[job.queue] += 1
            found.append(job.key)
        return found[:limit]

    def _ready(self) -> list[JobRecord]:
        held = "SELECT id FROM jobs WHERE held = 0"
        free = {key for (key,) in self._ticker.connection.execute(held)}
        jobs = self._ticker.jobs().values()
        return [job for job in jobs if job.status is Status.READY and job.key in free]

    def _command(self) -> AnyCommand:
        random, queue = self._random, self._random.choice(QUEUES)
        jobs = list(self._ticker.jobs().values())
        waiting = [job.key for job in jobs if job.status is Status.READY]
        held = [job.key for job in jobs if job.status is Status.IN_FLIGHT]
        kind = random.randrange(10)
        if kind == 0:
            chosen = (PAUSED, ONE, ONE, NO_SETTINGS)
            self._settings[queue] = random.choice(chosen)
            return SetQueue(queue, self._settings[queue])
        if kind == 1 and waiting:
            patch = Patch(queue=queue, priority=random.randrange(3))
            return PatchJob(random.choice(waiting), "id", patch)
        if kind == 2 and waiting:
            return DeleteJob(random.choice(waiting))
        if kind == 3 and held:
            return Return(1, [random.choice(held)])
        if kind == 4 and held:
            return Succeed(held)
        if kind == 5 and held:
            return Fail(random.choice(held), Failure("m"))
        return self._ticker.enqueue(
            new_job(
                queue=random.choice(QUEUES),
                priority=random.choice((1, 1, 1, 0, 2)),
                group=random.choice((None, None, None, "g")),
            )
            for _ in range(7)
        )


@pytest.mark.usefixtures("short_walks")
@pytest.mark.parametrize("few", [0, 4])
@pytest.mark.parametrize("seed", range(4))
def test_a_claim_gets_the_next_jobs_in_order_whatever_is_shut(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch, seed: int, few: int
) -> None:
    monkeypatch.setattr(walk, "FEW", few)
    world = World(ticker, seed)
    for _ in range(40):
        world.step()
        world.step_in_one_tick()


@pytest.mark.usefixtures("short_walks")
def test_queues_at_their_rates_are_asked_again_however_many_they_are(ticker: Ticker) -> None:
    queues = ["r0", "r1", "r2", "r3"]
    ticker.run(*(SetQueue(queue, QueueSettings(rate=1)) for queue in queues))
    for _ in range(2):
        ticker.run(ticker.enqueue([new_job(queue=queue) for queue in queues * 3]))

    def claimed(at: float) -> list[str]:
        tick = ticker.tick([], [Claim(None, [(1, 9)])])
        found = ticker.runner.run(msgspec.structs.replace(tick, monotonic=at)).claimed[0]
        return [job.queue for job in found]

    assert [claimed(at) for at in (0.0, 0.5, 2.0, 2.5, 4.0)] == [queues, [], queues, [], queues]


# What it costs: steps of SQLite's machine, which no load of the computer changes.

MANY, LIMIT = 3_000, 20


def steps(ticker: Ticker, claim: Claim) -> int:
    """What a claim of one tick costs."""
    count = 0

    def note() -> int:
        nonlocal count
        count += 1
        return 0

    ticker.sqlite.set_progress_handler(note, 1)
    try:
        assert len(ticker.run(claims=[claim]).claimed[0]) == LIMIT
    finally:
        ticker.sqlite.set_progress_handler(None, 1)
    return count


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ticker]:
    """Very many queues with two jobs each, behind the backlog of one that can be paused."""
    ticker = Ticker(tmp_path_factory.mktemp("crowd") / "zq.db")
    ticker.run(ticker.enqueue([new_job(queue="old")] * 12_000))
    for _ in range(2):
        ticker.run(ticker.enqueue([new_job(queue=f"t{n}") for n in range(MANY)]))
    yield ticker
    ticker.close()


def pause(ticker: Ticker, queue: str) -> Callable[[], object]:
    ticker.run(SetQueue(queue, PAUSED))
    return partial(ticker.run, SetQueue(queue, NO_SETTINGS))


def test_an_empty_paused_queue_costs_the_others_nothing(crowd: Ticker) -> None:
    claim = Claim(None, [(1, LIMIT)])
    plain = steps(crowd, claim)
    reopen = pause(crowd, "empty")
    assert steps(crowd, claim) <= plain * 1.1
    reopen()


def test_a_backlog_of_a_paused_queue_is_passed_once(crowd: Ticker) -> None:
    claim = Claim(None, [(1, LIMIT)])
    plain = steps(crowd, claim)
    reopen = pause(crowd, "old")
    costs = [steps(crowd, claim) for _ in range(40)]
    assert costs[0] > 10 * plain, "the first has to find its way"
    assert costs[-1] < 2 * plain
    # Once it is open again, its jobs are the next.
    reopen()
    queues = {job.queue for job in crowd.run(claims=[claim]).claimed[0]}
    assert queues == {"old"}


def test_a_reach_over_most_of_the_queues_costs_what_is_passed(crowd: Ticker) -> None:
    plain = steps(crowd, Claim(None, [(1, LIMIT)]))
    within = Claim(None, [(1, LIMIT)], reach_of(["t"]))
    costs = [steps(crowd, within) for _ in range(40)]
    assert costs[-1] < 2 * plain


def test_what_a_tick_that_fails_has_seen_is_not_kept(ticker: Ticker) -> None:
    ticker.run(SetQueue("shut", PAUSED))
    ticker.store(10, queue="shut")
    keys = ticker.store(3, queue="open")
    ticker.sqlite.execute(
        "CREATE TRIGGER no_take BEFORE UPDATE ON jobs BEGIN SELECT RAISE(ABORT, 'not now'); END"
    )
    with pytest.raises(StoreError, match="not now"):
        ticker.run(claims=[Claim(None, [(1, 5)])])
    ticker.sqlite.execute("DROP TRIGGER no_take")
    assert ticker.take(5) == keys
