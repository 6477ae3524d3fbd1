"""How this device makes itself known to its hubs.

Each start of a server is an *instance* with a name of its own. It tells a hub which instance came
before it, so the hub knows a device that was started again from another one of its name. What a hub
may have heard of is stored before it is told: it does not matter when the process ends.
"""

import asyncio
import contextlib
import math
import random
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import Self

import msgspec

from zq import __version__
from zq.client.errors import BackendError
from zq.engine.inbox import Inbox
from zq.features.devices.client import ServerDevices
from zq.features.devices.model import (
    BEHIND_MS,
    MAX_LANES,
    MAX_NAME,
    MAX_QUEUES,
    DeviceReport,
    LaneReport,
)
from zq.features.forward.model import LaneRule, epoch_of
from zq.features.forward.service import Lanes
from zq.model.clock import Clock
from zq.model.commands import WriteNote
from zq.service.services import Services
from zq.store.api import Store

MOST_TOLD = 16
"""How many earlier instances are remembered that a hub may have heard of."""


BOOT_S = 120.0
"""A server that starts so soon after its machine may be one of many that have got power again."""

FIRST_S = 30.0
"""The devices of such a fleet connect within this time, one after the other."""


def machine_up_s() -> float:
    """The seconds since the machine has started, as far as it says so."""
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return math.inf if boot is None else time.clock_gettime(boot)


def first_pause_s(up_s: float, drawn: float) -> float:
    """The seconds until a device connects that starts so long after its machine.

    Many devices may have started together, so each draws its part, from 0 to 1.
    """
    return drawn * FIRST_S if up_s < BOOT_S else 0.0


class Presence:
    """This device: its name, its instance, and what it reports."""

    @classmethod
    def of(cls, services: Services) -> Self:
        device, store = services.settings.device, services.store
        presence = cls(device, store, services.clock, services.engine.inbox, services[Lanes])
        presence.put_off(first_pause_s(machine_up_s(), random.random()))
        return presence

    def __init__(
        self, device: str | None, store: Store, clock: Clock, inbox: Inbox, lanes: Lanes
    ) -> None:
        self.device = device_name(device)
        self._notes = store.reads
        self._clock = clock
        self._inbox = inbox
        self._lanes = lanes
        self._known: set[tuple[str, str]] = set()
        """The addresses of hubs, with the instance that they have accepted."""
        self._telling = asyncio.Lock()
        self._batches: dict[str, int | None] = {}
        self._said: dict[str, object] = {}
        self._epochs = count(1)
        self._connects_at = 0.0
        self._hurried = asyncio.Event()
        self.when_heard: list[Callable[[str], object]] = []
        """Called with the address of a hub that has answered a report."""

    @property
    def instance(self) -> str:
        """Names this start of the server, or of its carrying lanes for others that share its
        store."""
        return self._lanes.instance

    def new_epoch(self) -> str:
        """Another epoch of this instance, for a lane."""
        return epoch_of(self.instance, next(self._epochs))

    def put_off(self, pause_s: float) -> None:
        """Let this device connect in some seconds."""
        self._connects_at = asyncio.get_running_loop().time() + pause_s

    async def may_connect(self) -> None:
        """Wait until this device may connect to its hubs."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._connects_at):
                await self._hurried.wait()

    def hurry(self) -> None:
        """Let this device connect now."""
        self._hurried.set()

    async def tell(self, devices: ServerDevices, url: str) -> None:
        """Report to the hub at an address. Raises `BackendError`: `device_taken` if the hub knows
        another device of this name that is alive."""
        async with self._telling:
            note, known = f"instances at {url}", (url, self.instance)
            told = await self._notes.noted(note, list[str]) or []
            if self.instance not in told:
                told = [*told[-MOST_TOLD:], self.instance]
                await self._write(note, told)
            # A hub that was restored may know an earlier one again.
            befores: list[str | None] = [*told[-2::-1]]
            await self._introduce(
                devices, url, [None, *befores] if known in self._known else befores
            )
            self._known.add(known)

    async def _introduce(
        self, devices: ServerDevices, url: str, befores: Sequence[str | None]
    ) -> None:
        """Report as the instance that follows one of these."""
        left = list(befores) or [None]
        while left:
            before = left.pop(0)
            try:
                await self._send(devices, url, before)
            except BackendError as error:
                if error.code != "device_taken" or not left:
                    raise
            else:
                return

    async def _send(self, devices: ServerDevices, url: str, before: str | None) -> None:
        report = await self.report(url, before)
        reply = await devices.report(self.device, report)
        self.note(url, report, reply.batch)

    def note(self, url: str, report: DeviceReport | None, batch: int | None) -> None:
        """Remember what a hub has taken and answered."""
        self._batches[url] = batch
        if report is not None:
            self._said[url] = _notable(report)
        for learn in self.when_heard:
            learn(url)

    def batch(self, rule: LaneRule) -> int:
        """The most jobs of a request by a rule."""
        asked = self._batches.get(str(rule.url))
        return rule.batch if asked is None else min(asked, rule.batch)

    async def has_news(self, url: str) -> bool:
        """True if the hub should know now what has changed since the last report."""
        return url in self._said and _notable(await self.report(url)) != self._said[url]

    async def report(self, url: str, before: str | None = None) -> DeviceReport:
        """What waits on the lanes to a hub."""
        now = self._clock.now_ms()
        lanes = [
            LaneReport(
                each.lane.name,
                each.waiting,
                each.bytes,
                each.lag_ms(now),
                each.lane.paused,
                each.progress.error and each.progress.error[:500],
                dict(Counter(each.queues).most_common(MAX_QUEUES)),
            )
            for each in await self._lanes.status()
            if each.lane.rule.url == url
        ]
        return DeviceReport(self.instance, __version__, now, before, lanes=lanes[:MAX_LANES])

    async def _write(self, note: str, instances: list[str]) -> None:
        await self._inbox.ask(WriteNote(note, msgspec.json.encode(instances).decode()))


def _notable(report: DeviceReport) -> object:
    """What a hub hears of soon: which lanes there are, and which are paused, fail or are behind."""
    return {
        (
            lane.name,
            lane.paused,
            lane.error is not None,
            lane.oldest_ms is not None and lane.oldest_ms >= BEHIND_MS,
        )
        for lane in report.lanes
    }


def device_name(said: str | None) -> str:
    """The name of this server at its hubs: as it was said, or the host's, as a producer may have
    it."""
    return re.sub("[^A-Za-z0-9._:@-]+", "-", said or socket.gethostname())[:MAX_NAME] or "device"
