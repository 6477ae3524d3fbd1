"""Jobs for many devices: one for each, under the name of a group, which tells who lacks it."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple, Self

import msgspec

from zq.features.devices.errors import NobodyThere
from zq.features.devices.model_address import check_fleet, device_of, queue_to
from zq.features.devices.store import DeviceReads
from zq.model.clock import Clock
from zq.model.filters import Filter
from zq.model.job import NO_OPTIONS, JobRecord, NewJob
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.service.jobs import Jobs
from zq.service.services import Services
from zq.store.api import Store

MOST_LACKING = 100
"""The most devices that an answer names."""

UNFINISHED = (Status.SCHEDULED, Status.READY, Status.IN_FLIGHT)
MISSED = (Status.DEAD, Status.CANCELLED, Status.EXPIRED)


class SentToFleet(NamedTuple):
    """The group of a job that was sent to devices, and how many these are."""

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
        """The fleets of a server."""
        return cls(services.store, services.jobs, services.clock)

    def __init__(self, store: Store, jobs: Jobs, clock: Clock) -> None:
        self._reads = store.reads
        self._devices = store.reads.of(DeviceReads)
        self._jobs = jobs
        self._clock = clock

    async def send(self, to: str, job: NewJob, reach: Reach) -> SentToFleet:
        """Store a job for each known device of a name or a pattern, all or none.

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
        jobs = [
            msgspec.structs.replace(
                job,
                queue=queue_to(name, job.queue),
                group=group,
                options=msgspec.structs.replace(job.options or NO_OPTIONS, to=name),
            )
            for name in names
        ]
        await self._jobs.enqueue(jobs, reach)
        return SentToFleet(group, len(jobs))

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
