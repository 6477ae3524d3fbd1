"""A look at many queues, beside the ticks."""

from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

from zq.model.job import NewJob
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.service import Services, overview, queues

T = TypeVar("T")


class Turns(Generic[T]):
    """Awaits something, and counts how often it lets others run without waiting itself."""

    def __init__(self, work: Awaitable[T]) -> None:
        self.work = work
        self.count = 0

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self.work.__await__()
        while True:
            try:
                waits_for = next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            self.count += waits_for is None
            yield waits_for


async def test_ticks_get_their_turn_while_many_queues_are_looked_at(services: Services) -> None:
    jobs = [NewJob(f"q{number}", "t", "{}", 2) for number in range(1000)]
    await services.jobs.enqueue(jobs, EVERYWHERE)

    look = Turns(services.lookout.look())
    found = await look

    assert len(found.queues) == len(found.findings) == 1000
    assert found.totals == {Status.READY: 1000}
    assert look.count == 1000 // overview.AT_A_TIME + 1000 // queues.AT_A_TIME
