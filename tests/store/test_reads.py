"""The answers of any store to reads: pages of large payloads, odd text, each kind of read."""

from functools import partial

import msgspec
import pytest

from zq.model.commands import DeleteSlice, EnqueueResult, Fail, SetQueue, Succeed
from zq.model.errors import CursorAhead
from zq.model.filters import EVERYTHING, Filter, counted, is_counted
from zq.model.lifecycle import Status
from zq.model.log import HISTORY_LOG
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.model.settling import Ending, Failure
from zq.model.unique import Scope
from zq.store.snapshot import PAGE_BYTES

from .rig import FOREVER, NOW, Rig, new_job

LARGE = f'"{"x" * 10_000}"'
ELSEWHERE = Reach(("elsewhere",))


async def test_a_job_is_read_by_its_key_and_by_the_key_that_it_owns(rig: Rig) -> None:
    (key,) = await rig.keep(1, payload=LARGE, unique_key="k", unique_while=Scope.EXISTS)
    reads = rig.store.reads

    job, row = await reads.job(key, EVERYWHERE, NOW), await reads.row(key, EVERYWHERE, NOW)

    assert job is not None and row is not None
    assert (job.payload, row.payload) == (LARGE, None)
    assert await reads.owner(",k", EVERYWHERE, NOW) == job
    assert await reads.payloads([key, key + 1]) == {key: LARGE}
    assert await reads.ending(key, EVERYWHERE, NOW) == Ending(Status.READY)
    for read in (reads.job, reads.row, reads.ending):
        assert await read(key, ELSEWHERE, NOW) is None
        assert await read(key + 1, EVERYWHERE, NOW) is None
    assert await reads.owner(",k", ELSEWHERE, NOW) is None


async def test_a_failure_is_read_with_its_job_and_by_pages(rig: Rig) -> None:
    (key,) = await rig.keep(1)
    for attempt in (1, 2, 3):
        await rig.take(1)
        await rig.run(Fail(key, Failure(f"m{attempt}", kill=attempt == 3, retry_at=None)))
        rig.now += 60_000 * (attempt < 3)
        await rig.run(promote=True)
    reads = rig.store.reads

    records, more = await reads.errors_page(key, 0, False, 2)
    assert ([record.message for record in records], more) == (["m1", "m2"], True)
    records, more = await reads.errors_page(key, FOREVER, True, 3)
    assert ([record.attempt for record in records], more) == ([3, 2, 1], False)
    ending = await reads.ending(key, EVERYWHERE, rig.now)
    assert ending is not None
    assert ending.status is Status.DEAD
    assert ending.error == records[0]


async def test_counts_and_sweeps_see_what_they_should(rig: Rig) -> None:
    keys = await rig.keep(3, queue="a") + await rig.keep(2, queue="b")
    reads = rig.store.reads
    filter = Filter(queues=("a",), statuses=(Status.READY,))

    counts = await reads.counts(NOW)

    assert is_counted(filter)
    assert counted(counts, filter) == await reads.count(filter, NOW) == 3
    assert await reads.key_range() == (keys[0], keys[-1])
    assert await reads.keys(filter, keys[0], keys[-1], 10) == keys[1:3]
    assert [job.key for job in await reads.swept_jobs(EVERYTHING, keys[1], 2)] == keys[2:4]
    oldest = await reads.oldest_ready(["a", "b", "c"])
    assert oldest == dict.fromkeys("ab", NOW)


async def test_settings_are_read_as_they_were_set(rig: Rig) -> None:
    await rig.run(SetQueue("a", QueueSettings(rate=3)))
    assert await rig.store.reads.settings("a") == QueueSettings(rate=3)
    assert await rig.store.reads.settings("b") == NO_SETTINGS


async def test_the_history_is_read_by_numbers(recording: Rig) -> None:
    keys = await recording.keep(4)
    await recording.take(4)
    await recording.run(Succeed(keys))

    def of(first: int, _shared: str, records: list[msgspec.Raw]) -> list[int]:
        return [first + index for index in range(len(records))]

    page = partial(recording.store.reads.log_page, HISTORY_LOG)
    assert await page(None, FOREVER, 10, of) == (1, [1, 2, 3, 4])
    assert await page(1, 3, 10, of) == (1, [2, 3])
    assert await page(1, FOREVER, 1, of) == (1, [2])
    with pytest.raises(CursorAhead):
        await page(5, FOREVER, 1, of)
    assert await recording.store.reads.log_end(HISTORY_LOG) == 4


async def test_a_page_ends_before_its_payloads_grow_too_large(rig: Rig) -> None:
    large = f'"{"x" * (PAGE_BYTES // 3)}"'
    keys = await rig.keep(4, payload=large)
    page = await rig.store.reads.jobs_page(EVERYTHING, -1, False, 50, NOW)
    assert [job.key for job in page] == keys[:2]
    rest = await rig.store.reads.jobs_page(EVERYTHING, page[-1].key, False, 50, NOW)
    assert [job.key for job in rest] == keys[2:]
    assert all(job.payload == large for job in page + rest)


async def test_a_payload_larger_than_a_page_comes_alone(rig: Rig) -> None:
    keys = await rig.keep(2, payload=f'"{"x" * PAGE_BYTES}"')
    for after, expected in ((-1, keys[0]), (keys[0], keys[1])):
        page = await rig.store.reads.jobs_page(EVERYTHING, after, False, 50, NOW)
        assert [job.key for job in page] == [expected]


# Text that SQLite's JSON functions could trip over.

ODD_TEXTS = ["a\0b", "\0", "\x01\x1f\x7f", "\u2028\ufffe\uffff", "😀\\\"'\n", "ÿ" * 3, ":q0 %s ?"]


@pytest.mark.parametrize("text", ODD_TEXTS)
async def test_a_failures_texts_are_kept_as_they_are(rig: Rig, text: str) -> None:
    (key,) = await rig.keep(1)
    await rig.take(1)
    await rig.run(Fail(key, Failure(message=text, error_type=text, backtrace=text)))
    (record,) = await rig.errors(key)
    assert (record.message, record.error_type, record.backtrace) == (text, text, text)


@pytest.mark.parametrize("text", ODD_TEXTS)
async def test_a_unique_key_may_hold_any_text(rig: Rig, text: str) -> None:
    unique = {"unique_key": text, "unique_while": Scope.EXISTS}
    (owner,) = await rig.keep(1, **unique)
    result = await rig.run(rig.enqueue([new_job(**unique)]))
    (reply,) = result.replies
    assert isinstance(reply, EnqueueResult)
    assert [job.key for job in reply.owners.values()] == [owner]
    cut = text.split("\0")[0]
    if cut != text:
        result = await rig.run(rig.enqueue([new_job(**unique | {"unique_key": cut})]))
        assert result.replies == [EnqueueResult({})]


async def test_a_filter_means_exactly_the_names_it_holds(rig: Rig) -> None:
    keys = await rig.keep(1, queue="q", type="t")
    for wrong in (Filter(queues=("q\0z",)), Filter(types=("t\0",)), Filter(queues=("Q",))):
        assert await rig.store.reads.count(wrong, NOW) == 0
        assert await rig.store.reads.jobs_page(wrong, -1, False, 9, NOW) == []
        assert (await rig.run(DeleteSlice(keys, wrong))).replies == [0]
