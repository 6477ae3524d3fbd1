"""Long transactions in slices: other tasks get their turn, and the result stays the same."""

import asyncio
import json
import sqlite3
import sys
import types
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from contextlib import closing, suppress
from functools import partial
from typing import Any

import pytest
from store.rig import Rig, Ticker, new_job

from zq.features.schemas.model import PutSchema
from zq.model.commands import (
    AnyCommand,
    Claim,
    Clear,
    Entered,
    Extend,
    Extended,
    PatchJob,
    PatchSlice,
    Release,
    Return,
    Settled,
    Succeed,
    TickResult,
)
from zq.model.filters import EVERYTHING
from zq.model.job import DedupeRule, JobSettings, NewJob
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.unique import Scope
from zq.store.errors import StoreBusy
from zq.tick.intake import SLICE_JOBS
from zq.tick.slices import SLICE_ROWS, claim_parts

MANY = 3 * SLICE_ROWS + 7
UNKNOWN = 7


@pytest.fixture
def held(ticker: Ticker) -> list[int]:
    ticker.store(MANY)
    return ticker.take(MANY)


def test_an_acknowledgement_of_many_jobs_has_one_reply(ticker: Ticker, held: list[int]) -> None:
    first, last = UNKNOWN, UNKNOWN + 1
    result = ticker.run(Succeed([first, *held, last]))
    assert result.replies == [Settled(frozenset({first, last}))]
    assert ticker.jobs() == {}
    ticker.check_counts()


def test_leases_of_many_jobs_are_extended_and_released_as_one(
    ticker: Ticker, held: list[int]
) -> None:
    stale = held[-1]
    leases = {held[0]: 1, stale: 2}
    (reply,) = ticker.run(Extend([*held, UNKNOWN], leases, 5_000)).replies
    assert reply == Extended(Settled(frozenset({UNKNOWN}), frozenset({stale})), ticker.now + 5_000)
    (reply,) = ticker.run(Release([UNKNOWN, *held], leases)).replies
    assert reply == Settled(frozenset({UNKNOWN}), frozenset({stale}))
    states = Counter(job.status for job in ticker.jobs().values())
    assert states == {Status.READY: MANY - 1, Status.IN_FLIGHT: 1}
    ticker.check_counts()


def test_many_jobs_of_one_stream_go_back_and_stall_as_one(ticker: Ticker, held: list[int]) -> None:
    stalled = frozenset({held[0], held[-1]})
    result = ticker.run(Return(1, held, stalled))
    assert result.replies == [None]
    assert result.tally.stalled == 2
    assert {key for key, job in ticker.jobs().items() if job.stalls} == stalled
    ticker.check_counts()


@pytest.mark.parametrize("credits", [[(1, 9)], [(1, 3), (2, 5)], [(1, 1), (2, 30), (3, 2)]])
def test_the_parts_of_a_claim_are_the_claim_with_fair_shares(
    credits: list[tuple[int, int]],
) -> None:
    parts = claim_parts(Claim(None, credits), 4)
    shares: Counter[int] = Counter()
    for part in parts:
        shares.update(dict(part.credits))
        assert all(credit > 0 for _, credit in part.credits)
        # Where jobs run out after any part, nobody is behind by more than a part's rounding.
        for holder, credit in credits:
            done = sum(shares.values()) / sum(credit for _, credit in credits)
            assert abs(shares[holder] - credit * done) <= len(credits)
    assert shares == Counter(dict(credits))


def test_a_claim_of_many_takes_them_in_order(ticker: Ticker) -> None:
    keys = ticker.store(MANY)
    (jobs,) = ticker.run(claims=[Claim(None, [(1, MANY + 5)])]).claimed
    assert [job.key for job in jobs] == keys


class Work:
    """What a tick does, in steps of SQLite and calls in Python: in the event loop, and in all."""

    def __init__(self, ticker: Ticker) -> None:
        self.longest = Counter[str]()
        self._all = Counter[str]()
        self._ticker = ticker
        self._now = Counter[str]()

    def run(self, command: AnyCommand) -> TickResult:
        """Run a command. Steps that are too long for the loop count for all only."""
        ticker = self._ticker
        slices, answer = ticker.runner.slices(ticker.tick([command])), None
        try:
            while True:
                long = self._counted(partial(slices.send, answer))
                self.longest |= self._now
                answer = None if long is None else self._counted(long)
        except StopIteration as end:
            result: TickResult = end.value
            return result

    def share(self, kind: str) -> float:
        """The share of the longest piece in all."""
        return self.longest[kind] / self._all[kind]

    def _counted(self, piece: Callable[[], Any]) -> Any:
        self._now = Counter()
        self._ticker.sqlite.set_progress_handler(self._step, 100)
        sys.setprofile(self._call)
        try:
            return piece()
        finally:
            sys.setprofile(None)
            self._ticker.sqlite.set_progress_handler(None, 0)
            self._all += self._now

    def _step(self) -> None:
        self._now["steps"] += 1

    def _call(self, _frame: object, event: str, _argument: object) -> None:
        self._now["calls"] += event in ("call", "c_call")


KINDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain": lambda n: {},
    "queues": lambda n: {"queue": f"q{n}"},
    "groups": lambda n: {"group": f"g{n}"},
    "keys": lambda n: {"unique_key": f"u{n}", "unique_while": Scope.QUEUED},
    "names": lambda n: {"dedupe": DedupeRule(f"d{n}")},
    "fair": lambda n: {"options": JobSettings(fair_key=f"f{n}")},  # type: ignore[call-arg]
    "limits": lambda n: {"ttl_ms": 60_000 + n, "options": JobSettings(retry_limit=n)},
    "large": lambda n: {"payload": f'"{n}{"x" * 3_000}"'},
}
EACH = list(KINDS.values())
KINDS["all"] = lambda n: {name: value for each in EACH for name, value in each(n).items()}


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_new_jobs_holds_the_loop_in_one_piece(ticker: Ticker, kind: str) -> None:
    """Five slices of jobs come as new ones, and then again. No piece is a third of the work."""
    for _ in range(2):
        work = Work(ticker)
        work.run(ticker.enqueue([new_job(**KINDS[kind](n)) for n in range(5 * SLICE_JOBS)]))
        assert work.share("steps") < 0.3
        assert work.share("calls") < 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_no_acknowledgement_of_many_jobs_holds_the_loop_in_one_piece(
    ticker: Ticker, kind: str
) -> None:
    jobs = [new_job(**KINDS[kind](n)) for n in range(5 * SLICE_ROWS)]
    ticker.run(ticker.enqueue(jobs))
    work = Work(ticker)
    work.run(Succeed(ticker.take(len(jobs))))
    assert ticker.jobs() == {}
    assert work.share("steps") < 0.3
    assert work.share("calls") < 0.3


def test_a_long_payload_that_enters_a_queue_with_a_schema_is_compared_in_pieces(
    ticker: Ticker,
) -> None:
    ticker.run(PutSchema("other", json.dumps({"type": "record", "name": "R", "fields": []})))
    long = new_job(payload=json.dumps({"long": list(range(200_000))}))
    enqueue = ticker.enqueue([new_job(), long])
    ticker.run(enqueue)
    for key in enqueue.keys:  # the first one has the schema parsed
        work = Work(ticker)
        work.run(PatchJob(key, "id", Patch(queue="other")))
        assert ticker.jobs()[key].queue == "other"
    assert work.share("calls") < 0.3


def test_a_transaction_leaves_payloads_to_the_next_once_it_has_compared_enough(
    ticker: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zq.tick.fitting.MOST_STEPS", 0)
    ticker.run(PutSchema("other", json.dumps({"type": "record", "name": "R", "fields": []})))
    first, *others = ticker.store(3)
    (left,) = ticker.run(PatchSlice([first, *others], EVERYTHING, Patch(queue="other"))).replies
    assert left == Entered(1, {}, tuple(others))
    assert ticker.jobs()[first].queue == "other"


async def test_others_have_their_turn_between_slices(rig: Rig) -> None:
    """A transaction of many jobs holds the loop for some milliseconds at a time, not for all."""
    command = rig.enqueue(_jobs(6_000))
    turns = 0
    tick = asyncio.create_task(rig.run(command))
    while not tick.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 5


async def test_race_a_read_between_two_slices_sees_nothing_of_the_transaction(rig: Rig) -> None:
    await rig.keep(5)
    seen: Counter[int] = Counter()

    async def read() -> None:
        seen[len(await rig.statuses())] += 1

    await _in_its_pauses(rig.run(rig.enqueue(_jobs(6_000))), read)
    assert seen.keys() <= {5, 6_005}
    assert seen[5]


@types.coroutine
def _in_its_pauses(
    work: Coroutine[Any, Any, object], do: Callable[[], Coroutine[Any, Any, None]]
) -> Generator[Any, Any, None]:
    """Run `work`, and all of `do` each time that it gives others a turn."""
    with suppress(StopIteration):
        while True:
            awaited = work.send(None)
            if awaited is None:
                yield from do().__await__()
            else:
                yield awaited


async def test_a_tick_that_is_cancelled_between_two_slices_leaves_nothing(rig: Rig) -> None:
    tick = asyncio.create_task(rig.run(rig.enqueue(_jobs(6_000))))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tick.cancel()
    with pytest.raises(asyncio.CancelledError):
        await tick
    await rig.keep(1)
    assert len(await rig.statuses()) == 1


async def test_a_table_is_cleared_while_others_have_their_turn(rig: Rig) -> None:
    await rig.keep(6_000)
    turns = 0
    tick = asyncio.create_task(rig.run(Clear()))
    while not tick.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 5
    assert (await tick).replies == [6_000]


def _jobs(count: int) -> list[NewJob]:
    return [new_job(queue=f"q{number % 5}") for number in range(count)]


async def test_race_a_tick_meets_another_programs_lock_and_holds_up_nobody(rig: Rig) -> None:
    """It neither waits in the event loop nor in the thread: whoever asked for it tries again."""
    enqueue = rig.enqueue(_jobs(1))
    with closing(sqlite3.connect(rig.directory / "zq.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            await rig.run(enqueue)
        await rig.store.ping()
    assert (await rig.run(enqueue)).tally.stored == 1
