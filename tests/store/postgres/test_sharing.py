"""Ticks of servers that share a database: each decides as if it were alone."""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest
from conformance.streams import pause

from store.on_postgres import database_at
from store.rig import FOREVER, NOW, POLICY, Orders, new_job
from zq.features.budgets.model import BudgetPolicy, Draw
from zq.features.budgets.model_jobs import PutBudget, drawing
from zq.features.forward.commands import PutLane
from zq.features.forward.model import LaneFull, LaneRule, WhenFull
from zq.features.producers.model import EnqueueInOrder, ProducerMark
from zq.features.trends.model import (
    HOUR_MS,
    MINUTE_MS,
    AddTrends,
    AddTypeTrends,
    Trend,
    TypeTrend,
)
from zq.features.trends.store import TrendReads
from zq.model.commands import Claim, EnqueueResult, Fail, Return, SetQueue, Succeed, TickResult
from zq.model.errors import QueueFull
from zq.model.filters import Filter
from zq.model.ids import HOLDER_BITS, Mint
from zq.model.job import DedupeRule, JobSettings
from zq.model.lifecycle import Status
from zq.model.settings import SettingsPatch
from zq.model.settling import Failure
from zq.model.unique import Scope
from zq.store.errors import Fenced
from zq.store.postgres.connection import SESSION, connect
from zq.store.postgres.owning import KEY_CLASS, LOCK_CLASS, value_of
from zq.store.postgres.store import PostgresStore, open_store
from zq.store.postgres.watch import CHANNEL, STOPPED_LOOKS
from zq.tick.runner import make_ticks

IS_THERE = "SELECT count(*) FROM pg_stat_activity WHERE pid = {}"
"""True while PostgreSQL has a process of this number."""


class Sharer(Orders):
    """One of several stores over a database, and the commands that go to it."""

    def __init__(self, store: PostgresStore) -> None:
        super().__init__(store.at_start.last_key)
        self.mint = Mint(store.at_start.last_key, store.slot)
        self.store = store
        self.holder = (store.slot << HOLDER_BITS) + 1

    async def run(self, *commands: object, claims: Sequence[Claim] = ()) -> TickResult:
        return await self.store.tick(self.tick(commands, claims))  # type: ignore[arg-type]

    async def take(self, count: int, *queues: str) -> list[int]:
        claim = Claim(queues or None, [(self.holder, count)])
        return [job.key for job in (await self.run(claims=[claim])).claimed[0]]

    async def die(self, path: Path) -> None:
        """End without a word, and wait until PostgreSQL has noticed it: the slot is free."""
        process = self.store._pipeline.process
        await self.store.abandon()
        with connect(database_at(path), SESSION) as connection:
            async with asyncio.timeout(60):
                while value_of(connection, IS_THERE.format(process)):
                    await pause()

    async def end(self) -> None:
        if not self.store.is_closed:
            await self.store.abandon()

    @property
    def trips(self) -> int:
        return self.store._pipeline.trips


async def opened(path: Path, servers: int = 4) -> PostgresStore:
    ticks = make_ticks(POLICY, Random(1), {})
    return await open_store(database_at(path), ticks, read_timeout=60.0, servers=servers)


@pytest.fixture
async def sharers(tmp_path: Path) -> AsyncIterator[list[Sharer]]:
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(3):
            sharer = Sharer(await opened(tmp_path))
            stack.push_async_callback(sharer.end)
            found.append(sharer)
        yield found


async def test_each_has_a_slot_and_ids_of_its_own(sharers: list[Sharer]) -> None:
    assert [sharer.store.slot for sharer in sharers] == [0, 1, 2]
    for _ in range(5):
        for sharer in sharers:
            await sharer.run(sharer.enqueue([new_job()] * 10))
    assert len(await sharers[0].store.reads.keys(Filter(), 0, FOREVER, 1000)) == 150


async def test_jobs_are_given_and_settled_once_whoever_ticks(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    """All at the same time: jobs with groups, unique keys and failures, from several queues."""
    given: Counter[int] = Counter()

    async def work(sharer: Sharer, seed: int) -> None:
        rng = Random(seed)
        held: list[int] = []
        for _ in range(40):
            jobs = [
                new_job(queue=rng.choice("pq"), group=rng.choice(["g", "h", None, None]))
                for _ in range(rng.randrange(4))
            ]
            jobs.append(
                new_job(queue="u", unique_key=str(rng.randrange(3)), unique_while=Scope.QUEUED)
            )
            new = sharer.enqueue(jobs)
            ends: list[object] = []
            if held:
                ends.append(Succeed([held.pop(rng.randrange(len(held)))]))
            claim = Claim(None, [(sharer.holder, 3)])
            result = await sharer.run(*ends, new, claims=[claim])
            for job in result.claimed[0]:
                given[job.key] += 1
                held.append(job.key)
        for key in held:
            await sharer.run(Succeed([key]))

    await asyncio.gather(*(work(sharer, seed) for seed, sharer in enumerate(sharers)))
    first = sharers[0]
    while keys := await first.take(100):
        given.update(keys)
        await sharers[1].run(Succeed(keys))
    assert set(given.values()) == {1}
    assert await first.store.reads.keys(Filter(), 0, FOREVER, 1000) == []
    with connect(database_at(tmp_path), SESSION) as connection:
        assert value_of(connection, "SELECT sum(n) FROM queue_counts") == 0
        assert value_of(connection, "SELECT min(n) FROM queue_totals") == 0


async def test_plain_ticks_of_servers_run_beside_each_other(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    """Another server is within a tick that shares its turn: plain ticks do not wait for its end."""
    one, _, _ = sharers
    await one.run(one.enqueue([new_job(), new_job(queue="p"), *[new_job()] * 3]))
    known, again = Failure("m", None, None, kill=True), Failure("m", None, None)
    (first,) = await one.take(1, "q")
    await one.run(Fail(first, known))
    with connect(database_at(tmp_path), SESSION) as another:
        turn = f"({LOCK_CLASS}, 1001)"
        value_of(another, f"SELECT pg_advisory_lock_shared{turn}")
        async with asyncio.timeout(60):
            await one.run(one.enqueue([new_job()] * 5), claims=[Claim(None, [(one.holder, 2)])])
            held = await one.take(4, "q", "p")
            await one.run(Succeed(held[:1]), one.enqueue([new_job()]))
            await one.run(one.enqueue([new_job(unique_key="k", unique_while=Scope.ACTIVE)]))
            # A cause of failures that is known.
            await one.run(Fail(held[1], known), Fail(held[2], again))
            await one.run(Return(one.holder, held[3:]))
        grouped = asyncio.create_task(one.run(one.enqueue([new_job(group="g")])))
        waits = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND classid = {LOCK_CLASS}"
        async with asyncio.timeout(60):
            while not value_of(another, waits):
                await pause()
        assert not grouped.done()
        value_of(another, f"SELECT pg_advisory_unlock_shared{turn}")
        await grouped


async def test_a_unique_key_waits_for_another_server_that_may_be_giving_it_to_a_job(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    one, two, _ = sharers
    keyed = new_job(unique_key="k", unique_while=Scope.ACTIVE)
    for each in (one, two):
        # A first tick may have a turn of its own.
        await each.run(each.enqueue([new_job()]))
    key = f"({KEY_CLASS}, hashtext('{keyed.lock}'))"
    waits = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND classid = {KEY_CLASS}"
    with connect(database_at(tmp_path), SESSION) as another:
        value_of(another, f"SELECT pg_advisory_lock{key}")
        first = asyncio.create_task(one.run(one.enqueue([keyed])))
        async with asyncio.timeout(60):
            while not value_of(another, waits):
                await pause()
            await two.run(two.enqueue([new_job(unique_key="other", unique_while=Scope.ACTIVE)]))
        value_of(another, f"SELECT pg_advisory_unlock{key}")
        (stored,) = (await first).replies
        (found,) = (await two.run(two.enqueue([keyed]))).replies
    assert isinstance(stored, EnqueueResult) and not stored.owners
    assert isinstance(found, EnqueueResult) and len(found.owners) == 1


async def test_a_unique_key_has_one_job_whoever_brings_it(sharers: list[Sharer]) -> None:
    """All at the same time: keys are brought, and become free."""
    new: Counter[str] = Counter()
    done: Counter[str] = Counter()

    async def work(sharer: Sharer, seed: int) -> None:
        rng = Random(seed)
        for _ in range(40):
            keys = rng.sample("abcdefgh", 3)
            jobs = [new_job(unique_key=key, unique_while=Scope.ACTIVE) for key in keys]
            (stored,) = (await sharer.run(sharer.enqueue(jobs))).replies
            assert isinstance(stored, EnqueueResult)
            new.update(key for nth, key in enumerate(keys) if nth not in stored.owners)
            claim = Claim(None, [(sharer.holder, 2)])
            for job in (await sharer.run(claims=[claim])).claimed[0]:
                assert job.unique_key is not None
                done[job.unique_key] += 1
                # Never more than one that waits, or is in flight.
                assert new[job.unique_key] <= done[job.unique_key] + 1
                await sharer.run(Succeed([job.key]))

    await asyncio.gather(*(work(sharer, seed) for seed, sharer in enumerate(sharers)))
    left = await sharers[0].store.reads.jobs_page(Filter(), 0, False, 100, sharers[0].now)
    waiting = Counter(job.unique_key for job in left)
    assert not waiting or max(waiting.values()) == 1
    assert new - done == waiting


async def test_failures_at_the_same_time_are_all_counted(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    causes = [Failure(message, None, None, kill=True) for message in ("a", "b", "c")]

    async def fail(sharer: Sharer, rng: Random) -> int:
        held = await sharer.take(3)
        ends = rng.sample(causes, len(held))
        await sharer.run(*[Fail(*each) for each in zip(held, ends, strict=True)])
        return len(held)

    async def work(sharer: Sharer, seed: int) -> None:
        rng = Random(seed)
        for _ in range(20):
            await sharer.run(sharer.enqueue([new_job()] * 3))
            await fail(sharer, rng)

    await asyncio.gather(*(work(sharer, seed) for seed, sharer in enumerate(sharers)))
    # A take comes short while a tick that is then undone has locked jobs.
    while await fail(sharers[0], Random(1)):
        pass
    with connect(database_at(tmp_path), SESSION) as connection:
        for failures in (
            "SELECT sum(n) FROM error_groups",
            "SELECT count(*) FROM errors",
            "SELECT sum(n) FROM failure_counts WHERE length = 60000",
            f"SELECT n FROM queue_totals WHERE status = {Status.DEAD.value}",
        ):
            assert value_of(connection, failures) == 180, failures
        assert value_of(connection, "SELECT count(*) FROM error_groups") == 3


async def test_a_claim_takes_what_lies_behind_the_jobs_that_another_takes(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    """Some of its jobs are locked, so it takes the next ones of one queue, of several, of all."""
    one, _, _ = sharers
    new = one.enqueue([new_job(queue=queue) for queue in "pqpq"])
    await one.run(new)
    first, second, third, fourth = new.keys
    with connect(database_at(tmp_path), SESSION) as another:
        for queues, expected in ((("p",), [third]), ((), [second, fourth]), (("p", "q"), [first])):
            with another.transaction():
                value_of(another, f"SELECT pg_advisory_xact_lock_shared({LOCK_CLASS}, 1001)")
                value_of(another, f"SELECT id FROM jobs WHERE id = {first} FOR UPDATE")
                taking = asyncio.create_task(one.take(len(expected), *queues))
                if len(queues) < 2:
                    assert await taking == expected
                await pause()
            # A claim that merges queues is made again in a turn of its own.
            assert await taking == expected


async def test_a_group_has_one_job_in_flight_for_all(sharers: list[Sharer]) -> None:
    one, two, three = sharers
    new = one.enqueue([new_job(group="g")] * 3)
    await one.run(new)
    for key in new.keys:
        found = [await each.take(2) for each in sharers]
        assert sorted(found) == [[], [], [key]]
        await two.run(Succeed([key]))
    assert await three.take(2) == []


async def test_a_change_of_settings_holds_in_the_next_tick_of_each(sharers: list[Sharer]) -> None:
    one, two, _ = sharers
    await one.run(one.enqueue([new_job()] * 10))
    assert len(await two.take(1)) == 1
    await one.run(SetQueue("q", SettingsPatch(paused=True)))
    assert await two.take(1) == []
    await two.run(SetQueue("q", SettingsPatch(paused=False, concurrency=2)))
    assert len(await one.take(5)) == 1
    assert await two.take(5) == []


@pytest.mark.parametrize("behind_ms", [0, 350, 5_000])
async def test_a_rate_is_no_higher_for_servers_whose_time_is_apart(
    sharers: list[Sharer], behind_ms: int
) -> None:
    """A tick that waits for its turn has an older time than those before it, too."""
    one, two, _ = sharers
    two.now -= behind_ms
    await one.run(SetQueue("q", SettingsPatch(rate=10)), one.enqueue([new_job()] * 100))
    taken = 0
    for tenths in range(20):
        for each in (one, two):
            taken += len(await each.take(5, "q"))
            assert taken <= 10 + tenths
            each.now += 100
    assert taken == 29


async def test_the_trends_of_a_minute_are_those_of_all_servers_together(
    sharers: list[Sharer],
) -> None:
    minute = NOW - NOW % MINUTE_MS
    one, two, _ = sharers

    def added(jobs: int) -> list[object]:
        trend, of_type = Trend(enqueued=jobs, wait={3: jobs}), TypeTrend(done=jobs, run={5: jobs})
        return [AddTrends(minute, {"q": trend}), AddTypeTrends(minute, {("q", "t"): of_type})]

    for _ in range(5):
        await asyncio.gather(one.run(*added(1)), two.run(*added(10)))
    for each in sharers:
        reads = each.store.reads.of(TrendReads)
        for length in (MINUTE_MS, HOUR_MS):
            (found,) = await reads.trends("q", length, minute - minute % length)
            assert found.trend == Trend(enqueued=55, wait={3: 55}), length
        (of_type,) = await reads.type_trends("q", "t", HOUR_MS, minute - minute % HOUR_MS, HOUR_MS)
        assert of_type.trend == TypeTrend(done=55, run={5: 55})


@pytest.mark.parametrize("when_full", ["refuse", "drop_oldest"])
async def test_the_bounds_of_a_lane_hold_for_what_all_have_stored(
    sharers: list[Sharer], when_full: WhenFull
) -> None:
    one, two, three = sharers
    rule = LaneRule(("out",), max_bytes=1000, when_full=when_full)
    await three.run(PutLane("up", rule, "e.1"))
    for _ in range(5):
        for each in (one, two):
            job = new_job(queue="out", payload="x" * 90)
            await each.run(each.enqueue([job]))
    waiting = await three.store.reads.keys(Filter(), 0, FOREVER, 100)
    assert len(waiting) * 90 <= 1000
    (reply,) = (await two.run(two.enqueue([new_job(queue="out", payload="x" * 180)]))).replies
    after = await three.store.reads.keys(Filter(), 0, FOREVER, 100)
    if when_full == "refuse":
        assert isinstance(reply, LaneFull)
        assert after == waiting
    else:
        assert len(after) < len(waiting)


async def test_fair_keys_share_a_queue_whichever_server_takes_from_it(
    sharers: list[Sharer],
) -> None:
    one, two, three = sharers
    of = {key: JobSettings(fair_key=key) for key in "ab"}  # type: ignore[call-arg]
    keys: dict[int, str] = {}
    for each, key in ((one, "a"), (two, "b")):
        new = each.enqueue([new_job(options=of[key])] * 12)
        await each.run(new)
        keys |= dict.fromkeys(new.keys, key)
    taken = [keys[key] for _ in range(4) for each in sharers for key in await each.take(1)]
    assert taken == ["a", "b"] * 6
    # What is settled elsewhere counts as well.
    assert Counter(keys[key] for key in await three.take(6)) == {"a": 3, "b": 3}


async def test_a_queue_has_room_for_the_jobs_of_all_servers_together(
    sharers: list[Sharer],
) -> None:
    one, two, three = sharers
    await three.run(SetQueue("q", SettingsPatch(max_depth=5)))
    replies = [
        (await each.run(each.enqueue([new_job()]))).replies[0]
        for _ in range(4)
        for each in (one, two)
    ]
    assert [isinstance(reply, QueueFull) for reply in replies] == [False] * 5 + [True] * 3
    await three.run(Succeed(await three.take(1)))
    (reply,) = (await two.run(two.enqueue([new_job()]))).replies
    assert not isinstance(reply, QueueFull)


async def test_names_and_numbers_are_known_to_all_servers(sharers: list[Sharer]) -> None:
    """Copies of a job, and requests of a producer that are sent again elsewhere, store nothing."""
    for each in sharers:
        await each.run(each.enqueue([new_job(dedupe=DedupeRule("name"))]))
        new = each.enqueue([new_job(queue="p")] * 2)
        mark = ProducerMark("producer", "e.1", 1)
        again = EnqueueInOrder(keys=new.keys, jobs=new.jobs, now=new.now, size=new.size, mark=mark)
        (reply,) = (await each.run(again)).replies
        assert isinstance(reply, EnqueueResult), reply
    counts = await sharers[0].store.reads.counts(sharers[0].now)
    assert (counts["q", Status.READY], counts["p", Status.READY]) == (1, 2)


async def test_plain_ticks_wait_as_seldom_as_those_of_a_server_alone(
    sharers: list[Sharer],
) -> None:
    one, two, _ = sharers
    await one.run(one.enqueue([new_job()] * 20))
    await two.take(1)

    async def trips(*commands: object, claims: Sequence[Claim] = ()) -> int:
        before = one.trips
        await one.run(*commands, claims=claims)
        return one.trips - before

    held = await one.take(5)
    wanted = [Claim(None, [(one.holder, 5)])]
    for _ in range(3):
        assert await trips(one.enqueue([new_job()])) == 1
        assert await trips(Succeed([held.pop()]), one.enqueue([new_job()]), claims=wanted) == 3
        # Another server's tick in between changes nothing that this one remembers.
        await two.run(two.enqueue([new_job()]))


async def test_leases_that_others_end_are_told(sharers: list[Sharer]) -> None:
    one, two, _ = sharers
    heard: list[tuple[int, int]] = []
    one.store.when_others = lambda news: heard.extend(news.ended)
    await one.run(one.enqueue([new_job()] * 2))
    first, second = await one.take(2)
    await two.run(Succeed([first]), Fail(second, Failure("m", None, None)))
    async with asyncio.timeout(60):
        while len(set(heard)) < 2:
            await pause()
    assert set(heard) == {(one.holder, first), (one.holder, second)}


async def test_leases_that_others_end_are_told_though_the_connection_ends_meanwhile(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    """It ends when the leases have been read, and not been passed on."""
    one, two, _ = sharers
    watch = one.store._watch
    assert watch is not None
    heard: list[tuple[int, int]] = []
    one.store.when_others = lambda news: heard.extend(news.ended)
    await one.run(one.enqueue([new_job()]))
    (key,) = await one.take(1)
    await watch.stop()
    await two.run(Succeed([key]))
    watch._looked = -math.inf
    with connect(database_at(tmp_path), SESSION) as another:
        with another.transaction():
            # A look reads it behind the leases, for the next deadline.
            another.execute("LOCK TABLE topic_writes")
            watch.start()
            async with asyncio.timeout(60):
                while not (connection := watch._connection):
                    await pause()
                process = connection.info.backend_pid
                waits = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {process}"
                while not value_of(another, waits):
                    await pause()
            value_of(another, f"SELECT pg_terminate_backend({process})")
        async with asyncio.timeout(60):
            while not heard:
                await pause()
            # What was passed on is forgotten.
            while value_of(another, "SELECT count(*) FROM mail"):
                await pause()
    assert heard == [(one.holder, key)]


async def test_only_who_waits_for_jobs_hears_of_new_ones(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    one, two, three = sharers

    async def told(hungry: int) -> None:
        """Wait until one has told the others of its last tick, and knows who is hungry."""
        watch = one.store._watch
        assert watch is not None
        async with asyncio.timeout(60):
            while len(watch.others) < 2 or watch._tells or watch._awake.is_set():
                await pause()
            while value_of(reader, "SELECT count(*) FROM servers WHERE is_hungry") != hungry:
                await pause()

    address = database_at(tmp_path)
    with connect(address, SESSION) as heard, connect(address, SESSION) as reader:
        for slot in (1, 2):
            heard.execute(f"LISTEN {CHANNEL}{slot}".encode())
        await told(0)
        await one.run(one.enqueue([new_job()] * 2))
        # Its claim gets all that it asks for.
        await three.take(2)
        await told(0)
        await two.take(1)
        await told(1)
        watch = two.store._watch
        assert watch is not None
        storing = asyncio.create_task(one.run(one.enqueue([new_job()])))
        async with asyncio.timeout(60):
            while not (found := list(heard.notifies(timeout=0))):
                watch.hunger()  # who waits claims again and again
                await pause()
        await storing
        assert {each.channel for each in found} == {f"{CHANNEL}1"}
        # Who waits no more claims no more, and is told of nothing.
        await told(0)


async def test_a_server_looks_for_jobs_once_more_after_it_has_told_of_its_hunger(
    sharers: list[Sharer],
) -> None:
    """Others do not tell it of what they have committed since its claim."""
    two = sharers[1]
    watch = two.store._watch
    assert watch is not None
    async with asyncio.timeout(60):
        while len(watch.others) < 2:
            await pause()
    await watch.stop()
    await two.take(1)
    await watch._aside(watch._open)
    watch._looked = math.inf
    assert await watch._aside(watch._exchange_news, 0) is not None
    assert await watch._aside(watch._exchange_news, 0) is None
    watch._close()


async def test_the_jobs_of_who_died_are_returned_and_no_others(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    one, two, three = sharers
    await one.run(one.enqueue([new_job()] * 6))
    first, second, third = [await each.take(2) for each in sharers]
    await two.store.abandon()
    async with asyncio.timeout(60):
        while not (found := await one.take(6)):
            await pause()
    assert found == second
    jobs = await three.store.reads.keys(Filter(), 0, FOREVER, 100)
    assert jobs == [*first, *second, *third]
    # Who returns the jobs of a slot holds it meanwhile, and so does who comes second.
    for each in (one, three):
        assert each.store._watch is not None
        await each.store._watch.stop()
        assert await each.take(1) == []
    late = await opened(tmp_path)
    assert late.slot == 1
    assert late.at_start.returned == 0
    await late.abandon()


async def test_who_returns_the_jobs_of_another_gives_back_what_they_drew(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    """Its ticks have turns of their own by then, so none is undone that would read them again."""
    one, two, three = sharers
    for each in (one, three):
        assert each.store._watch is not None
        await each.store._watch.stop()
    drawn = new_job(options=drawing((Draw("b", 1),)))
    await one.run(PutBudget("b", BudgetPolicy(2)), one.enqueue([drawn] * 2))
    held = await two.take(2)
    assert len(held) == 2
    while one.store._memory is not None and one.store._memory._alone < 2:
        assert await one.take(2) == []
    with connect(database_at(tmp_path), SESSION) as connection:
        start = value_of(connection, "SELECT start FROM servers WHERE slot = 1")
    assert isinstance(start, int)
    await two.die(tmp_path)
    await one.store._recover_other(1, start)
    assert await one.take(2) == held


async def test_a_server_is_dead_once_several_looks_have_found_it_silent(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    """After a pause of a whole machine, the first one to look finds all others silent."""
    two = sharers[1]
    watches = [each.store._watch for each in sharers]
    for watch in watches:
        assert watch is not None
        await watch.stop()
    first = watches[0]
    assert first is not None
    alive = IS_THERE.format(two.store._pipeline.process)
    with connect(database_at(tmp_path), SESSION) as connection:
        connection.execute("UPDATE servers SET beat = clock_timestamp() - interval '1 minute'")
        await first._aside(first._open)
        first._judges_at = 0.0
        for _ in range(STOPPED_LOOKS):
            assert value_of(connection, alive) == 1
            first._looked = -math.inf
            first._awake.set()
            await first._turn()
        async with asyncio.timeout(60):
            while value_of(connection, alive):
                await pause()
    first._close()


async def test_a_start_returns_what_its_slot_held(sharers: list[Sharer], tmp_path: Path) -> None:
    one, two, three = sharers
    await one.run(one.enqueue([new_job()] * 6))
    for each in sharers:
        await each.take(2)
    for each in (one, three):
        assert each.store._watch is not None
        await each.store._watch.stop()
    await two.die(tmp_path)
    again = await opened(tmp_path)
    two.store = again
    assert (again.slot, again.at_start.returned) == (1, 2)
    counts = await again.reads.counts(one.now)
    assert counts["q", Status.READY] == 2
    assert counts["q", Status.IN_FLIGHT] == 4


async def test_a_server_is_fenced_whose_connection_another_has_ended(
    sharers: list[Sharer], tmp_path: Path
) -> None:
    one, two, _ = sharers
    await one.run(one.enqueue([new_job()] * 2))
    (key,) = await two.take(1)
    assert two.store._watch is not None
    await two.store._watch.stop()
    with connect(database_at(tmp_path), SESSION) as connection:
        value_of(connection, f"SELECT pg_terminate_backend({two.store._pipeline.process}, 5000)")
    async with asyncio.timeout(60):
        while key not in await one.take(6):
            await pause()
    with pytest.raises(Fenced, match="since the connection was lost"):
        await two.run(Succeed([key]))
    assert await one.store.reads.keys(Filter(), 0, FOREVER, 100)
