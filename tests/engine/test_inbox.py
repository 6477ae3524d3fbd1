"""What a tick takes from the inbox: bounded by rows and bytes, and one settlement a job."""

from zq.engine.inbox import Inbox
from zq.model.commands import Command, Extend, Fail, Release, Return, Succeed
from zq.model.settling import Failure

MIB = 1024 * 1024


async def test_large_results_fill_a_tick_as_many_rows_do() -> None:
    inbox = Inbox(1_000_000, lambda: None)
    for key in range(10):
        inbox.submit(Succeed([key], size=8 * MIB))
    taken = []
    while inbox:
        taken.append(len(inbox.take(20_000)))
    assert taken == [3, 3, 3, 1]


async def test_a_result_larger_than_a_tick_gets_one_of_its_own() -> None:
    inbox = Inbox(1_000_000, lambda: None)
    inbox.submit(Succeed([1], size=64 * MIB))
    inbox.submit(Succeed([2]))
    assert [len(inbox.take(20_000)) for _ in range(2)] == [1, 1]


async def test_a_job_has_one_settlement_a_tick_whatever_kind_it_is() -> None:
    inbox = Inbox(1_000_000, lambda: None)
    commands: list[Command] = [
        *(Succeed([1]), Extend([1], {}, 5), Release([1], {}), Fail(1, Failure("m"))),
        Return(0, [1], leases={1: 1}),
    ]
    for command in commands:
        inbox.submit(command)
    taken = []
    while inbox:
        taken += [[request.command for request in inbox.take(20_000)]]
    assert taken == [[command] for command in commands]
    assert inbox.waiting == (0, 0)
