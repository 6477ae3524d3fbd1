"""Chains and chords."""

import asyncio
import contextlib
import time
from collections import Counter
from datetime import datetime
from typing import Any, cast

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S
from documents import code

import zq
from zq.client.app import App
from zq.client.backend import Backend
from zq.client.values import Delivery, JobQuery, Submission, TakeRequest
from zq.client.worker.continuing import QUEUE
from zq.testing import TestServer, run_until_idle
from zq.testing.plugin import Working

from .conftest import working
from .relay import Relay


class Counted:
    """A backend that counts its calls by their names."""

    def __init__(self, backend: Backend) -> None:
        self.calls: Counter[str] = Counter()
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._backend, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return verb(*args, **kwargs)

        return counted if callable(verb) else verb


async def test_each_step_of_a_chain_gets_the_result_before(zq_app: App) -> None:
    @zq_app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @zq_app.task(queue="sums")
    def double(n: int, *, times: int = 2) -> int:
        return n * times

    flow = await zq.chain(
        zq.step(add, 1, 2), zq.step(double), zq.step(double, times=5), zq.step(add, 7)
    )
    outcomes = await run_until_idle(zq_app)
    assert [outcome.id for outcome in outcomes][:1] == [job.id for job in flow.jobs]
    assert [outcome.result for outcome in outcomes] == [3, 6, 30, 37]
    assert await flow.result() == 37


async def test_the_last_of_a_chord_gets_all_results_in_their_order(zq_app: App) -> None:
    gate = asyncio.Event()

    @zq_app.task
    async def square(n: int) -> int:
        if n == 0:
            await gate.wait()  # the first is the last to finish
        if n == 4:
            gate.set()
        return n * n

    @zq_app.task
    async def total(parts: list[int], more: int) -> list[int]:
        return [*parts, more]

    flow = await zq.chord([zq.step(square, n) for n in range(5)], zq.step(total, 7))
    outcomes = await zq.Worker(zq_app, concurrency=5).run_until_idle()
    (end,) = [outcome for outcome in outcomes if outcome.job.type == "total"]
    assert end.result == [0, 1, 4, 9, 16, 7]
    assert {outcome.id for outcome in outcomes} == {end.id, *(job.id for job in flow.jobs)}
    assert await flow.result() == end.result
    assert await zq_app.backend.count(JobQuery(queues=(QUEUE,), statuses=("ready",))) == 0


async def test_a_chord_of_a_blocking_program_and_one_that_runs_at_once() -> None:
    app = App("sqlite://:memory:")
    got: list[list[int] | int] = []

    @app.task
    def one() -> int:
        return 1

    @app.task
    def take(parts: list[int] | int) -> int:
        got.append(parts)
        return len(got)

    def program() -> None:
        with app.immediate():
            zq.chord_sync([zq.step(one)], zq.step(take))
            flow = zq.chain_sync(zq.step(one), zq.step(take))
            assert flow.result_sync() == 2

    await asyncio.to_thread(program)
    assert got == [[1], 1]


async def test_a_chord_without_members_goes_on_at_once_with_an_empty_list(zq_app: App) -> None:
    @zq_app.task
    async def count(parts: list[int], more: int) -> int:
        return len(parts) + more

    flow = await zq.chord([], zq.step(count, 7))
    assert flow.jobs == []
    (outcome,) = await run_until_idle(zq_app)
    assert outcome.result == 7
    assert await flow.result() == 7


@pytest.mark.parametrize("size", [1, 2, 3, 7, 24])
async def test_each_member_of_a_chord_costs_as_much_as_in_a_small_one(
    zq_app: App, size: int
) -> None:
    @zq_app.task
    async def member(n: int) -> int:
        return n

    @zq_app.task
    async def last(parts: list[int]) -> list[int]:
        return parts

    flow = await zq.chord([zq.step(member, n) for n in range(size)], zq.step(last))
    counted = Counted(zq_app.backend)
    zq_app.core.backend = cast(Backend, counted)
    await zq.Worker(zq_app, concurrency=5).run_until_idle()
    assert await flow.result() == list(range(size))
    # Each of size - 1 nodes is reached from both sides, and then read and removed once.
    assert counted.calls["enqueue"] == 2 * (size - 1) + 1
    assert counted.calls["by_key"] == counted.calls["cancel_by_key"] == size - 1


async def test_results_of_a_running_chord_are_no_work_for_a_stream_over_all_queues(
    zq_app: App,
) -> None:
    @zq_app.task
    async def member(n: int) -> int:
        return n

    @zq_app.task
    async def last(parts: list[int]) -> list[int]:
        return parts

    await zq.chord([zq.step(member, n) for n in range(3)], zq.step(last))
    await zq.Worker(zq_app, max_jobs=2).run()
    kept = (await zq_app.backend.jobs(JobQuery(queues=(QUEUE,)))).jobs
    assert [(part.payload, part.status) for part in kept] == [(0, "scheduled"), (1, "scheduled")]
    stream = await zq_app.backend.take(TakeRequest((), 5, "nosy", None, 5))
    (delivery,) = await stream.deliveries()
    assert isinstance(delivery, Delivery)
    assert delivery.type == "member"
    await stream.close()
    assert (await run_until_idle(zq_app))[-1].result == [0, 1, 2]


async def test_a_chord_goes_on_when_its_failed_member_succeeds_at_last(
    zq_app: App, zq_server: TestServer
) -> None:
    tries: list[int] = []

    @zq_app.task(max_attempts=1)
    async def member(n: int) -> int:
        tries.append(n)
        if tries == [0, 1]:
            raise ValueError("not yet")
        return n

    @zq_app.task
    async def last(parts: list[int]) -> list[int]:
        return parts

    await zq.chord([zq.step(member, 0), zq.step(member, 1)], zq.step(last))
    outcomes = await run_until_idle(zq_app, raise_failures=False)
    assert [outcome.ok for outcome in outcomes] == [True, False]
    assert await zq_app.backend.requeue_many() == 1
    outcomes = await run_until_idle(zq_app)
    assert [outcome.result for outcome in outcomes] == [1, [0, 1]]


@pytest.mark.parametrize("kind", ["thread", "coroutine"])
@pytest.mark.parametrize("how", ["cancelled", "timeout"])
async def test_a_chain_ends_with_a_job_that_was_ended_although_its_handler_returns(
    zq_app: App, zq_worker: Working, how: str, kind: str
) -> None:
    loop, begun = asyncio.get_running_loop(), asyncio.Event()
    told: asyncio.Queue[str | None] = asyncio.Queue()
    zq_app.on("cancelled")(lambda event: told.put_nowait(event.id))
    zq_app.on("failed")(lambda event: told.put_nowait(event.id))

    @zq_app.task(max_attempts=1, timeout=0.01 if how == "timeout" else PATIENCE_S)
    def in_thread() -> int:
        loop.call_soon_threadsafe(begun.set)
        zq.current_job().cancelled.wait(PATIENCE_S)
        return 1

    @zq_app.task(max_attempts=1, timeout=0.01 if how == "timeout" else PATIENCE_S)
    async def in_coroutine() -> int:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return 1

    @zq_app.task(queue="after")
    async def after(n: int) -> None: ...

    first: zq.Task[[], int] = in_thread if kind == "thread" else in_coroutine
    flow = await zq.chain(zq.step(first), zq.step(after))
    async with zq_worker(zq_app, queues=["default"]):
        async with asyncio.timeout(PATIENCE_S):
            await begun.wait()
            if how == "cancelled":
                await flow.jobs[0].cancel(force=True)
            assert await told.get() == flow.jobs[0].id

    assert await zq_app.backend.count(JobQuery(queues=("after",))) == 0


async def test_the_next_step_has_time_of_its_own_to_be_stored(site: Site) -> None:
    """The time that the handler may take is over meanwhile."""
    async with Relay.to(site) as relay, App(relay.url) as app:

        @app.task(max_attempts=1, timeout=0.01)
        async def first() -> int:
            return 1

        @app.task(queue="after")
        async def after(n: int) -> None: ...

        flow = await zq.chain(zq.step(first), zq.step(after))
        lost = relay.fail("POST /jobs ", "lost")
        async with working(app, queues=["default"]):
            await asyncio.wait_for(lost.wait(), PATIENCE_S)
            await asyncio.sleep(0.02)
            relay.hang_up()
            assert await flow.jobs[0].result(PATIENCE_S) == 1
        assert await app.backend.count(JobQuery(queues=("after",))) == 1


async def test_the_delay_of_a_step_begins_when_the_step_before_it_is_done(zq_app: App) -> None:
    ended: list[int] = []

    @zq_app.task
    async def first() -> int:
        ended.append(time.time_ns() // 1_000_000)
        return 1

    @zq_app.task(queue="after", delay=3600, meta={"own": True})
    async def after(value: int | list[int]) -> None: ...

    await zq.chain(zq.step(first), zq.step(after))
    await zq.chord([zq.step(first)], zq.step(after))
    await zq.Worker(zq_app, concurrency=1).run_until_idle()
    stored = (await zq_app.backend.jobs(JobQuery(queues=("after",)))).jobs
    assert [job.status for job in stored] == ["scheduled", "scheduled"]
    assert all((job.meta or {})["own"] for job in stored)
    for job, end in zip(stored, ended, strict=True):
        assert 0 <= job.ready_at - end - 3_600_000 <= PATIENCE_S * 1000


async def test_a_member_that_runs_again_after_the_end_starts_nothing(zq_app: App) -> None:
    begun: list[object] = []

    @zq_app.task
    async def member() -> int:
        return 1

    @zq_app.task(result_ttl=None)
    async def last(parts: list[int]) -> None:
        begun.append(parts)

    flow = await zq.chord([zq.step(member)], zq.step(last))
    stored = await zq_app.backend.get(flow.jobs[0].id)
    again = Submission(stored.queue, stored.type, stored.payload, meta=stored.meta)
    await run_until_idle(zq_app)
    await zq_app.backend.enqueue([again])
    await run_until_idle(zq_app)
    assert begun == [[1]]


async def test_a_flow_is_waited_for_while_it_runs_and_its_value_is_of_the_last_steps_type(
    zq_app: App, zq_worker: Working
) -> None:
    gate = asyncio.Event()

    @zq_app.task(result_ttl=None)  # only who waits at that moment could get it
    async def size(page: int) -> int:
        return 100 * page

    @zq_app.task
    async def sort(sizes: list[int]) -> set[int]:
        await gate.wait()
        return set(sizes)

    @zq_app.task(result_ttl=None)
    async def pair(size: int, more: int) -> list[int]:
        return [size, more]

    async with zq_worker(zq_app):
        chain = await zq.chain(zq.step(size, 1), zq.step(pair, 7), zq.step(sort))
        chord = await zq.chord([zq.step(size, 1), zq.step(size, 2)], zq.step(sort))
        waited_for = chain.jobs[0].id
        while waited_for == chain.jobs[0].id:
            with pytest.raises(zq.WaitTimeout) as late:
                await chain.result(timeout=0.1)
            waited_for = late.value.job.id
        waiting = asyncio.gather(chain.result(), chord.result())
        gate.set()
        assert list(await waiting) == [{100, 7}, {100, 200}]


async def test_who_waits_for_a_flow_learns_which_job_has_failed_or_is_gone(zq_app: App) -> None:
    @zq_app.task
    async def one() -> int:
        return 1

    @zq_app.task(max_attempts=1)
    async def fail(n: int) -> int:
        raise ValueError("it is broken")

    @zq_app.task(result_ttl=None)
    async def end(n: object) -> int:
        return 2

    failing = await zq.chain(zq.step(one), zq.step(fail), zq.step(end))
    failing_chord = await zq.chord([zq.step(one), zq.step(fail, 1)], zq.step(end))
    gone = await zq.chain(zq.step(one), zq.step(end))
    await run_until_idle(zq_app, raise_failures=False)
    for flow in (failing, failing_chord):
        with pytest.raises(zq.RetriesExhausted, match="ValueError: it is broken"):
            await flow.result()
    with pytest.raises(zq.JobNotFound, match=r"^nothing of the last step, end, is kept: "):
        await gone.result()
    keyed = await zq.chain(zq.step(one), zq.step(end.options(key="x")))
    with pytest.raises(zq.InvalidOption, match=r"^the last step, end, has a key or a batch"):
        await keyed.result()


async def test_steps_are_checked_when_they_are_enqueued(zq_app: App) -> None:
    @zq_app.task
    async def add(a: int, b: int) -> int:
        return a + b

    @zq_app.task
    async def add_all(parts: list[int], more: list[int]) -> int:
        return sum(parts) + sum(more)

    with pytest.raises(TypeError):
        await zq.chain(zq.step(add, 1), zq.step(add, 1))
    with pytest.raises(zq.InvalidOption, match="at least one"):
        await zq.chain()
    steps: Any = [zq.step(add, 1, 2), add]
    with pytest.raises(zq.InvalidOption, match=r"^<Task add in default> is not a step: .*zq.step"):
        await zq.chain(*steps)
    with pytest.raises(zq.InvalidOption, match="is not a step"):
        await zq.chord(steps[:1], steps[1])
    with pytest.raises(zq.InvalidOption, match=r"^what follows takes .* of at most 8,192 bytes"):
        await zq.chain(zq.step(add, 1, 2), *[zq.step(add, n) for n in range(100)])
    with pytest.raises(zq.InvalidOption, match=r"^what follows takes .* begin another chain$"):
        await zq.chord([zq.step(add, 1, 2)], zq.step(add_all, list(range(5000))))
    # Later steps are checked as well, though their first argument is not known yet.
    with pytest.raises(TypeError, match="too many positional"):
        await zq.chain(zq.step(add, 1, 2), zq.step(add, 3, 4))
    with pytest.raises(zq.InvalidPayload, match="b: Expected `int`, got `str`"):
        await zq.chord([zq.step(add, 1, 2)], zq.step(add, "3"))
    with pytest.raises(zq.InvalidOption, match=r"^step: .*is not a task"):
        zq.step(steps[0])
    with pytest.raises(zq.InvalidOption, match="key"):
        await zq.chain(zq.step(add.options(key="x"), 1, 2), zq.step(add, 1))
    assert await zq_app.backend.count() == 0


async def test_no_step_that_could_be_a_copy_of_another_job_is_in_a_flow() -> None:
    """The flow of the copy would never go on, because only the first job tells what comes next."""
    async with App("sqlite://:memory:", defaults={"dedupe": "same"}) as app:

        @app.task
        async def one() -> int:
            return 1

        @app.task
        async def last(value: Any) -> Any:
            return value

        free, end = one.options(dedupe=None), last.options(dedupe=None)
        followed = r"^one: a step that others follow can have neither a key, a batch nor a dedupe"
        with pytest.raises(zq.InvalidOption, match=followed):
            await zq.chord([zq.step(free), zq.step(one)], zq.step(end))
        with pytest.raises(zq.InvalidOption, match=followed):
            await zq.chain(zq.step(one), zq.step(end))
        later = r"^last: a later step has a dedupe id of its flow .* key, or dedupe=None$"
        with pytest.raises(zq.InvalidOption, match=later):
            await zq.chain(zq.step(free), zq.step(last))
        for members in ([zq.step(free)], []):
            with pytest.raises(zq.InvalidOption, match=later):
                await zq.chord(members, zq.step(last))
        assert await app.backend.count() == 0

        await zq.chain(zq.step(one))  # nothing follows it
        chord = await zq.chord([zq.step(free), zq.step(free)], zq.step(end))
        await run_until_idle(app)
        assert await chord.result() == [1, 1]


async def test_a_step_is_told_when_the_flow_is_made_that_it_does_not_take_what_comes(
    zq_app: App,
) -> None:
    @zq_app.task
    async def name(n: int) -> str:
        return str(n)

    @zq_app.task
    async def size(n: int, by: float = 1.0) -> float:
        return n * by

    @zq_app.task
    async def free(x: Any) -> Any:
        return x

    @zq_app.task
    async def when(at: datetime) -> datetime | None:
        return at

    wrong: list[tuple[list[zq.Step], str]] = [
        ([zq.step(name, 1), zq.step(size)], r"size takes int .*, and name gives str"),
        ([zq.step(size, 1), zq.step(when)], r"when takes datetime .*, and size gives float or int"),
    ]
    for steps, words in wrong:
        with pytest.raises(zq.InvalidOption, match=words):
            await zq.chain(*steps)
    with pytest.raises(zq.InvalidOption, match=r"size takes int .*, and a chord gives list"):
        await zq.chord([zq.step(name, 1)], zq.step(size))
    assert await zq_app.backend.count() == 0

    await zq.chain(zq.step(name, 1), zq.step(when), zq.step(free), zq.step(size, 2.5))
    await zq.chord([zq.step(name, 1)], zq.step(free))
    assert await zq_app.backend.count() == 2


async def test_the_program_of_the_documents(
    zq_server: TestServer,
    zq_worker: Working,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ZQ_URL", zq_server.url)
    shop: dict[str, Any] = {"__name__": "shop"}
    exec(code("flows"), shop)
    async with zq_worker(shop["app"]):
        await shop["produce"]()
    assert capsys.readouterr().out == "350 600\n"
    await shop["app"].close()
