"""A worker whose stream breaks, whose server stops, or whose deliveries end while it works."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

import zq
from bench.ports import free_port
from zq.client.app import App
from zq.client.backend import TakeStream
from zq.client.errors import Unavailable
from zq.client.http.address import Address
from zq.client.http.backend import HttpBackend
from zq.client.running import EventName
from zq.client.values import (
    Delivery,
    Held,
    LeasedFailure,
    RefusedItems,
    StoredJob,
    Submission,
    Success,
    TakeRequest,
)
from zq.client.worker.acks import Acknowledger
from zq.client.worker.holding import renew
from zq.client.worker.supply import Supply
from zq.client.worker.worker_run import WorkerRun

from .conftest import working
from .relay import Fault, Relay
from .workers import until_delivered, until_ready, until_resumed


async def test_a_broken_stream_loses_nothing_and_runs_nothing_twice(site: Site) -> None:
    runs: list[int] = []
    begun, go_on = asyncio.Event(), asyncio.Event()
    async with Relay.to(site) as relay, App(relay.url) as app:

        @app.task
        async def work(n: int) -> int:
            runs.append(n)
            begun.set()
            await go_on.wait()
            return n

        jobs = await work.enqueue_many(work.args(n) for n in range(10))
        async with working(app, prefetch=6):
            await begun.wait()
            relay.cut()
            # The same deliveries come again, by another name: 0 is under way, 1 to 5 are not.
            await until_delivered(site, 12)
            go_on.set()
            assert [await job.result(PATIENCE_S) for job in jobs] == list(range(10))

    assert runs == list(range(10))


class Gated(HttpBackend):
    """The real backend. No stream opens while its gate is shut."""

    def __init__(self, url: str) -> None:
        super().__init__(Address(url))
        self.gate = asyncio.Event()
        self.gate.set()

    async def take(self, wanted: TakeRequest) -> TakeStream:
        await self.gate.wait()
        return await super().take(wanted)


async def test_a_renewal_before_the_next_stream_ends_no_run(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int | None] = []
    begun, go_on, looked = asyncio.Event(), asyncio.Event(), asyncio.Event()
    held = WorkerRun._held

    def seen(run: WorkerRun) -> list[Held]:
        looked.set()
        return held(run)

    monkeypatch.setattr(WorkerRun, "_held", seen)
    async with Relay.to(site) as relay, App(site.url) as near:
        backend = Gated(relay.url)
        async with App(backend=backend) as app:

            @app.task
            async def work() -> str:
                runs.append(zq.current_job().delivery.lease)
                begun.set()
                await go_on.wait()
                return "done"

            job = await work.enqueue()
            async with working(app, lease=0.3), asyncio.timeout(PATIENCE_S):
                await begun.wait()
                backend.gate.clear()
                relay.cut()
                await until_ready(near, 1)
                # After the second look, the server has answered what was asked after the first.
                for _ in range(2):
                    looked.clear()
                    await looked.wait()
                backend.gate.set()
                await until_resumed(site, near, job.id, 2)
                go_on.set()
                assert await near.job(job.id).result(PATIENCE_S) == "done"

    assert runs == [1]


async def test_a_refusal_counts_once_a_stream_was_open_for_a_period() -> None:
    ended: asyncio.Queue[Held] = asyncio.Queue()
    held = Held("0" * 26, 1)
    asked: list[int] = []
    looks = 0
    opened = 0.0

    class Refuser(HttpBackend):
        async def extend(self, *_: Any, **__: Any) -> RefusedItems:
            asked.append(looks)
            return RefusedItems(stale=[held.id])

    def opened_at() -> float | None:
        """Before and after a request: none, one that breaks meanwhile, and one that stays."""
        nonlocal looks, opened
        looks += 1
        if looks in (1, 3):
            return None
        if looks in (2, 4):
            opened = asyncio.get_running_loop().time()
        return opened

    backend = Refuser(Address("http://127.0.0.1:1"))
    renewing = asyncio.create_task(renew(backend, 30, lambda: [held], opened_at, ended.put_nowait))
    assert await asyncio.wait_for(ended.get(), PATIENCE_S) == held
    renewing.cancel()
    assert asked[:3] == [2, 4, 6]
    await backend.close()


@pytest.mark.settings(drain=0, port=lambda _: free_port())
async def test_a_worker_outlives_a_restart_of_the_server(site: Site) -> None:
    done: list[int] = []
    begun, go_on = asyncio.Event(), asyncio.Event()
    async with App(site.url) as app:

        @app.task
        async def work(n: int) -> int:
            begun.set()
            await go_on.wait()
            done.append(n)
            return n

        jobs = await work.enqueue_many(work.args(n) for n in range(6))
        async with working(app, concurrency=2, prefetch=4):
            await begun.wait()
            await site.restart()
            go_on.set()
            assert [await job.result(PATIENCE_S) for job in jobs] == list(range(6))

    assert set(done) == set(range(6))


async def test_a_worker_outlives_what_a_proxy_answers_for_a_server_that_is_away(
    site: Site,
) -> None:
    async with Relay.to(site) as relay, App(relay.url) as app, App(site.url) as near:

        @app.task
        async def work() -> int:
            return 1

        async with working(app):
            assert await work.call() == 1
            refused = relay.fail("/jobs/take", "refused")
            relay.cut()
            await asyncio.wait_for(refused.wait(), PATIENCE_S)
            job = await near.task(work.function).enqueue()
            assert await job.result(PATIENCE_S) == 1


async def test_a_burst_outlives_what_a_proxy_answers_for_a_server_that_is_away(site: Site) -> None:
    async with Relay.to(site) as relay, App(relay.url) as app:
        app.task(lambda: None)
        refused = relay.fail("/jobs/count", "refused")
        report = await zq.Worker(app, burst=True).run()

    assert (refused.is_set(), report.finished) == (True, 0)


class Recorder(HttpBackend):
    """The real backend; posts are recorded, and held back while the gate is shut."""

    def __init__(self, url: str) -> None:
        super().__init__(Address(url))
        self.posts: list[list[str]] = []
        self.posting = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def succeed(self, items: Sequence[Success]) -> RefusedItems:
        self.posting.set()
        self.posts.append([item.id for item in items])
        await self.gate.wait()
        return await super().succeed(items)


@pytest.fixture
async def recorder(site: Site) -> AsyncIterator[Recorder]:
    backend = Recorder(site.url)
    yield backend
    await backend.close()


async def on_unstored(delivery: Delivery, _: object) -> None:
    raise AssertionError(f"the result of {delivery.id} should be stored")


async def test_acknowledgements_gather_while_a_post_is_under_way_and_only_then(
    recorder: Recorder,
) -> None:
    await recorder.enqueue([Submission("q", "t", None)] * 7)
    stream = await recorder.take(TakeRequest(("q",), 7))
    held: list[Delivery] = []
    while len(held) < 7:
        held += [each for each in await stream.deliveries() if isinstance(each, Delivery)]
    refused: list[str] = []

    async def on_lost(id: str) -> None:
        refused.append(id)

    acks = Acknowledger(recorder, lambda _: None, on_lost, on_unstored)
    posting = asyncio.create_task(acks.run())
    recorder.gate.clear()

    acks.add(held[0], Success(held[0].id, held[0].lease))
    await asyncio.wait_for(recorder.posting.wait(), PATIENCE_S)
    assert not acks.is_idle
    for each in held[1:]:
        acks.add(each, Success(each.id, each.lease))
    for _ in range(10):
        await asyncio.sleep(0)
    assert recorder.posts == [[held[0].id]]
    recorder.gate.set()
    await acks.drained()

    assert recorder.posts == [[held[0].id], [each.id for each in held[1:]]]
    assert (await recorder.count(), refused) == (0, [])
    posting.cancel()
    await stream.close()


async def one(stream: TakeStream) -> Delivery:
    (delivery,) = await stream.deliveries()
    assert isinstance(delivery, Delivery)
    return delivery


@pytest.mark.parametrize("when", ["before its post", "while it is posted", "after its post"])
async def test_a_done_job_that_comes_again_is_acknowledged_by_its_new_name(
    recorder: Recorder, when: str
) -> None:
    """It was finished, and its acknowledgement did not get through, when the stream broke."""
    await recorder.enqueue([Submission("q", "t", [1])])
    first = await recorder.take(TakeRequest(("q",), 1))
    held = await one(first)
    await first.close()
    second = await recorder.take(TakeRequest(("q",), 1))
    again = await one(second)
    assert (again.id, again.lease) == (held.id, (held.lease or 0) + 1)
    refused: list[str] = []

    async def on_lost(id: str) -> None:
        refused.append(id)

    acks = Acknowledger(recorder, lambda _: None, on_lost, on_unstored)
    posting = asyncio.create_task(acks.run())
    acks.add(held, Success(held.id, held.lease))
    if when == "while it is posted":
        recorder.gate.clear()
        await recorder.posting.wait()
    elif when == "after its post":
        await acks.drained()
    assert not acks.adopt(Delivery("0" * 26, "t", "q", None))
    assert acks.adopt(again)
    recorder.gate.set()
    await acks.drained()

    assert await recorder.count() == 0
    assert refused == ([held.id] if when == "after its post" else [])
    posting.cancel()
    await second.close()


async def test_a_job_that_was_elsewhere_meanwhile_is_executed_again(recorder: Recorder) -> None:
    async def on_lost(_: str) -> None: ...

    acks = Acknowledger(recorder, lambda _: None, on_lost, on_unstored)
    held = Delivery("0" * 26, "t", "q", [1], lease=1)
    acks.add(held, Success(held.id, held.lease))

    for again in (
        Delivery(held.id, "t", "q", [1], lease=3),
        Delivery(held.id, "t", "q", [1], attempts=1, lease=2),
        Delivery(held.id, "t", "q", [2], lease=2),
    ):
        assert not acks.adopt(again)
    assert acks.adopt(Delivery(held.id, "t", "q", [1], lease=2))


class Refusing(Recorder):
    """A backend that is unavailable for a while."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.refusals = 2

    def _refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("later")

    async def succeed(self, items: Sequence[Success]) -> RefusedItems:
        self._refuse()
        return await super().succeed(items)

    async def fail(self, id: str, failure: LeasedFailure) -> StoredJob:
        self._refuse()
        return await super().fail(id, failure)

    async def take(self, *args: Any, **options: Any) -> TakeStream:
        self._refuse()
        return await super().take(*args, **options)


@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_job_came_to_is_told_until_the_server_has_it(site: Site, fails: bool) -> None:
    backend = Refusing(site.url)
    backend.refusals = 0
    async with App(backend=backend) as app:

        @app.task(max_attempts=1)
        async def work() -> None:
            backend.refusals = 2
            if fails:
                raise ValueError("no")

        job = await work.enqueue()
        (outcome,) = await zq.Worker(app).run_until_idle(PATIENCE_S)

        assert backend.refusals == 0
        assert outcome.ok is not fails
        assert (await backend.get(job.id)).status == ("dead" if fails else "completed")


@pytest.mark.parametrize("fault", ["refused", "answered"])
@pytest.mark.parametrize("what", ["/success", "/failure"])
async def test_what_a_proxy_answers_is_sent_again_and_no_fault_of_the_job(
    site: Site, what: str, fault: Fault
) -> None:
    runs: list[int] = []
    async with Relay.to(site) as relay, App(relay.url) as app:

        @app.task(max_attempts=1)
        async def work() -> int:
            runs.append(1)
            if what == "/failure":
                raise ValueError("no")
            return 42

        job = await work.enqueue()
        refused = relay.fail(what, fault)
        (outcome,) = await zq.Worker(app).run_until_idle(PATIENCE_S)

        assert (refused.is_set(), runs) == (True, [1])
        if what == "/failure":
            assert outcome.error is not None
            assert outcome.error.error_type == "ValueError"
            assert [each.error_type for each in await app.backend.errors(job.id)] == ["ValueError"]
        else:
            assert (outcome.result, await job.result()) == (42, 42)


@pytest.mark.parametrize(
    ("what", "fault", "ttl", "event"),
    [
        ("/success", "lost", 3600, "completed"),
        ("/success", "lost", None, "completed"),
        ("/failure", "lost", 3600, "failed"),
        ("/success", "silent", 3600, "requeued"),
        ("/failure", "silent", 3600, "requeued"),
    ],
)
async def test_a_report_whose_answer_is_lost_is_told_as_what_the_server_has(
    site: Site, what: str, fault: Fault, ttl: float | None, event: EventName
) -> None:
    told: asyncio.Queue[tuple[str, str | None]] = asyncio.Queue()
    async with Relay.to(site) as relay, App(relay.url) as app, App(site.url) as near:
        for name in ("completed", "failed", "requeued"):
            app.on(name)(lambda event: told.put_nowait((event.name, event.id)))

        @app.task(max_attempts=1, result_ttl=ttl)
        async def work() -> None:
            if what == "/failure":
                raise ValueError("no")

        job = await work.enqueue()
        happened = relay.fail(what, fault)
        async with working(app), asyncio.timeout(PATIENCE_S):
            await happened.wait()
            if fault == "silent":
                await near.job(job.id).cancel(force=True)
            relay.hang_up()
            assert await told.get() == (event, job.id)


async def test_a_stream_is_sought_for_as_long_as_one_has_patience(site: Site) -> None:
    backend = Refusing(site.url)
    wanted = TakeRequest(("q",), 1, "w")
    with pytest.raises(Unavailable):
        await Supply(backend, wanted, asyncio.Event(), 0.0).open()
    assert backend.refusals == 1

    supply = Supply(backend, wanted, asyncio.Event(), PATIENCE_S)
    await supply.open()

    await supply.close()
    await backend.close()


async def test_a_worker_that_seeks_its_server_can_be_stopped() -> None:
    async with App("http://127.0.0.1:1") as app:
        app.task(lambda: None)
        worker = zq.Worker(app, connect_timeout=3600)
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S):
            report = await worker.stop()
        with pytest.raises(Unavailable):
            await running

    assert report == zq.DrainReport(0, [])
    assert await worker.stop() is None


@pytest.mark.settings(max_streams_per_peer=1)
async def test_a_refused_stream_is_asked_for_again(site: Site, backend: HttpBackend) -> None:
    other = await backend.take(TakeRequest())
    async with App(site.url) as app:

        @app.task
        async def work() -> int:
            return 1

        worker = zq.Worker(app, connect_timeout=PATIENCE_S)
        running = asyncio.create_task(worker.run())
        job = await work.enqueue()
        await other.close()
        assert await job.result(PATIENCE_S) == 1
        await worker.stop()
        await running


async def test_a_refusal_that_does_not_pass_ends_the_worker(site: Site) -> None:
    async with App(f"{site.url}/elsewhere") as app:
        app.task(lambda: None)
        with pytest.raises(zq.BackendError) as refused:
            await zq.Worker(app).run()

    assert refused.value.status == 406
    assert not isinstance(refused.value, Unavailable)
