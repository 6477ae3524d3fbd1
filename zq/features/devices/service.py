"""The verbs about devices: their reports, looks at them, and forgetting them."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Self

import msgspec

from zq.engine.inbox import Inbox
from zq.features.devices.engine import DeviceBell, WaitingFetch
from zq.features.devices.model import (
    MAKER,
    SHARED_BATCH,
    AppendHistory,
    DeviceKeyNeeded,
    DeviceNotFound,
    DeviceOrder,
    DeviceOutOfReach,
    DeviceReport,
    DeviceSums,
    DeviceTaken,
    FetchBody,
    ForgetDevice,
    HistoryNotKept,
    NobodyThere,
    OpenLane,
    ReportDevice,
    SeenDevice,
    check_device,
    check_fleet,
    device_of,
    for_device,
    is_of,
    lane_to,
    plain_queue,
    queue_to,
    speaks_for,
)
from zq.features.devices.store import DeviceReads
from zq.features.forward.commands import Arrive, BeginEpoch, NumberLane, ReadLane
from zq.features.forward.model import LaneBatch, LaneNotFound, LaneRefusal, new_epoch
from zq.features.history.engine import HistoryReaders
from zq.features.history.model import ForwardedAttempt, StoredAttempt
from zq.features.producers.model import EpochEnd, ProducerMark, check_mark
from zq.features.producers.store import ProducerReads
from zq.model.clock import Clock
from zq.model.errors import InvalidRequest
from zq.model.filters import Filter
from zq.model.ids import SUFFIX_LENGTH, key_of_any
from zq.model.job import JobRecord, NewJob
from zq.model.keys import Key
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.service.jobs import Jobs
from zq.service.services import Services
from zq.service.work import Work
from zq.store.api import Store


class Devices:
    """Devices by name. They belong to no queue: callers who look need a reach of all queues."""

    @classmethod
    def of(cls, services: Services) -> Self:
        engine = services.engine
        devices = cls(services.store, engine.inbox, services.clock, engine[DeviceBell])
        engine.when_let_go.append(devices.close)
        return devices

    def __init__(self, store: Store, inbox: Inbox, clock: Clock, bell: DeviceBell) -> None:
        self._reads = store.reads.of(DeviceReads)
        self._inbox = inbox
        self._clock = clock
        self._waiting = bell.listens
        self.has_stopped = False
        """True once nobody may wait any more."""

    async def report(self, name: str, report: DeviceReport, key: Key | None) -> None:
        """Store what a device says of itself.

        Raises `InvalidRequest`, `DeviceOutOfReach`, `DeviceTaken` or `TooManyDevices`.
        """
        check_device(name)
        if not speaks_for(key, name):
            raise DeviceOutOfReach(name)
        await self._inbox.ask(ReportDevice(name, report))
        former = self._waiting.get(name)
        if former is not None and former.instance != report.instance:
            former.awake.set()

    def close(self) -> None:
        """Let nobody wait any more."""
        self.has_stopped = True
        for each in self._waiting.values():
            each.awake.set()

    @contextmanager
    def waiting(self, name: str, instance: str, wait_ms: int) -> Iterator[WaitingFetch]:
        """An instance of a device waits within the context for what is for it.

        A device that asks again has lost the connection before, so the former wait ends.
        """
        if (former := self._waiting.get(name)) is not None:
            former.follow()
        self._waiting[name] = mine = WaitingFetch(instance)
        # No clock is asked whether the time is over: a timer may be early, and the wall may step.
        timer = self._clock.call_later(wait_ms / 1000, mine.end)
        if not wait_ms:
            mine.end()
        try:
            yield mine
        finally:
            timer.cancel()
            if self._waiting.get(name) is mine:
                del self._waiting[name]

    async def batch(self) -> int | None:
        """The most jobs of a request, for each device; None if there is but one.

        A large request keeps those of other devices waiting.
        """
        several = await self._reads.some_devices(self._clock.now_ms(), 2) > 1
        return SHARED_BATCH if several else None

    async def page(self, order: DeviceOrder, skip: int, limit: int) -> list[SeenDevice]:
        return await self._reads.devices(order, skip, limit)

    async def sums(self) -> DeviceSums:
        """All devices together."""
        return await self._reads.device_sums(self._clock.now_ms())

    async def get(self, name: str) -> SeenDevice:
        """One device. Raises `InvalidRequest` or `DeviceNotFound`."""
        check_device(name)
        found = await self._reads.device(name)
        if found is None:
            raise DeviceNotFound(name)
        return found

    async def forget(self, name: str) -> None:
        """Delete a device: another one may have its name. Raises `DeviceNotFound`."""
        check_device(name)
        await self._inbox.ask(ForgetDevice(name))


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
        await self._require(name, asked)
        with self._devices.waiting(name, asked.instance, asked.wait_ms) as waiting:
            while True:
                waiting.awake.clear()
                found = await self._fetch_once(name, asked)
                if found.jobs or self._devices.has_stopped or waiting.is_over:
                    return found
                await waiting.awake.wait()
                await self._require(name, asked)
                if waiting.is_followed:
                    # The device may know newer numbers: by its old ones, jobs would get others.
                    return Fetched(asked.epoch, asked.last + 1)

    async def _require(self, name: str, asked: FetchBody) -> None:
        """Raise `DeviceNotFound` or `DeviceTaken` if another instance is the device by now."""
        device = (await self._devices.get(name)).device
        if asked.instance != device.instance:
            raise DeviceTaken(name, device.since, device.reported_at)

    async def _fetch_once(self, name: str, asked: FetchBody) -> Fetched:
        """The next jobs, or none."""
        try:
            batch, epoch = await self._next(lane_to(name), asked)
        except LaneNotFound:
            if not await self._inbox.ask(OpenLane(name)):
                return Fetched(None, 1)
            batch, epoch = await self._next(lane_to(name), asked)
        numbered = _within(batch.jobs)
        jobs = await self._work.large_payloads(numbered)
        if len(jobs) < len(numbered):
            # One is gone. Those behind it would be taken for others, so all get new numbers.
            return await self._fetch_once(name, asked)
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


MOST_LACKING = 100
"""The most devices that an answer names."""

UNFINISHED = (Status.SCHEDULED, Status.READY, Status.IN_FLIGHT)
MISSED = (Status.DEAD, Status.CANCELLED, Status.EXPIRED)


class SentToFleet(NamedTuple):
    """The group of a job that was sent to devices, and how many of these have one of the group."""

    group: str
    devices: int


class Lacking(NamedTuple):
    """How many devices lack the job of a group, some of them, and some that never get it."""

    waiting: int
    devices: list[str]
    missed: list[str]


class Fleets:
    """Sends jobs to fleets. A device that reports for the first time later gets none of them."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services.store, services.jobs, services.clock)

    def __init__(self, store: Store, jobs: Jobs, clock: Clock) -> None:
        self._reads = store.reads
        self._devices = store.reads.of(DeviceReads)
        self._jobs = jobs
        self._clock = clock

    async def send(self, to: str, job: NewJob, reach: Reach) -> SentToFleet:
        """Store a job for each known device of a name or a pattern, all or none.

        A device keeps the job that has the unique key, and counts if that is of the same group.
        Raises `InvalidRequest`, `QueueOutOfReach`, `NobodyThere`, and the errors of an enqueue.
        """
        beginning = check_fleet(to)
        if beginning:
            # Whoever may not send there does not learn which devices there are.
            reach.require([msgspec.structs.replace(job, queue=queue_to(beginning, job.queue))])
        names = await self._devices.devices_named(beginning, is_fleet=to.endswith("*"))
        if not names:
            raise NobodyThere(to)
        group = job.group or f"fleet-{secrets.token_hex(8)}"
        job = msgspec.structs.replace(job, group=group)
        accepted = await self._jobs.enqueue([for_device(job, name) for name in names], reach)
        owners = accepted.reply.owners.values()
        return SentToFleet(group, len(names) - sum(owner.group != group for owner in owners))

    async def lacking(self, group: str, reach: Reach) -> Lacking:
        """The devices that have not said yet that they have the job of a group."""
        wanted = Filter(groups=(group,), statuses=UNFINISHED, reach=reach)
        now = self._clock.now_ms()
        jobs = await self._reads.jobs_page(wanted, 0, False, MOST_LACKING, now)
        waiting = len(jobs)
        if waiting == MOST_LACKING:
            waiting = await self._reads.count(wanted, now)
        ended = msgspec.structs.replace(wanted, statuses=MISSED)
        missed = await self._reads.jobs_page(ended, 0, False, MOST_LACKING, now)
        return Lacking(waiting, _devices_of(jobs), _devices_of(missed))


def _devices_of(jobs: Sequence[JobRecord]) -> list[str]:
    return sorted({name for job in jobs if (name := device_of(job.queue)) is not None})


def producer_of(device: str) -> str:
    """The name under which the numbers of a device's history are remembered."""
    return f"{device}/history"


class DeviceHistory:
    """Takes the history of devices."""

    @classmethod
    def of(cls, services: Services) -> Self:
        engine = services.engine
        reads = services.store.reads.of(ProducerReads)
        return cls(services[Devices], engine.inbox, reads, engine[HistoryReaders])

    def __init__(
        self, devices: Devices, inbox: Inbox, reads: ProducerReads, readers: HistoryReaders
    ) -> None:
        self._devices = devices
        self._inbox = inbox
        self._reads = reads
        self._readers = readers

    async def end(self, name: str, instance: str, key: Key | None) -> EpochEnd | None:
        """The last record that is here of a device: its epoch and its number.

        Raises `DeviceOutOfReach`, `DeviceNotFound`, `DeviceTaken` or `HistoryNotKept`.
        """
        await self._require(name, instance, key)
        known = await self._reads.producer(producer_of(name))
        return None if known is None else EpochEnd(known.epoch, known.last)

    async def append(
        self,
        name: str,
        instance: str,
        mark: ProducerMark,
        records: Sequence[ForwardedAttempt],
        key: Key | None,
        reach: Reach,
    ) -> EpochEnd:
        """Store the records that are new, of queues within reach. Return the last number that is
        here now.

        Raises the errors of `end`, `InvalidRequest`, `ProducerFenced` or `TooManyProducers`.
        """
        await self._require(name, instance, key)
        rows = [_stored(record) for record in records]
        found = await self._inbox.ask(AppendHistory(name, check_mark(mark), rows, reach))
        return EpochEnd(found.epoch, found.last)

    async def _require(self, name: str, instance: str, key: Key | None) -> None:
        device = (await self._devices.get(name)).device
        if not speaks_for(key, name):
            raise DeviceOutOfReach(name)
        if instance != device.instance:
            raise DeviceTaken(name, device.since, device.reported_at)
        if not self._readers.recording:
            raise HistoryNotKept


def _stored(record: ForwardedAttempt) -> StoredAttempt:
    key = key_of_any(record.job_id)
    if key is None:
        raise InvalidRequest(f"job_id: {record.job_id[:40]!r} is no id of a job")
    return StoredAttempt(
        key,
        record.queue,
        record.type,
        record.attempt,
        record.ready_at,
        record.dequeued_at,
        record.worker,
        record.payload_bytes,
        record.priority,
        record.outcome,
        record.error_type,
        record.error_message,
        record.finished_at,
        record.job_id[-SUFFIX_LENGTH:],
    )
