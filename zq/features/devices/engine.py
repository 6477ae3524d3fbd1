"""Wakes devices that wait: somebody may have stored a job for one of them."""

import asyncio
from typing import NamedTuple, Self

from zq.engine.after_commit import Awaited, Committed
from zq.engine.engine import Engine
from zq.features.devices.model import device_of


class WaitingFetch(NamedTuple):
    """A fetch that waits: the instance of its device, and what is set once it should look again."""

    instance: str
    awake: asyncio.Event


class DeviceBell:
    """The fetches that wait, by the names of devices. A tick costs as many looks as it has queues
    with jobs for devices, however many devices wait."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        bell = cls()
        engine.when_heard.append(bell.ring)
        return bell

    def __init__(self) -> None:
        self.listens: dict[str, WaitingFetch] = {}

    def ring(self) -> None:
        """Have all look, since other servers may have stored jobs for them."""
        for found in self.listens.values():
            found.awake.set()

    def learn(self, committed: Committed) -> None:
        for queue in committed.result.counted | committed.result.woken:
            name = device_of(queue)
            if name is not None and (found := self.listens.get(name)) is not None:
                found.awake.set()


SUBSCRIBERS = ((Awaited.BY_REQUESTS, DeviceBell),)
