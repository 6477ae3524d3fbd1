"""Wakes devices that wait: somebody may have stored a job for one of them."""

import asyncio
from typing import Self

from zq.engine.after_commit import Awaited, Committed
from zq.engine.engine import Engine
from zq.features.devices.model import device_of


class WaitingFetch:
    """A fetch that waits for jobs, by an instance of a device."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.awake = asyncio.Event()
        """Set once it should look again."""
        self.is_over = False
        """True if it waits no longer than for one more look."""
        self.is_followed = False
        """True once the device has asked again: what this fetch knows of it is old."""

    def end(self) -> None:
        """Let it look for the last time."""
        self.is_over = True
        self.awake.set()

    def follow(self) -> None:
        """Let it end without another look, since the device has asked again."""
        self.is_followed = True
        self.awake.set()


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
