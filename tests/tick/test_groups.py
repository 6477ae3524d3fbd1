"""FIFO groups: whatever ends, moves or brings jobs, each group has one open job: its head."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store.rig import NOW, Rig, Ticker, make_ticker, new_job

from zq.model.commands import (
    AnyCommand,
    CancelJob,
    CancelSlice,
    Claim,
    Clear,
    DeleteJob,
    DeleteSlice,
    Entered,
    Fail,
    PatchJob,
    PatchSlice,
    Return,
    Succeed,
)
from zq.model.errors import Unprocessable
from zq.model.filters import EVERYTHING
from zq.model.job import JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.settling import Failure

SCHEDULED, READY, IN_FLIGHT = Status.SCHEDULED, Status.READY, Status.IN_FLIGHT
QUEUES = ("q", "r")
GROUPS = ("g", "h", None)
KEPT = JobSettings(retention=Retention(completed_ms=1_000, dead_ms=1_000))


@contextmanager
def fresh_ticker() -> Iterator[Ticker]:
    with TemporaryDirectory(prefix="zq-groups-") as folder:
        ticker = make_ticker(Path(folder) / "zq.db")
        yield ticker
        ticker.close()


def check_groups(ticker: Ticker) -> None:
    """Each group with unfinished jobs has one that is not held: that in flight, or the lowest."""
    groups: defaultdict[tuple[str, str], list[tuple[int, Status, int]]] = defaultdict(list)
    for queue, group, *job in ticker.connection.execute(
        "SELECT queue, group_id, id, status, held FROM jobs WHERE status <= 2 ORDER BY id"
    ):
        if group is None:
            assert not job[2]
        else:
            groups[queue, group].append(tuple(job))
    for jobs in groups.values():
        running = [key for key, status, _ in jobs if status == IN_FLIGHT]
        assert len(running) <= 1, "two of a group in flight"
        head = running[0] if running else jobs[0][0]
        assert [key for key, _, held in jobs if not held] == [head]
    assert not ticker.value("SELECT count(*) FROM jobs WHERE held > 0 AND status > 2")


class Script:
    """Draws the commands of one tick; those that settle name a job at most once."""

    def __init__(self, ticker: Ticker, data: st.DataObject) -> None:
        self._ticker = ticker
        self._draw = data.draw
        self._jobs = ticker.jobs()
        self._settled: set[int] = set()

    def draw(self) -> list[AnyCommand]:
        paths: list[Callable[[], AnyCommand | None]] = [
            *(self._success, self._death, self._retry, self._return),
            *(self._delete, self._sweep, self._cancel, self._cancel_sweep),
            *(self._move, self._move_sweep, self._reschedule, self._enqueue, self._enqueue),
        ]
        chosen = self._draw(st.lists(st.sampled_from(paths), min_size=1, max_size=4))
        return [command for path in chosen if (command := path()) is not None]

    def _success(self) -> AnyCommand | None:
        key = self._held()
        return None if key is None else Succeed([key])

    def _death(self) -> AnyCommand | None:
        key = self._held()
        return None if key is None else Fail(key, Failure("m", kill=True))

    def _retry(self) -> AnyCommand | None:
        key = self._held()
        return None if key is None else Fail(key, Failure("m", retry_at=self._time()))

    def _return(self) -> AnyCommand | None:
        key = self._held()
        return None if key is None else Return(1, [key])

    def _delete(self) -> AnyCommand:
        return DeleteJob(self._key())

    def _sweep(self) -> AnyCommand:
        return DeleteSlice(self._some(), EVERYTHING)

    def _cancel(self) -> AnyCommand:
        return CancelJob(key=self._key(), force=self._draw(st.booleans()))

    def _cancel_sweep(self) -> AnyCommand:
        return CancelSlice(self._some(), EVERYTHING, self._draw(st.booleans()))

    def _move(self) -> AnyCommand:
        return PatchJob(self._key(), "ID", Patch(queue=self._draw(st.sampled_from(QUEUES))))

    def _move_sweep(self) -> AnyCommand:
        queue = self._draw(st.sampled_from(QUEUES))
        return PatchSlice(self._some(), EVERYTHING, Patch(queue=queue))

    def _reschedule(self) -> AnyCommand:
        return PatchJob(self._key(), "ID", Patch(ready_at=self._time()))

    def _enqueue(self) -> AnyCommand:
        job = st.builds(
            new_job,
            queue=st.sampled_from(QUEUES),
            group=st.sampled_from(GROUPS),
            options=st.sampled_from([None, KEPT]),
            priority=st.sampled_from([1, 2]),
            ready_at=st.sampled_from([None, self._ticker.now + 500]),
        )
        return self._ticker.enqueue(self._draw(st.lists(job, min_size=1, max_size=4)))

    def _time(self) -> int:
        return self._ticker.now + self._draw(st.sampled_from([-1, 500, 5_000]))

    def _held(self) -> int | None:
        held = [
            key
            for key, job in self._jobs.items()
            if job.status is IN_FLIGHT and key not in self._settled
        ]
        if not held:
            return None
        key = self._draw(st.sampled_from(held))
        self._settled.add(key)
        return key

    def _key(self) -> int:
        return self._draw(st.sampled_from([*self._jobs, 7]))

    def _some(self) -> list[int]:
        return self._draw(st.lists(st.sampled_from([*self._jobs, 7]), max_size=4, unique=True))


def drain(ticker: Ticker) -> None:
    """A worker that takes and acknowledges gets every job there is, each group in order."""
    ticker.now += 3_600_000
    # A job that was in flight at the start comes first, wherever it stands.
    began = {key for key, job in ticker.jobs().items() if job.status is IN_FLIGHT}
    ticker.run(Return(1, list(began)), promote=True)
    check_groups(ticker)
    left = {key: job for key, job in ticker.jobs().items() if job.status <= IN_FLIGHT}
    last: dict[tuple[str, str], int] = {}
    while taken := ticker.take(2):
        for key in taken:
            job = left.pop(key)
            if job.group is not None:
                assert last.get((job.queue, job.group), 0) < key
                last[job.queue, job.group] = key
        ticker.run(Succeed(taken))
    assert not left, "a group is shut for ever"


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_interleaving_leaves_a_group_without_its_head_or_with_two(data: st.DataObject) -> None:
    with fresh_ticker() as ticker:
        for _ in range(data.draw(st.integers(1, 12))):
            ticker.now += data.draw(st.sampled_from([0, 600, 6_000]))
            promote, purge = data.draw(st.booleans()), data.draw(st.booleans())
            ticker.run(*Script(ticker, data).draw(), promote=promote, purge=purge)
            check_groups(ticker)
            ticker.take(data.draw(st.integers(0, 3)))
            check_groups(ticker)
        drain(ticker)


def test_only_the_head_of_a_group_is_claimed(ticker: Ticker) -> None:
    first, second = ticker.store(2, group="g")
    (other,) = ticker.store(1, group="h")
    (alone,) = ticker.store(1)
    assert ticker.take(10) == [first, other, alone]
    assert ticker.take(10) == []
    ticker.run(Succeed([first]))
    assert ticker.take(10) == [second]


def test_the_next_of_a_group_is_taken_in_the_tick_in_which_its_head_ends(ticker: Ticker) -> None:
    first, second = ticker.store(2, group="g")
    ticker.take(1)
    result = ticker.run(Succeed([first]), claims=[Claim(None, [(1, 1)])])
    assert [job.key for job in result.claimed[0]] == [second]


def test_priorities_do_not_change_the_order_within_a_group(ticker: Ticker) -> None:
    (late,) = ticker.store(1, group="g", priority=9)
    (urgent,) = ticker.store(1, group="g", priority=1)
    assert ticker.take(10) == [late]
    ticker.run(Succeed([late]))
    assert ticker.take(10) == [urgent]


@pytest.mark.parametrize("retry_at", [NOW - 1, NOW + 500])
def test_a_head_that_is_to_be_tried_again_keeps_its_group_shut(
    ticker: Ticker, retry_at: int
) -> None:
    first, second = ticker.store(2, group="g")
    ticker.take(1)
    ticker.run(Fail(first, Failure("m", retry_at=retry_at)))
    assert ticker.take(10) == []
    ticker.now += 500
    ticker.run(promote=True)
    assert ticker.take(10) == [first]
    ticker.run(Fail(first, Failure("m", kill=True)))
    assert ticker.take(10) == [second]


def test_a_scheduled_head_keeps_its_group_shut(ticker: Ticker) -> None:
    (first,) = ticker.store(1, group="g", ready_at=NOW + 500)
    ticker.store(1, group="g")
    assert ticker.take(10) == []
    ticker.now += 500
    ticker.run(promote=True)
    assert ticker.take(10) == [first]


def test_one_in_flight_goes_before_a_lower_one_that_was_moved_in(ticker: Ticker) -> None:
    (older,) = ticker.store(1, queue="r", group="g")
    running, waiting = ticker.store(2, queue="q", group="g")
    assert ticker.take(1, queues=("q",)) == [running]
    ticker.run(PatchJob(older, "ID", Patch(queue="q")))
    assert ticker.take(10) == []
    # Given back it is one of those that wait, and not the oldest of them.
    ticker.run(Return(1, [running]))
    assert ticker.take(10) == [older]
    ticker.run(Succeed([older]))
    assert ticker.take(10) == [running]
    ticker.run(Succeed([running]))
    assert ticker.take(10) == [waiting]


def test_a_job_that_was_moved_in_below_shuts_the_head_that_was_open(ticker: Ticker) -> None:
    (older,) = ticker.store(1, queue="r", group="g")
    (younger,) = ticker.store(1, queue="q", group="g")
    ticker.run(PatchJob(older, "ID", Patch(queue="q")))
    assert ticker.take(10) == [older]
    ticker.run(Succeed([older]))
    assert ticker.take(10) == [younger]


def test_a_job_of_a_group_is_not_moved_while_it_is_in_flight(ticker: Ticker) -> None:
    (key,) = ticker.store(1, group="g")
    (free,) = ticker.store(1)
    ticker.take(2)
    away = Patch(queue="r")
    (refusal,) = ticker.run(PatchJob(key, "ID", away)).replies
    assert isinstance(refusal, Unprocessable)
    assert ticker.run(PatchSlice([key, free], EVERYTHING, away)).replies == [Entered(1)]
    assert {job.key: job.queue for job in ticker.jobs().values()} == {key: "q", free: "r"}
    # All else about it may change, and so may its queue once it waits.
    (changed,) = ticker.run(PatchJob(key, "ID", Patch(queue="q", priority=1))).replies
    assert not isinstance(changed, Unprocessable)
    ticker.run(Return(1, [key]))
    ticker.run(PatchJob(key, "ID", away))
    assert ticker.jobs()[key].queue == "r"


def test_a_group_wakes_its_queue_when_its_head_changes(ticker: Ticker) -> None:
    first, _ = ticker.store(2, group="g")
    ticker.take(1)
    assert ticker.run(Succeed([first])).woken == {"q"}


def test_an_emptied_store_has_no_groups(ticker: Ticker) -> None:
    ticker.store(2, group="g")
    ticker.take(1)
    ticker.run(Clear())
    (key,) = ticker.store(1, group="g")
    assert ticker.take(10) == [key]


async def test_the_oldest_of_a_group_is_its_head_after_a_restart(rig: Rig) -> None:
    (older,) = await rig.keep(1, queue="r", group="g", ready_at=NOW + 500)
    (running,) = await rig.keep(1, queue="q", group="g")
    assert [job.key for job in await rig.take(1)] == [running]
    await rig.run(PatchJob(older, "ID", Patch(queue="q", ready_at=None)))
    await rig.reopen()
    assert [job.key for job in await rig.take(10)] == [older]


async def test_a_group_survives_a_restart(rig: Rig) -> None:
    first, second = await rig.keep(2, group="g")
    await rig.take(1)
    await rig.reopen()
    assert [job.key for job in await rig.take(10)] == [first]
    await rig.run(Succeed([first]))
    assert [job.key for job in await rig.take(10)] == [second]
