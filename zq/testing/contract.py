"""What every backend promises, as a suite that any of them can be put through.

    class TestMine(BackendContract):
        @pytest.fixture
        async def backend(self) -> AsyncIterator[Backend]:
            backend = MyBackend()
            yield backend
            await backend.close()

It needs an empty queue, an event loop for coroutine tests (pytest-aiohttp or pytest-asyncio in
automatic mode), and real time: nothing in it takes longer than a moment.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from zq.client.backend import Backend, TakeStream
from zq.client.errors import BackendError, JobNotFound, JobState, StaleLease
from zq.client.sync import run
from zq.client.values import (
    MISSING,
    Delivery,
    JobQuery,
    LeasedFailure,
    Refused,
    StoredJob,
    Submission,
    Success,
    Wish,
)
from zq.model.job import Retention
from zq.model.settings import QueueSettings, SettingsPatch

PATIENCE_S = 30.0
"""For what has to happen; a backend that keeps its promises needs a fraction of it."""

EMPTY_S = 0.1
"""For what must not happen."""

KEPT = Retention(completed_ms=60_000, dead_ms=60_000)


def submission(payload: Any = None, **fields: Any) -> Submission:
    """A job of the queue `q` that is kept when it is finished."""
    return Submission("q", "work", payload, **{"retention": KEPT, **fields})


async def stored(backend: Backend, *payloads: Any, **fields: Any) -> list[StoredJob]:
    """Jobs with these payloads, enqueued together."""
    return await backend.enqueue([submission(payload, **fields) for payload in payloads])


def success(delivery: Delivery, result: Any = MISSING) -> Success:
    """The acknowledgement of a delivery."""
    return Success(delivery.id, delivery.lease, result)


class Taking:
    """Streams of the queue `q`, which end with the test."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._streams: list[TakeStream] = []

    async def open(self, prefetch: int = 1) -> TakeStream:
        """One more stream."""
        stream = await self._backend.take(Wish(("q",), prefetch))
        self._streams.append(stream)
        return stream

    async def jobs(self, count: int = 1) -> list[Delivery]:
        """So many jobs, from one more stream."""
        return await self.more(await self.open(count), count)

    async def more(self, stream: TakeStream, count: int = 1) -> list[Delivery]:
        """So many jobs of a stream."""
        found: list[Delivery] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < count:
                arrived = await stream.deliveries()
                found += [each for each in arrived if isinstance(each, Delivery)]
        return found

    async def close(self) -> None:
        for stream in self._streams:
            await stream.close()


class BackendContract:
    """The suite. What subclasses have to provide is the fixture `backend`."""

    @pytest.fixture
    def backend(self) -> Any:
        raise NotImplementedError("give the subclass a fixture `backend`")

    @pytest.fixture
    async def taking(self, backend: Backend) -> AsyncIterator[Taking]:
        taking = Taking(backend)
        yield taking
        await taking.close()

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

    # Outcomes

    @pytest.mark.parametrize("result", [None, 42, "text", {"a": [1]}, "x" * 10_000])
    async def test_a_result_comes_back(self, backend: Backend, taking: Taking, result: Any) -> None:
        await stored(backend, 1)
        (delivery,) = await taking.jobs()
        assert await backend.succeed([success(delivery, result)]) == Refused()
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
        assert await backend.succeed([success(first)]) == Refused(stale=[first.id])
        assert await backend.succeed([success(second)]) == Refused()
        refused = await backend.succeed([success(second)])
        assert second.id in (*refused.not_found, *refused.stale)
        with pytest.raises(StaleLease):
            await backend.fail(second.id, LeasedFailure("late", lease=second.lease))

    # One job

    async def test_what_does_not_exist_is_not_found(self, backend: Backend) -> None:
        (job,) = await stored(backend, 1)
        await backend.cancel(job.id)
        unknown = "0" * 26
        asked: Sequence[Any] = (
            *(backend.get(unknown), backend.by_key("k"), backend.cancel(unknown)),
            *(backend.result(unknown, 0), backend.retain(unknown, completed_ms=1)),
        )
        for question in asked:
            with pytest.raises(JobNotFound):
                await question

    async def test_who_waits_can_be_cancelled_and_who_runs_only_by_force(
        self, backend: Backend, taking: Taking
    ) -> None:
        waiting, running = await stored(backend, "waiting", "running", priority=5)
        (urgent,) = await stored(backend, "urgent", priority=1)
        assert (await backend.cancel(waiting.id)).status == "cancelled"
        assert [delivery.id for delivery in await taking.jobs(2)] == [urgent.id, running.id]
        with pytest.raises(JobState) as refused:
            await backend.cancel(running.id)
        assert refused.value.state == "in_flight"
        assert (await backend.cancel(running.id, force=True)).status == "cancelled"
        assert (await backend.result(running.id, 0)).status == "cancelled"

    async def test_a_key_is_free_again_after_cancelling(self, backend: Backend) -> None:
        wanted = {"unique_key": "k", "unique_while": "exists"}
        (first,) = await stored(backend, 1, **wanted)
        assert (await backend.cancel_by_key("k")).id == first.id
        (second,) = await stored(backend, 2, **wanted)
        assert not second.duplicate

    async def test_retention_begins_anew(self, backend: Backend, taking: Taking) -> None:
        (job,) = await stored(backend, 1)
        with pytest.raises(JobState):
            await backend.retain(job.id, completed_ms=60_000)
        (delivery,) = await taking.jobs()
        await backend.succeed([success(delivery, 42)])
        kept = await backend.retain(job.id, completed_ms=3_600_000)
        assert kept.purge_at is not None
        assert kept.completed_at is not None
        assert kept.purge_at >= kept.completed_at + 3_600_000
        await backend.retain(job.id, completed_ms=0)
        with pytest.raises(JobNotFound):
            await backend.result(job.id, 0)

    # Many

    async def test_a_listing_goes_on_where_it_stopped(self, backend: Backend) -> None:
        jobs = await stored(backend, *range(5))
        page = await backend.jobs(limit=2)
        assert page.after is not None
        rest = await backend.jobs(after=page.after)
        assert [job.id for job in (*page.jobs, *rest.jobs)] == [job.id for job in jobs]
        assert rest.after is None
        ids = (jobs[1].id, jobs[3].id)
        assert [job.id for job in (await backend.jobs(JobQuery(ids=ids))).jobs] == list(ids)
        assert await backend.count(JobQuery(filter=". >= 3", queues=("q",))) == 2

    async def test_the_dead_are_brought_back_one_or_all_or_some(
        self, backend: Backend, taking: Taking
    ) -> None:
        jobs = await stored(backend, *range(4), retry_limit=0)
        with pytest.raises(JobState) as refused:
            await backend.retry(jobs[0].id)
        assert refused.value.state == "ready"
        for delivery in await taking.jobs(4):
            await backend.fail(delivery.id, LeasedFailure("boom", lease=delivery.lease))
        assert await backend.count(JobQuery(statuses=("dead",))) == 4
        revived = await backend.retry(jobs[0].id)
        assert (revived.id, revived.status, revived.attempts) == (jobs[0].id, "ready", 0)
        assert await backend.redrive(JobQuery(queues=("other",))) == 0
        assert await backend.redrive(JobQuery(queues=("q",)), 1) == 1
        assert await backend.redrive(JobQuery(queues=("q",))) == 2
        assert await backend.redrive() == 0
        assert await backend.count(JobQuery(statuses=("dead",))) == 0
        with pytest.raises(JobNotFound):
            await backend.retry("0" * 26)
        with pytest.raises(BackendError):
            await backend.redrive(JobQuery(statuses=("completed",)))

    # Queues

    async def test_queues_are_counted(self, backend: Backend, taking: Taking) -> None:
        assert await backend.stats() == []
        await stored(backend, *range(3))
        delivery, _ = await taking.jobs(2)
        (stats,) = await backend.stats()
        held = {status: n for status, n in stats.counts.items() if n}
        assert held == {"ready": 1, "in_flight": 2}
        assert (stats.queue, stats.deliveries.total, stats.completions.total) == ("q", 2, 0)
        assert stats.oldest_ready_age_ms is not None
        await backend.succeed([success(delivery)])
        (stats,) = await backend.stats()
        assert (stats.counts["completed"], stats.completions.total) == (1, 1)

    async def test_a_paused_queue_delivers_when_it_goes_on(
        self, backend: Backend, taking: Taking
    ) -> None:
        assert await backend.settings("q") == QueueSettings()
        assert await backend.change_settings("q", SettingsPatch(paused=True)) == QueueSettings(
            paused=True
        )
        await stored(backend, 1)
        stream = await taking.open()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(EMPTY_S):
                await stream.deliveries()
        await backend.change_settings("q", SettingsPatch(paused=None))
        assert await backend.settings("q") == QueueSettings()
        (delivery,) = await taking.more(stream)
        assert delivery.payload == 1
        with pytest.raises(BackendError):
            await backend.change_settings("a,b", SettingsPatch(paused=True))

    # The blocking twin

    async def test_it_needs_no_event_loop(self, backend: Backend) -> None:
        # In a thread of its own, for a server may live in this one's event loop.
        await asyncio.to_thread(_use_without_loop, backend.blocking)

    # The end

    async def test_it_can_be_used_again_after_closing(self, backend: Backend) -> None:
        await backend.close()
        await backend.close()
        (job,) = await stored(backend, 1)
        assert (await backend.get(job.id)).status == "ready"


def _use_without_loop(blocking: Backend) -> None:
    assert blocking.blocking is blocking
    (job,) = run(blocking.enqueue([submission({"n": 1})]))
    assert run(blocking.get(job.id)).payload == {"n": 1}
    assert run(blocking.result(job.id, 1)).status == "ready"
    assert run(blocking.cancel(job.id)).status == "cancelled"
    with pytest.raises(JobNotFound):
        run(blocking.get("0" * 26))
