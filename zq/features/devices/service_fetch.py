"""Devices fetch the jobs that are for them, by numbers: the way back of a lane."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Self

import msgspec

from zq.engine.inbox import Inbox
from zq.features.devices.commands import OpenLane
from zq.features.devices.errors import DeviceKeyNeeded, DeviceTaken
from zq.features.devices.model import FetchBody, check_device, is_of
from zq.features.devices.model_address import MAKER, lane_to, plain_queue
from zq.features.devices.service import Devices
from zq.features.forward.commands import Arrive, BeginEpoch, NumberLane, ReadLane
from zq.features.forward.errors import LaneNotFound
from zq.features.forward.model import LaneBatch, LaneRefusal, new_epoch
from zq.model.clock import Clock
from zq.model.job import JobRecord
from zq.model.keys import Key
from zq.service.services import Services
from zq.service.work import Work

MOST_BYTES = 4 * 2**20
"""An answer has at most so many bytes of payloads, and always one job."""


class Fetched(NamedTuple):
    """Jobs for a device with their payloads, and the number of the first one."""

    epoch: str | None
    """None if there were never any."""
    first: int
    jobs: Sequence[JobRecord] = ()
    steady: int = 0
    """The steady time with which their times are compared, in milliseconds."""


class Fetches:
    """Answers devices that ask for their jobs."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The fetches of a server."""
        return cls(services[Devices], services.work, services.engine.inbox, services.clock)

    def __init__(self, devices: Devices, work: Work, inbox: Inbox, clock: Clock) -> None:
        self._devices = devices
        self._work = work
        self._inbox = inbox
        self._clock = clock

    async def fetch(self, name: str, asked: FetchBody, key: Key | None) -> Fetched:
        """The next jobs for a device. What it has stored is complete here from then on.

        Waits for jobs. Raises `InvalidRequest`, `DeviceKeyNeeded`, `DeviceNotFound`, or the errors
        of `Devices.report`.
        """
        if asked.report is not None:
            await self._devices.report(name, asked.report, key)
        check_device(name)
        if not is_of(key, name):
            raise DeviceKeyNeeded(name)
        awake, is_over = asyncio.Event(), asyncio.Event()

        def end() -> None:
            is_over.set()
            awake.set()

        # No clock is asked whether the time is over: a timer may be early, and the wall may step.
        timer = self._clock.call_later(asked.wait_ms / 1000, end)
        if not asked.wait_ms:
            end()
        try:
            with self._devices.waiting(name, asked.instance, awake):
                while True:
                    awake.clear()
                    found = await self._look(name, asked)
                    if found.jobs or self._devices.has_stopped or is_over.is_set():
                        return found
                    await awake.wait()
        finally:
            timer.cancel()

    async def _look(self, name: str, asked: FetchBody) -> Fetched:
        """The next jobs, or none. Raises `DeviceNotFound` or `DeviceTaken`."""
        device = (await self._devices.get(name)).device
        if asked.instance != device.instance:
            raise DeviceTaken(name, device.since, device.reported_at)
        try:
            batch, epoch = await self._next(lane_to(name), asked)
        except LaneNotFound:
            if not await self._inbox.ask(OpenLane(name)):
                return Fetched(None, 1)
            batch, epoch = await self._next(lane_to(name), asked)
        jobs = await self._work.large_payloads(_within(batch.jobs))
        for job in jobs:
            job.queue = plain_queue(job.queue, name)
            if job.options is not None:
                job.options = msgspec.structs.replace(job.options, to=None)
        return Fetched(epoch, batch.first, jobs, batch.steady)

    async def _next(self, lane: str, asked: FetchBody) -> tuple[LaneBatch, str]:
        """The batch that the device lacks next, and its epoch. Raises `LaneNotFound`.

        The two agree if the device has the epoch, and lacks just what is under way. Otherwise what
        is left gets new numbers: the device or this server was restored from a backup, or somebody
        has taken a job out of the lane.
        """
        if asked.epoch is not None:
            await self._inbox.ask(Arrive(lane, asked.epoch, asked.last))
        found = await self._inbox.ask(ReadLane(lane))
        epoch, batches = found.lane.epoch, found.batches
        first = batches[0].first if batches else found.lane.next
        knows = asked.epoch == epoch
        expected = asked.last + 1 if knows else 1
        refusal = _refusal(asked) if knows and first == expected and batches else None
        if first != expected or refusal or not all(batch.is_whole for batch in batches):
            to = new_epoch(MAKER)
            await self._inbox.ask(BeginEpoch(lane, epoch, first - 1, to, refusal))
            found = await self._inbox.ask(ReadLane(lane))
            epoch, batches = found.lane.epoch, found.batches
        if not batches:
            return await self._inbox.ask(NumberLane(lane, asked.limit)), epoch
        return batches[0].part(0, asked.limit), epoch


def _refusal(asked: FetchBody) -> LaneRefusal | None:
    """The job that the device cannot store, if there is one."""
    if asked.refused is None:
        return None
    return LaneRefusal(asked.last + 1, asked.refused.message, asked.refused.code)


def _within(jobs: Sequence[JobRecord]) -> Sequence[JobRecord]:
    """The first jobs that an answer has room for."""
    size = 0
    for at, job in enumerate(jobs):
        size += job.payload_size
        if at and size > MOST_BYTES:
            return jobs[:at]
    return jobs
