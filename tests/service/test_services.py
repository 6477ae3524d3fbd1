"""Services of rooms: each is made once, from what it asks for, and ends before what it needs."""

from typing import Self

import pytest

from zq.engine.delivery.streams import Streams
from zq.engine.subscribers.waiters import Waiters
from zq.features.archive.service_running import Cleaning
from zq.features.budgets.service import Budgets
from zq.features.history.engine import HistoryReaders
from zq.features.sweeps.service_running import Sweeps
from zq.features.trends.engine import OpenTrends, TrendMeter
from zq.features.trends.service import Trends
from zq.instance import Instance
from zq.operators.admin.engine import Viewers
from zq.rooms import parts
from zq.service.services import RunningService, Services


class Needed(RunningService):
    """A service that notes when it ends."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls()

    def __init__(self) -> None:
        self.ended: list[type] = []

    async def stop(self) -> None:
        self.ended.append(type(self))


class Needing(RunningService):
    """A service that needs the other one until its end."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services[Needed])

    def __init__(self, needed: Needed) -> None:
        self.needed = needed

    async def stop(self) -> None:
        self.needed.ended.append(type(self))


def test_a_service_is_made_once_for_all_who_ask(services: Services) -> None:
    assert services[Budgets] is services[Budgets]
    assert services[Budgets]._sweeps is services[Sweeps]


def test_a_part_of_the_engine_is_made_once_for_all_who_ask(instance: Instance) -> None:
    assert instance.services[Trends]._meter is instance.engine[TrendMeter]


def test_whom_requests_wait_for_learns_of_a_tick_first_and_then_workers(instance: Instance) -> None:
    order = [type(each) for each in instance.engine._loop._subscribers]

    workers = order.index(Streams)
    readers = parts("engine", "TopicReaders", type)
    assert {Waiters, HistoryReaders, *readers} <= set(order[:workers])
    assert {OpenTrends, Viewers} < set(order[workers:])


@pytest.mark.parametrize("order", [(Needed, Needing), (Needing, Needed)])
async def test_a_service_ends_before_those_that_it_needs(
    services: Services, order: tuple[type, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = {"service_running": [order]}
    monkeypatch.setattr("zq.service.services.parts", lambda layer, *_: rooms.get(layer, []))
    other = Services(services.engine, services.filter, services.queues.inherited)

    await other.start()
    await other.stop()

    assert other[Needed].ended == [Needing, Needed]


def test_what_runs_is_made_at_the_start(services: Services) -> None:
    assert Cleaning in services._made and Budgets not in services._made


async def test_a_start_that_fails_leaves_nothing_open(
    instance: Instance, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> None:
        raise OSError("a fault")

    await instance.stop()
    again = Instance(instance._settings, clock=instance.clock)
    with monkeypatch.context() as patch:
        patch.setattr(Cleaning, "start", fail)
        with pytest.raises(OSError, match="a fault"):
            await again.start()

    await instance.start()
