"""Jobs that wait for jobs in a worker that has no place left for these."""

import asyncio

import pytest
from conformance.streams import PATIENCE_S

import zq
from zq.client.app import App
from zq.client.values import JobQuery
from zq.client.worker.supply import Patience
from zq.testing.plugin import Working


@pytest.mark.parametrize("kind", ["coroutine", "thread", "few threads"])
async def test_a_job_that_waits_for_a_job_in_a_full_worker_is_told_of_the_deadlock(
    zq_app: App, zq_worker: Working, kind: str
) -> None:
    @zq_app.task
    def small() -> int:
        return 1

    @zq_app.task(max_attempts=1, wait=10 * PATIENCE_S)
    async def waits() -> int:
        return await small.call()

    @zq_app.task(max_attempts=1)
    def blocks() -> int:
        return small.enqueue_sync().result_sync(10 * PATIENCE_S)

    concurrency = 4 if kind == "few threads" else 1
    async with zq_worker(zq_app, concurrency=concurrency, threads=1):
        job = await (waits if kind == "coroutine" else blocks).enqueue()
        with pytest.raises(zq.JobFailed, match="Deadlock: all 1 places of this worker are taken"):
            await job.result(PATIENCE_S)


async def test_two_jobs_that_wait_in_two_places_are_told_one_after_the_other(
    zq_app: App, zq_worker: Working
) -> None:
    both = asyncio.Barrier(2)

    @zq_app.task
    async def small() -> int:
        return 1

    @zq_app.task(max_attempts=1)
    async def waits() -> int:
        child = await small.enqueue()
        await both.wait()
        return await child.result(10 * PATIENCE_S)

    async with zq_worker(zq_app, concurrency=2):
        jobs = [await waits.enqueue() for _ in range(2)]
        ends = await asyncio.gather(
            *(job.result(PATIENCE_S) for job in jobs), return_exceptions=True
        )
    assert any(isinstance(end, zq.JobFailed) and "Deadlock" in str(end) for end in ends)
    assert all(end == 1 or isinstance(end, zq.JobFailed) for end in ends)


async def test_a_job_is_not_told_of_a_deadlock_while_another_worker_may_take_the_other_one(
    zq_app: App, zq_worker: Working
) -> None:
    @zq_app.task(queue="small")
    async def small() -> int:
        return 1

    @zq_app.task(queue="large", max_attempts=1)
    async def waits() -> int:
        return await small.call()

    async with (
        zq_worker(zq_app, queues=["large", "small"]),
        zq_worker(zq_app, queues=["small"]),
    ):
        assert [await (await waits.enqueue()).result(PATIENCE_S) for _ in range(3)] == [1] * 3


async def test_a_job_behind_a_long_one_goes_to_a_worker_that_comes_later(
    zq_app: App, zq_worker: Working
) -> None:
    end = asyncio.Event()
    told: asyncio.Queue[str | None] = asyncio.Queue()
    zq_app.on("requeued")(lambda event: told.put_nowait(event.id))

    @zq_app.task
    async def work(long: bool) -> bool:
        if long:
            await end.wait()
        return long

    async with zq_worker(zq_app, prefetch=4):
        jobs = [await work.enqueue(n == 0) for n in range(4)]
        in_flight = JobQuery(statuses=("in_flight",))
        async with asyncio.timeout(PATIENCE_S):
            while await zq_app.backend.count(in_flight) < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        async with zq_worker(zq_app, prefetch=4):
            assert [await job.result(PATIENCE_S) for job in jobs[1:]] == [False] * 3
        untold = {job.id for job in jobs[1:]}
        while untold:
            untold.discard(await asyncio.wait_for(told.get(), PATIENCE_S) or "")
        end.set()
        assert await jobs[0].result(PATIENCE_S)


def test_a_job_that_comes_back_may_lie_longer() -> None:
    now = [0.0]
    patience = Patience(lambda: now[0])

    def lies(seconds: float) -> bool:
        """True if the job goes back after this time, and not before."""
        assert patience.tired_of(["a"]) == []
        now[0] += seconds - 0.1
        assert patience.tired_of(["a"]) == []
        now[0] += 0.1
        return patience.tired_of(["a"]) == ["a"]

    assert [lies(seconds) for seconds in (1, 1, 2, 2)] == [True] * 4
    assert patience.tired_of(["b"]) == []
