"""The commands that a tick takes from the inbox: limits on rows and bytes, one settlement a job."""

import pytest

from zq.engine.inbox import Inbox
from zq.features.audit.model import RecordActions
from zq.model.commands import AnyCommand, Clear, Enqueue, Extend, Fail, Release, Return, Succeed
from zq.model.errors import InboxFull
from zq.model.job import NewJob
from zq.model.settling import Failure

MIB = 1024 * 1024


async def test_large_results_fill_a_tick_as_many_rows_do() -> None:
    inbox = Inbox(1_000_000)
    for key in range(10):
        inbox.submit(Succeed([key], size=8 * MIB))
    taken = []
    while inbox.commands:
        taken.append(len(inbox.take(20_000, 0)))
    assert taken == [3, 3, 3, 1]


async def test_a_result_larger_than_a_tick_gets_one_of_its_own() -> None:
    inbox = Inbox(1_000_000)
    inbox.submit(Succeed([1], size=64 * MIB))
    inbox.submit(Succeed([2]))
    assert [len(inbox.take(20_000, 0)) for _ in range(2)] == [1, 1]


async def test_a_job_has_one_settlement_a_tick_whatever_kind_it_is() -> None:
    inbox = Inbox(1_000_000)
    commands: list[AnyCommand] = [
        *(Succeed([1]), Extend([1], {}, 5), Release([1], {}), Fail(1, Failure("m"))),
        Return(0, [1], leases={1: 1}),
    ]
    for command in commands:
        inbox.submit(command)
    taken = []
    while inbox.commands:
        taken += [[request.command for request in inbox.take(20_000, 0)]]
    assert taken == [[command] for command in commands]
    assert inbox.waiting == (0, 0)


def enqueue(jobs: int) -> Enqueue:
    new = [NewJob("q", "t", "1", payload_size=1)] * jobs
    return Enqueue(range(jobs), new, now=1, size=jobs)


async def taken_beside(rest: int, bulks: list[int], beside: int = 0) -> list[int]:
    """New jobs in each tick, where so many acknowledgements come for each of them."""
    inbox = Inbox(1_000_000)
    for bulk in bulks:
        inbox.submit(enqueue(bulk))
    ticks = []
    while inbox.waiting_jobs:
        for key in range(rest):
            inbox.submit(Succeed([key]))
        before = inbox.waiting_jobs
        inbox.take(20_000, beside)
        ticks.append(before - inbox.waiting_jobs)
    return ticks


async def test_a_tick_with_an_acknowledgement_puts_bulks_off_but_only_once() -> None:
    assert await taken_beside(0, [1_000, 1_000]) == [2_000]
    assert await taken_beside(1, [1_000, 1_000]) == [0, 2_000]
    # Unless they take no longer than the disk.
    assert await taken_beside(1, [50, 60, 1_000], beside=100) == [50, 1_060]
    # Beside many acknowledgements they weigh little.
    assert await taken_beside(500, [1_000, 1_000]) == [2_000]


@pytest.mark.parametrize(
    ("jobs", "size", "most_rows"), [(300, 1, 250), (9_000, 1_024, 20_000), (10, 900_000, 20_000)]
)
async def test_a_bulk_larger_than_a_tick_waits_for_one_tick_though_each_has_an_acknowledgement(
    jobs: int, size: int, most_rows: int
) -> None:
    inbox = Inbox(1_000_000)
    new = [NewJob("q", "t", "1", payload_size=size)] * jobs
    bulk, small = Enqueue(range(jobs), new, now=1, size=jobs * size), enqueue(1)
    for _ in range(2):
        inbox.submit(bulk)
        inbox.submit(small)
    ticks = []
    for key in range(6):
        inbox.submit(Succeed([key]))
        ticks.append([request.command for request in inbox.take(most_rows, 0)][1:])
    assert ticks == [[], [bulk], [small], [bulk], [small], []]


async def test_acknowledgements_that_fill_each_tick_keep_nothing_else_out_for_good() -> None:
    inbox = Inbox(1_000_000)
    rest: list[AnyCommand] = [Return(0, [1], leases={1: 1}), Clear(), enqueue(300), enqueue(1)]
    for command in rest:
        inbox.submit(command)
    ticks = []
    for tick in range(4):
        inbox.submit(Succeed(range(tick * 250 + 2, tick * 250 + 252)))
        ticks.append([request.command for request in inbox.take(250, 0)][1:])
    assert ticks == [rest[:2], rest[2:3], [], rest[3:]]


async def test_there_is_room_while_the_next_tick_would_take_more() -> None:
    inbox = Inbox(1_000)
    taken: list[bool] = []
    inbox.when_taken = lambda: taken.append(inbox.has_room)
    for _ in range(5):
        assert inbox.has_room
        inbox.submit(enqueue(100))
    assert not inbox.has_room
    inbox.take(200, 0)
    inbox.take(200, 0)
    assert taken == [False, True]
    inbox.submit(enqueue(100))
    assert not inbox.has_room
    inbox.close()
    assert taken == [False, True, True]


async def test_an_inbox_for_one_job_has_room_for_one() -> None:
    inbox = Inbox(1)
    assert inbox.has_room
    inbox.submit(enqueue(1))
    assert not inbox.has_room


async def test_large_payloads_weigh_as_many_rows_do() -> None:
    inbox = Inbox(1_500)
    large = Enqueue([1], [NewJob("q", "t", "1", payload_size=MIB)], now=1, size=MIB)
    for _ in range(2):
        assert inbox.has_room
        inbox.submit(large)
    assert not inbox.has_room
    # One does not fit beside an acknowledgement, two do not fit together.
    inbox.submit(Succeed([9]))
    taken = [[request.command for request in inbox.take(1_500, 0)] for _ in range(3)]
    assert taken == [[Succeed([9])], [large], [large]]


async def test_what_follows_a_change_is_taken_however_many_wait() -> None:
    inbox = Inbox(1)
    inbox.submit(Succeed([1]))
    with pytest.raises(InboxFull):
        inbox.submit(Clear())
    inbox.submit(Return(0, [2]))
    inbox.submit(RecordActions([]))
    assert len(inbox.take(20_000, 0)) == 3
