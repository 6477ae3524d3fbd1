"""Tests of jobs that are stored, delivered and settled."""

import asyncio
from typing import Any

import msgspec
import pytest

from zq.client.backend import Backend
from zq.client.errors import BackendError, StaleLease, Unavailable
from zq.client.values import (
    MISSING,
    JobQuery,
    LeasedFailure,
    Notice,
    RefusedItems,
    Submission,
)
from zq.testing.contract.tools import (
    EMPTY_S,
    PATIENCE_S,
    Contract,
    Taking,
    stored,
    submission,
    success,
)


class Delivering(Contract):
    """Jobs are stored, taken and settled."""

    # Jobs in

    @pytest.mark.parametrize(
        "payload",
        [None, 0, -1.5, 2**64 - 1, "ž\n\0", [], {}, {"a": [1, {"b": None}]}, "x" * 10_000],
    )
    async def test_a_payload_comes_back_as_it_was(
        self, backend: Backend, taking: Taking, payload: Any
    ) -> None:
        (job,) = await stored(backend, payload)
        (delivery,) = await taking.jobs()
        assert (delivery.id, delivery.type, delivery.queue) == (job.id, "work", "q")
        assert delivery.payload == payload
        assert (await backend.get(job.id)).payload == payload

    async def test_jobs_are_stored_in_order_or_not_at_all(self, backend: Backend) -> None:
        jobs = await stored(backend, *range(5))
        assert [job.id for job in jobs] == sorted(job.id for job in jobs)
        with pytest.raises(BackendError):
            await backend.enqueue([submission(), Submission("a,b", "work", None)])
        assert await backend.count() == 5

    async def test_a_key_has_one_job(self, backend: Backend) -> None:
        wanted = {"unique_key": "k", "unique_while": "exists"}
        (first,) = await stored(backend, 1, **wanted)
        (second,) = await stored(backend, 2, **wanted)
        assert (first.duplicate, second.duplicate, second.id) == (False, True, first.id)
        assert second.status == "ready"
        assert (await backend.by_key("k")).payload == 1

    async def test_enqueues_of_one_key_at_once_store_one_job(self, backend: Backend) -> None:
        wanted = [submission(n, unique_key="k", unique_while="exists") for n in range(20)]
        answers = await asyncio.gather(*(backend.enqueue([job]) for job in wanted))
        assert sum(not job.duplicate for (job,) in answers) == 1
        assert len({job.id for (job,) in answers}) == 1

    async def test_of_enqueues_at_once_each_gets_its_own_answer(self, backend: Backend) -> None:
        good = [submission(n) for n in range(20)]
        wanted = [*good[:10], Submission("a,b", "work", None), *good[10:]]
        told: list[Any] = await asyncio.gather(
            *(backend.enqueue([job]) for job in wanted), return_exceptions=True
        )
        refused = told.pop(10)
        assert isinstance(refused, BackendError)
        assert refused.code == "invalid_request"
        assert [(await backend.get(job.id)).payload for (job,) in told] == list(range(20))
        assert await backend.count() == 20

    async def test_batches_are_stored_in_order_up_to_one_that_is_refused(
        self, backend: Backend
    ) -> None:
        good = [[submission(n), submission(n + 1)] for n in (0, 2, 4)]
        found = [job.id async for part in backend.enqueue_each(good) for job in part]
        assert [(await backend.get(id)).payload for id in found] == list(range(6))
        bad = [submission(7), msgspec.structs.replace(submission(), queue="a,b")]
        told = 0
        with pytest.raises(BackendError):
            async for part in backend.enqueue_each([good[0], bad, good[1]]):
                told += len(part)
        assert (told, await backend.count()) == (2, 8)

    # Jobs out

    async def test_jobs_come_in_order(self, backend: Backend, taking: Taking) -> None:
        await stored(backend, "a", "b", "c")
        assert [delivery.payload for delivery in await taking.jobs(3)] == ["a", "b", "c"]

    async def test_the_urgent_comes_first(self, backend: Backend, taking: Taking) -> None:
        await stored(backend, "later", priority=9)
        await stored(backend, "now", priority=1)
        assert [delivery.payload for delivery in await taking.jobs(2)] == ["now", "later"]

    async def test_an_empty_queue_brings_nothing(self, backend: Backend, taking: Taking) -> None:
        stream = await taking.open()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(EMPTY_S):
                await stream.deliveries()

    async def test_who_waits_is_woken(self, backend: Backend, taking: Taking) -> None:
        stream = await taking.open()
        waiting = asyncio.ensure_future(stream.deliveries())
        (job,) = await stored(backend, "news")
        async with asyncio.timeout(PATIENCE_S):
            (delivery,) = await waiting
        assert delivery.id == job.id

    async def test_those_who_wait_hold_up_nobody_and_one_gets_the_job(
        self, backend: Backend, taking: Taking
    ) -> None:
        streams = [await taking.open() for _ in range(3)]
        waiting = [asyncio.create_task(taking.more(stream)) for stream in streams]
        (job,) = await stored(backend, 1)
        async with asyncio.timeout(PATIENCE_S):
            done, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [[each.id for each in task.result()] for task in done] == [[job.id]]
        assert (await backend.get(job.id)).status == "in_flight"
        for task in others:
            task.cancel()

    async def test_a_window_is_not_overrun(self, backend: Backend, taking: Taking) -> None:
        await stored(backend, *range(5))
        stream = await taking.open(2)
        found = await taking.more(stream, 2)
        assert [delivery.payload for delivery in found] == [0, 1]
        assert await backend.count(JobQuery(statuses=("in_flight",))) == 2
        await backend.succeed([success(found[0])])
        (third,) = await taking.more(stream)
        assert third.payload == 2

    async def test_a_stream_takes_from_its_queues_only(
        self, backend: Backend, taking: Taking
    ) -> None:
        await backend.enqueue([Submission("other", "work", 1), submission(2)])
        assert [delivery.payload for delivery in await taking.jobs()] == [2]
        assert sorted(await backend.queues()) == ["other", "q"]

    async def test_a_stream_that_ends_gives_its_jobs_back(
        self, backend: Backend, taking: Taking
    ) -> None:
        (job,) = await stored(backend, 1)
        stream = await taking.open()
        await stream.deliveries()
        await stream.close()
        await stream.close()
        (again,) = await taking.jobs()
        assert (again.id, again.attempts) == (job.id, 0)

    async def test_a_stream_tells_of_a_lost_lease_before_it_ends(
        self, backend: Backend, taking: Taking
    ) -> None:
        await stored(backend, 1)
        stream = await taking.open(2, lease_ms=200)
        (job,) = await taking.more(stream)
        async with asyncio.timeout(PATIENCE_S):
            assert list(await stream.deliveries()) == [Notice("lease_lost", job.id, job.lease)]
            with pytest.raises(Unavailable):
                await stream.deliveries()

    # Outcomes

    @pytest.mark.parametrize("result", [None, 42, "text", {"a": [1]}, "x" * 10_000])
    async def test_a_result_comes_back(self, backend: Backend, taking: Taking, result: Any) -> None:
        await stored(backend, 1)
        (delivery,) = await taking.jobs()
        assert await backend.succeed([success(delivery, result)]) == RefusedItems()
        outcome = await backend.result(delivery.id, 0)
        assert (outcome.status, outcome.result, outcome.is_final) == ("completed", result, True)

    async def test_no_result_is_another_thing_than_none(
        self, backend: Backend, taking: Taking
    ) -> None:
        await stored(backend, 1)
        (delivery,) = await taking.jobs()
        await backend.succeed([success(delivery)])
        assert (await backend.result(delivery.id, 0)).result is MISSING

    async def test_all_who_wait_for_a_job_are_told(self, backend: Backend, taking: Taking) -> None:
        (job,) = await stored(backend, 1)
        waiting = [asyncio.ensure_future(backend.result(job.id, 30_000)) for _ in range(2)]
        (delivery,) = await taking.jobs()
        await backend.succeed([success(delivery, "done")])
        async with asyncio.timeout(PATIENCE_S):
            outcomes = await asyncio.gather(*waiting)
        assert [outcome.result for outcome in outcomes] == ["done", "done"]

    async def test_who_enqueues_may_wait(self, backend: Backend, taking: Taking) -> None:
        waiting = asyncio.ensure_future(backend.enqueue_and_wait(submission(20), 30_000))
        (delivery,) = await taking.jobs()
        await backend.succeed([success(delivery, delivery.payload + 1)])
        async with asyncio.timeout(PATIENCE_S):
            outcome = await waiting
        assert (outcome.status, outcome.result) == ("completed", 21)
        assert outcome.job is not None
        assert outcome.job.id == delivery.id

    async def test_a_wait_that_is_over_says_what_the_job_is_doing(self, backend: Backend) -> None:
        (job,) = await stored(backend, 1)
        outcome = await backend.result(job.id, 1)
        assert (outcome.status, outcome.is_final) == ("ready", False)

    async def test_a_failure_is_tried_again(self, backend: Backend, taking: Taking) -> None:
        await stored(backend, 1, retry_limit=1)
        stream = await taking.open()
        (delivery,) = await taking.more(stream)
        failed = await backend.fail(
            delivery.id, LeasedFailure("boom", "ValueError", retry_at=0, lease=delivery.lease)
        )
        assert (failed.status, failed.attempts) == ("scheduled", 1)
        (again,) = await taking.more(stream)
        assert (again.id, again.attempts) == (delivery.id, 1)
        (error,) = await backend.errors(delivery.id)
        assert (error.attempt, error.message, error.error_type) == (1, "boom", "ValueError")

    async def test_the_last_failure_is_the_outcome(self, backend: Backend, taking: Taking) -> None:
        await stored(backend, 1, retry_limit=0)
        (delivery,) = await taking.jobs()
        await backend.fail(delivery.id, LeasedFailure("boom", lease=delivery.lease))
        outcome = await backend.result(delivery.id, 0)
        assert outcome.status == "dead"
        assert outcome.error is not None
        assert getattr(outcome.error, "message", None) == "boom"

    async def test_a_delivery_that_has_ended_settles_nothing(
        self, backend: Backend, taking: Taking
    ) -> None:
        await stored(backend, 1)
        stream = await taking.open()
        (first,) = await taking.more(stream)
        await stream.close()
        (second,) = await taking.jobs()
        assert await backend.succeed([success(first)]) == RefusedItems(stale=[first.id])
        assert await backend.succeed([success(second)]) == RefusedItems()
        refused = await backend.succeed([success(second)])
        assert second.id in (*refused.not_found, *refused.stale)
        with pytest.raises(StaleLease):
            await backend.fail(second.id, LeasedFailure("late", lease=second.lease))
