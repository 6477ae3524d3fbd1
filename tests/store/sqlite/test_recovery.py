"""A store that opens again: jobs are returned, locks restored, and ids still rise."""

import sqlite3
from itertools import pairwise

import pytest

from zq.model.commands import Claim, Clear, DeleteJob, Due, EnqueueResult, Fail, Settled, Succeed
from zq.model.filters import EVERYTHING
from zq.model.job import JobRecord, JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.settling import Failure
from zq.model.unique import Scope

from ..rig import NOW, Rig, new_job

HOUR_MS = 3_600_000
READY, IN_FLIGHT = Status.READY, Status.IN_FLIGHT
LARGE_PAYLOAD = f'"{"x" * 10_000}"'


async def all_jobs(rig: Rig) -> dict[int, JobRecord]:
    listed = await rig.store.reads.jobs_page(EVERYTHING, -1, False, 1000, NOW)
    return {job.key: job for job in listed}


async def owner_of(rig: Rig, key: str) -> int | None:
    """The job that owns a unique key."""

    def look(connection: sqlite3.Connection) -> int | None:
        row = connection.execute(
            "SELECT id FROM jobs WHERE owns_key = 1 AND unique_key = ?", [key]
        ).fetchone()
        return row[0] if row else None

    return await rig.look(look)


async def test_jobs_in_flight_are_ready_again_at_no_cost_to_them(rig: Rig) -> None:
    keys = await rig.keep(5)
    await rig.take(3)
    before = await all_jobs(rig)

    await rig.reopen()

    assert rig.store.at_start.returned == 3
    after = await all_jobs(rig)
    for key in keys[:3]:
        job, old = after[key], before[key]
        assert (job.status, job.holder) == (READY, None)
        assert (job.attempts, job.deliveries, job.dequeued_at) == (0, 1, NOW)
        assert (job.queue, job.priority, job.ready_at) == (old.queue, old.priority, old.ready_at)
    assert [after[key] for key in keys[3:]] == [before[key] for key in keys[3:]]
    counts = await rig.store.reads.counts(NOW)
    assert +counts == {("q", READY): 5}


async def test_recovered_jobs_go_back_to_their_places(rig: Rig) -> None:
    keys = await rig.keep(2)
    await rig.take(2)
    await rig.reopen()
    await rig.keep(1)
    await rig.keep(1, priority=1)
    assert [job.key for job in await rig.take(3)][1:] == keys


async def test_an_acknowledgement_of_a_delivery_before_the_restart_finds_nothing(rig: Rig) -> None:
    (key,) = await rig.keep(1)
    await rig.take(1)
    await rig.reopen()
    assert (await rig.run(Succeed([key]))).replies == [Settled(frozenset({key}))]
    assert (await rig.statuses())[key] is READY


async def test_everything_else_is_as_it_was(rig: Rig) -> None:
    kept = JobSettings(retention=Retention(completed_ms=HOUR_MS))
    await rig.keep(1, options=kept, payload=LARGE_PAYLOAD)
    await rig.keep(1, payload='"dies"')
    await rig.keep(1, payload='"fails"')
    await rig.keep(1, ready_at=NOW + HOUR_MS, unique_key="k", unique_while=Scope.EXISTS)
    done, dead, failed = (job.key for job in await rig.take(3))
    await rig.run(
        Succeed([done]),
        Fail(dead, Failure("last", kill=True)),
        Fail(failed, Failure("first", "E", "at line 1")),
    )
    before = await all_jobs(rig)
    errors = [await rig.errors(k) for k in (dead, failed)]
    assert len(before) == 4
    assert all(len(records) == 1 for records in errors)

    await rig.reopen()

    assert rig.store.at_start.returned == 0
    assert await all_jobs(rig) == before
    again = [await rig.errors(k) for k in (dead, failed)]
    assert again == errors


async def test_the_next_deadlines_are_known_at_once(rig: Rig) -> None:
    await rig.keep(1, ready_at=NOW + 7)
    await rig.keep(1)
    (job,) = await rig.take(1)
    await rig.run(Fail(job.key, Failure("m", kill=True)))
    await rig.reopen()
    assert rig.store.at_start.deadlines[Due.PROMOTION] == NOW + 7
    assert rig.store.at_start.deadlines[Due.PURGE] == NOW + 60_000


async def test_an_empty_store_waits_for_nothing(rig: Rig) -> None:
    await rig.reopen()
    assert rig.store.at_start.deadlines == {}
    assert rig.store.at_start.returned == 0


async def test_a_queued_owner_that_is_given_back_owns_its_key_again(rig: Rig) -> None:
    unique = {"unique_key": "k", "unique_while": Scope.QUEUED}
    (key,) = await rig.keep(1, **unique)
    await rig.take(1)
    assert await owner_of(rig, "k") is None
    await rig.reopen()
    assert await owner_of(rig, "k") == key
    result = await rig.run(rig.enqueue([new_job(**unique)]))
    (reply,) = result.replies
    assert isinstance(reply, EnqueueResult)
    assert [job.key for job in reply.owners.values()] == [key]


@pytest.mark.parametrize("scope", [Scope.ACTIVE, Scope.EXISTS])
async def test_an_owner_whose_scope_covers_being_in_flight_keeps_its_key(
    rig: Rig, scope: Scope
) -> None:
    (key,) = await rig.keep(1, unique_key="k", unique_while=scope)
    await rig.take(1)
    await rig.reopen()
    assert await owner_of(rig, "k") == key


async def test_a_lock_is_not_restored_over_a_new_owner(rig: Rig) -> None:
    unique = {"unique_key": "k", "unique_while": Scope.QUEUED}
    await rig.keep(1, **unique)
    await rig.take(1)
    (new,) = await rig.keep(1, **unique)
    await rig.reopen()
    assert await owner_of(rig, "k") == new
    assert len(await all_jobs(rig)) == 2


async def test_of_two_former_owners_that_are_given_back_one_owns_the_key(rig: Rig) -> None:
    unique = {"unique_key": "k", "unique_while": Scope.QUEUED}
    keys = []
    for _ in range(2):
        keys += await rig.keep(1, **unique)
        await rig.take(1)
    await rig.reopen()
    assert rig.store.at_start.returned == 2
    assert await owner_of(rig, "k") in keys


async def test_ids_rise_over_a_backward_clock_and_a_restart(rig: Rig) -> None:
    keys: list[int] = []
    for step in (0, -HOUR_MS, -HOUR_MS, 10 * HOUR_MS, -1, -20 * HOUR_MS):
        rig.now += step
        keys += await rig.keep(3)
        await rig.reopen()
    assert all(before < after for before, after in pairwise(keys))


async def test_the_id_of_a_deleted_job_never_comes_back(rig: Rig) -> None:
    (low,) = await rig.keep(1)
    (highest,) = await rig.keep(1)
    await rig.run(DeleteJob(highest))
    rig.now -= HOUR_MS
    await rig.reopen()
    (key,) = await rig.keep(1)
    assert key > highest > low


async def test_ids_rise_after_everything_was_deleted(rig: Rig) -> None:
    (highest,) = (await rig.keep(500))[-1:]
    await rig.run(Clear())
    rig.now -= HOUR_MS
    await rig.reopen()
    assert (await rig.keep(1))[0] > highest


async def test_the_id_of_a_duplicate_that_was_not_stored_never_comes_back(rig: Rig) -> None:
    unique = new_job(unique_key="k", unique_while=Scope.EXISTS)
    enqueue = rig.enqueue([unique, unique])
    await rig.run(enqueue, claims=[Claim(None, [(1, 1)])])
    await rig.run(Succeed([enqueue.keys[0]]))
    rig.now -= HOUR_MS
    await rig.reopen()
    assert (await rig.keep(1))[0] > enqueue.keys[-1]


async def test_a_restart_runs_ahead_of_the_clock_by_no_more_than_a_few_seconds(rig: Rig) -> None:
    for _ in range(3):
        await rig.keep(1)
        await rig.reopen()
    (key,) = await rig.keep(1)
    (fresh,) = Rig(rig.directory).enqueue([new_job()]).keys
    assert 0 < key - fresh < 5_000 << 20


async def test_checkpoints_and_tidying_lose_nothing(rig: Rig) -> None:
    keys = await rig.keep(2_000, payload=LARGE_PAYLOAD)
    assert rig.store.wants_checkpoint
    await rig.store.checkpoint()
    assert not rig.store.wants_checkpoint
    await rig.run(*(DeleteJob(key) for key in keys[:-1]))
    while await rig.store.tidy():
        pass
    assert list(await rig.statuses()) == keys[-1:]
    await rig.reopen()
    assert list(await rig.statuses()) == keys[-1:]


async def test_free_space_goes_back_to_the_file_system_in_slices(rig: Rig) -> None:
    await rig.keep(5_000, payload=LARGE_PAYLOAD)
    await rig.store.checkpoint()
    file = rig.directory / "zq.db"
    full = file.stat().st_size
    await rig.run(Clear())
    slices = 1
    while await rig.store.tidy():
        slices += 1
    # A slice is 1 MiB, and not a page.
    assert 1 < slices <= full / 2**20 + 1
    await rig.store.checkpoint()
    assert file.stat().st_size < full / 2
