"""Tests of reading and changing jobs and queues, of events, and of closing a backend."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from zq.client.backend import Backend, run
from zq.client.errors import BackendError, JobNotFound, JobState
from zq.client.values import (
    EventQuery,
    JobQuery,
    LeasedFailure,
)
from zq.model.filters import ValueRange
from zq.model.settings import QueueSettings, SettingsPatch
from zq.testing.contract.tools import (
    EMPTY_S,
    Contract,
    Taking,
    heard,
    stored,
    submission,
    success,
)

NO_SUCH_USER = "1-84728da2dc97c460"
"""The signature of an error E with the message "no user 12", or with another number."""


class Managing(Contract):
    """Reading, changing and listening; calls without a loop, and after closing."""

    # One job

    async def test_what_does_not_exist_is_not_found(self, backend: Backend) -> None:
        (job,) = await stored(backend, 1)
        await backend.cancel(job.id)
        unknown = "0" * 26
        asked: Sequence[Any] = (
            *(backend.get(unknown), backend.by_key("k"), backend.cancel(unknown)),
            *(backend.result(unknown, 0), backend.retain(unknown, completed_ms=1)),
            backend.why(unknown),
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

    async def test_a_job_says_why_it_does_not_run(self, backend: Backend) -> None:
        _, waiting = await stored(backend, "first", "second")
        await backend.change_settings("q", SettingsPatch(paused=True))
        reasons = await backend.why(waiting.id)
        assert [reason.code for reason in reasons] == ["paused", "no_worker", "ahead"]
        assert (reasons[0].queue, reasons[2].count) == ("q", 1)
        await backend.change_settings("q", SettingsPatch(paused=None))

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
        newest = await backend.jobs(limit=2, newest=True)
        older = await backend.jobs(after=newest.after, newest=True)
        downwards = [job.id for job in (*newest.jobs, *older.jobs)]
        assert downwards == [job.id for job in reversed(jobs)]
        ids = (jobs[1].id, jobs[3].id)
        assert [job.id for job in (await backend.jobs(JobQuery(ids=ids))).jobs] == list(ids)
        assert await backend.count(JobQuery(filter=". >= 3", queues=("q",))) == 2
        among = JobQuery(priority=ValueRange(jobs[0].priority), attempts=ValueRange(None, 0))
        assert await backend.count(among) == len(jobs)
        assert await backend.count(JobQuery(ready_at=ValueRange(None, 1))) == 0
        assert await backend.count(JobQuery(groups=("none",))) == 0

    async def test_the_dead_are_brought_back_one_or_all_or_some(
        self, backend: Backend, taking: Taking
    ) -> None:
        jobs = await stored(backend, *range(4), retry_limit=0)
        with pytest.raises(JobState) as refused:
            await backend.requeue(jobs[0].id)
        assert refused.value.state == "ready"
        for delivery in await taking.jobs(4):
            await backend.fail(delivery.id, LeasedFailure("boom", lease=delivery.lease))
        assert await backend.count(JobQuery(statuses=("dead",))) == 4
        revived = await backend.requeue(jobs[0].id)
        assert (revived.id, revived.status, revived.attempts) == (jobs[0].id, "ready", 0)
        assert await backend.requeue_many(JobQuery(queues=("other",))) == 0
        assert await backend.requeue_many(JobQuery(queues=("q",)), 1) == 1
        assert await backend.requeue_many(JobQuery(queues=("q",))) == 2
        assert await backend.requeue_many() == 0
        assert await backend.count(JobQuery(statuses=("dead",))) == 0
        with pytest.raises(JobNotFound):
            await backend.requeue("0" * 26)
        with pytest.raises(BackendError):
            await backend.requeue_many(JobQuery(statuses=("completed",)))

    async def test_jobs_are_found_by_the_cause_of_their_latest_failure(
        self, backend: Backend, taking: Taking
    ) -> None:
        jobs = await stored(backend, 1, 2, retry_limit=0)
        for delivery, message in zip(await taking.jobs(2), ("no user 7", "boom"), strict=True):
            await backend.fail(delivery.id, LeasedFailure(message, "E", lease=delivery.lease))
        cause = JobQuery(errors=(NO_SUCH_USER,))
        assert [job.id for job in (await backend.jobs(cause)).jobs] == [jobs[0].id]
        assert await backend.requeue_many(cause) == 1
        assert await backend.count(JobQuery(statuses=("dead",))) == 1

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

    # Events

    async def test_what_happens_is_told_in_its_order(
        self, backend: Backend, taking: Taking
    ) -> None:
        stream = await backend.events(EventQuery(queues=("q",)))
        job, other = await stored(backend, 1, 2)
        (delivery,) = await taking.jobs()
        await backend.progress(job.id, {"done": 1}, delivery.lease)
        await backend.succeed([success(delivery)])
        told = await heard(stream, 5)
        of_job = [event for event in told if event.id == job.id]
        assert [event.type for event in of_job] == [
            *("enqueued", "started", "progress", "completed")
        ]
        assert (of_job[2].data, of_job[2].queue, of_job[2].attempt) == ({"done": 1}, "q", 1)
        assert next(event for event in told if event.id == other.id).type == "enqueued"
        await stream.close()
        # A client that comes back with a cursor gets the events after it.
        begun = EventQuery(jobs=(job.id,), types=("started", "completed"))
        again = await backend.events(begun, of_job[1].event_id)
        assert await heard(again, 1) == [of_job[3]]
        await again.close()
        lost = await backend.events(EventQuery(), "nowhere-1")
        assert (await heard(lost, 1))[0].type == "gap"
        await lost.close()

    # The blocking twin

    async def test_it_needs_no_event_loop(self, backend: Backend) -> None:
        # In a thread of its own, since a server may run in this thread's event loop.
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
