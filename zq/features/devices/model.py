"""Devices: what a server that forwards its jobs says of itself, and what is wrong with it.

A device reports when it connects, when something changes, and every `every_ms`. Its jobs come by
lanes: each lane is a producer named `DEVICE/LANE` (`zq.features.producers`), so a key that is bound
to `producers=DEVICE/*` reports for this device and no other.

Two devices must not have one name: their numbers would collide. Each start of a device has an
`instance`, a text that it makes up and stores, and it tells that of the start `before`. So a start
is known to follow the one before it, and whoever follows nobody is another device. A copied disk
looks like a start, after which the original is refused: one of the two always learns of it.

A job with `to: DEVICE` waits in a queue of its own, `to/DEVICE/QUEUE`. All queues of a device leave
by one lane, `to:DEVICE` (`zq.features.forward`): no worker here gets their jobs, and the device
fetches them by their numbers. It stores them in the plain queue.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

from zq.features.batches.model_jobs import batch_of
from zq.features.forward.model import LaneRule
from zq.features.history.model import StoredAttempt
from zq.features.producers.model import MAX_SEQ, Producer, ProducerMark
from zq.model.commands import Command, SyncRule
from zq.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unprocessable
from zq.model.job import MAX_TIME, NO_OPTIONS, JobSettings, NewJob
from zq.model.keys import Key
from zq.model.names import check_name
from zq.model.reach import EVERYWHERE, Reach
from zq.model.unique import KeySpace


class DeviceNotFound(NotFound):
    """The server knows no device of this name."""

    code = "device_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"device {name!r} is not known: it has not reported, or was deleted")


class DeviceTaken(Conflict):
    """Another device of this name is alive. Its times `since` and `seen_at` are in milliseconds."""

    code = "device_taken"

    def __init__(self, name: str, since: int, seen_at: int) -> None:
        super().__init__(
            f"another device called {name!r} is alive, or has taken over its name: give one of them"
            f" another --device, or, if the other one is gone, DELETE /devices/{name}"
        )
        self.details = {"since": since, "seen_at": seen_at}


class DeviceOutOfReach(Forbidden):
    """The key is not one of this device."""

    code = "device_out_of_reach"

    def __init__(self, name: str) -> None:
        super().__init__(f"this key does not speak for device {name!r}: give it producers={name}/*")


class TooManyDevices(Unprocessable):
    """There are as many devices as the server remembers. Waiting does not help."""

    code = "too_many_devices"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the server remembers {most} devices already: delete those that are gone with"
            " DELETE /devices/{name}"
        )


class NobodyThere(Unprocessable):
    """A job is for a device that the server does not know."""

    code = "device_unknown"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"to: no device called {name!r} has reported here: GET /devices lists those that have"
        )


class HistoryNotKept(Unprocessable):
    """The server keeps no history, so it takes none of devices."""

    code = "no_history"

    def __init__(self) -> None:
        super().__init__("this server keeps no history: start it with --history 7d")


class DeviceKeyNeeded(Forbidden):
    """Only a key that is bound to a device gets the jobs that are for it."""

    code = "device_key_needed"

    def __init__(self, name: str) -> None:
        super().__init__(f"only a key with producers={name}/* gets the jobs for device {name!r}")


MAX_DEVICES = 10_000
"""The most devices that are remembered. Each is a row of up to a few KB."""

MAX_LANES = 32
MAX_QUEUES = 100
"""The most lanes of a report, and the most queues of a lane."""

USUAL_EVERY_MS = 15 * 60_000
"""How often a device reports if nothing changes."""

SILENT_AFTER = 3
"""A device is silent after so many of its reports are missing."""

GONE_AFTER = 2
"""After so many missing reports, another device may have its name."""

BEHIND_MS = 60 * 60_000
"""A device is behind if its oldest unsent job is this old, in milliseconds."""

CLOCK_MS = 60_000
"""A clock is off if it differs by so much, in milliseconds."""

MOST_FETCHED = 1000
"""The most jobs that a device gets at once."""

MOST_RECORDS = 1000
"""The most records of its history that a device sends at once."""

MOST_HELD_MS = 60 * 60_000
"""For how long a fetch may wait. Each one costs a device as much of its line as a small job."""

SHARED_BATCH = 50
"""The most jobs that a device sends at once to a hub that has others as well."""

MAX_MOMENT = 2**53 - 1
"""The furthest time that a device's clock may show, in milliseconds: every client of JSON can
write it, and its distance from any other clock fits the store."""

MOST_COUNTED = 2**44
"""The most jobs or bytes that a report tells of a lane: a store can hold the sum over all lanes of
all devices."""

MAX_NAME = 56
"""The longest name of a device. Lanes and producers have names with it."""

_NAME = re.compile(rf"[A-Za-z0-9._:@-]{{1,{MAX_NAME}}}")

Count = Annotated[int, Meta(ge=0, le=MOST_COUNTED)]
Span = Annotated[int, Meta(ge=0, le=MAX_TIME)]
Moment = Annotated[int, Meta(ge=-MAX_MOMENT, le=MAX_MOMENT)]
Label = Annotated[str, Meta(min_length=1, max_length=64)]
QueueName = Annotated[str, Meta(min_length=1, max_length=512)]


class LaneReport(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One lane of a device: its unsent jobs and their bytes, and those jobs by queue.

    `oldest_ms` is the age of the oldest one by the device's own clock, `error` the reason of the
    last failure to send.
    """

    name: Annotated[str, Meta(min_length=1, max_length=72)]
    jobs: Count = 0
    bytes: Count = 0
    oldest_ms: Span | None = None
    paused: bool = False
    error: Annotated[str, Meta(max_length=500)] | None = None
    queues: Annotated[dict[QueueName, Count], Meta(max_length=MAX_QUEUES)] = {}


class DeviceReport(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a device says of itself. `now` is its clock, in milliseconds since the epoch."""

    instance: Label
    version: Label
    now: Moment
    before: Label | None = None
    every_ms: Annotated[int, Meta(ge=1_000, le=7 * 86_400_000)] = USUAL_EVERY_MS
    lanes: Annotated[list[LaneReport], Meta(max_length=MAX_LANES)] = []


class FetchRefusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a device cannot store a job, for the person who has sent it."""

    message: Annotated[str, Meta(max_length=2_000)]
    code: Label


class FetchBody(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a device has of the jobs for it: the last number that it has stored, and its epoch.

    `instance` is as in its report. The answer waits for jobs up to `wait_ms`. With `refused`, the
    device cannot store the job of the next number, which is dead from then on. `report` is a report
    that comes with the fetch, so that both cost one request.
    """

    instance: Label
    epoch: Label | None = None
    last: Annotated[int, Meta(ge=0, le=MAX_SEQ)] = 0
    wait_ms: Annotated[int, Meta(ge=0, le=MOST_HELD_MS)] = 0
    limit: Annotated[int, Meta(ge=1, le=MOST_FETCHED)] = MOST_FETCHED
    refused: FetchRefusal | None = None
    report: DeviceReport | None = None


class Device(msgspec.Struct, frozen=True, array_like=True):
    """A device, in the order of the store's columns. `clock_ms` is how far its clock is ahead.

    The sums of its lanes have columns of their own, for lists in their order.
    """

    name: str
    instance: str
    version: str
    every_ms: int
    clock_ms: int
    reported_at: int
    since: int
    """When this start of the device was first heard of."""
    jobs: int
    bytes: int
    oldest_ms: int | None
    lanes: list[LaneReport]


class SeenDevice(NamedTuple):
    """A device, and when it was last heard of: by a report, or by jobs."""

    device: Device
    seen_at: int


class DeviceFault(StrEnum):
    """What can be wrong with a device."""

    SILENT = "silent"
    BEHIND = "behind"
    CLOCK = "clock"


class DeviceOrder(StrEnum):
    """The orders in which devices are listed."""

    NAME = "name"
    SILENCE = "silence"
    """The devices that were heard of longest ago come first."""
    LAG = "lag"
    """The devices whose oldest unsent job is the oldest come first."""


class DeviceSums(NamedTuple):
    """All devices: how many there are, how many have each fault, and what they have not sent."""

    total: int
    silent: int
    behind: int
    clock: int
    jobs: int
    bytes: int


def faults_of(seen: SeenDevice, now: int) -> Iterator[DeviceFault]:
    """The faults of a device at a time in milliseconds."""
    device, seen_at = seen
    if now - seen_at > SILENT_AFTER * device.every_ms:
        yield DeviceFault.SILENT
    if device.oldest_ms is not None and device.oldest_ms >= BEHIND_MS:
        yield DeviceFault.BEHIND
    if abs(device.clock_ms) >= CLOCK_MS:
        yield DeviceFault.CLOCK


def reported(name: str, report: DeviceReport, known: Device | None, now: int) -> Device:
    """A device after its report. Raises `DeviceTaken` if another device has its name."""
    since = now
    if known is not None:
        if report.instance == known.instance:
            since = known.since
        elif (
            report.before != known.instance
            # A report from later than now came while the clock was ahead.
            and abs(now - known.reported_at) <= GONE_AFTER * known.every_ms
        ):
            raise DeviceTaken(name, known.since, known.reported_at)
    return Device(
        name,
        report.instance,
        report.version,
        report.every_ms,
        report.now - now,
        now,
        since,
        sum(lane.jobs for lane in report.lanes),
        sum(lane.bytes for lane in report.lanes),
        max((lane.oldest_ms for lane in report.lanes if lane.oldest_ms is not None), default=None),
        report.lanes,
    )


def check_device(name: str) -> str:
    """Return the name of a device, or raise `InvalidRequest`. With its lane it names a producer."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:80]!r} cannot name a device: use up to {MAX_NAME} letters, digits and . _ : @"
            " -"
        )
    return name


def speaks_for(key: Key | None, name: str) -> bool:
    """True if a key may write as the producers of a device, and so report for it."""
    return key is None or key.produces(f"{name}/")


def is_of(key: Key | None, name: str) -> bool:
    """True if a key is bound to a device by its `producers=`, and so may have what is for it."""
    return key is None or (key.producers is not None and key.produces(f"{name}/"))


def queues_of(lanes: Sequence[LaneReport]) -> dict[str, int]:
    """The unsent jobs of all lanes by queue."""
    found: dict[str, int] = {}
    for lane in lanes:
        for queue, jobs in lane.queues.items():
            found[queue] = found.get(queue, 0) + jobs
    return found


MAKER = _TO = "to"
"""The epochs of these lanes begin with it, too. A device says a whole one, or none."""

_BEGINNING = f"{_TO}/"


def queue_to(device: str, queue: str) -> str:
    """The queue of jobs for a device. Raises `InvalidRequest` for a name that is none.

    What is sent as it was shown has the name of this queue already.
    """
    if device.endswith("*"):
        raise InvalidRequest(
            f"to: a job is for one device, and {device[:80]!r} may mean several: POST /devices/jobs"
            " sends to each of them (zq devices send)"
        )
    own = f"{_BEGINNING}{check_device(device)}/"
    return queue if queue.startswith(own) else check_name("queue", own + queue)


def for_device(job: NewJob, device: str) -> NewJob:
    """The job, in the queue of a device. Raises `InvalidRequest`.

    Its unique key belongs to that queue. A batch spans all queues, so a job for one device might
    fold into that of another.
    """
    if batch_of(job) is not None:
        raise InvalidRequest("to and batch cannot be combined")
    return msgspec.structs.replace(
        job,
        queue=queue_to(device, job.queue),
        options=msgspec.structs.replace(job.options or NO_OPTIONS, to=device),
        unique_in=KeySpace.QUEUE,
    )


def check_fleet(pattern: str) -> str:
    """What the names of devices begin with by a pattern, or a name. Raises `InvalidRequest`."""
    beginning = pattern.removesuffix("*")
    if "*" in beginning:
        raise InvalidRequest(f"to: {pattern[:80]!r} may have a star at its end, and nowhere else")
    return check_device(beginning) if beginning else ""


def device_of(queue: str) -> str | None:
    """The device of a queue with jobs for it; None for other queues."""
    if not queue.startswith(_BEGINNING):
        return None
    name, _, rest = queue.removeprefix(_BEGINNING).partition("/")
    return name if rest else None


def plain_queue(queue: str, device: str) -> str:
    """The queue at the device, of a queue with jobs for it."""
    return queue.removeprefix(f"{_BEGINNING}{device}/")


def lane_to(device: str) -> str:
    """The name of the lane by which a device gets its jobs."""
    return f"{_TO}:{device}"


def rule_to(device: str) -> LaneRule:
    """What that lane carries."""
    return LaneRule((f"{_BEGINNING}{device}/*",))


def addressee(options: JobSettings | None) -> str | None:
    """The device that a job with these options is for."""
    device: str | None = None if options is None else options.to  # type: ignore[attr-defined]
    return device


class ReportDevice(Command[Device], frozen=True):
    """Store what a device says of itself. The errors are `DeviceTaken` and `TooManyDevices`."""

    name: str
    report: DeviceReport


class AppendHistory(Command[Producer], frozen=True):
    """Append attempts of a device to the history here, those that it does not have yet.

    The number of a record is that of the device. The errors are `ProducerFenced` and
    `TooManyProducers`.
    """

    brings_more: ClassVar[bool] = True
    sync: ClassVar[SyncRule] = SyncRule.CHANGES
    items: ClassVar[str | None] = "records"

    device: str
    mark: ProducerMark
    """`seq` is the number of the first record."""
    records: Sequence[StoredAttempt]
    reach: Reach = EVERYWHERE
    """Records of other queues are not kept."""


class ForgetDevice(Command[None], frozen=True):
    """Delete what is stored of a device. The error is `DeviceNotFound`."""

    brings_more: ClassVar[bool] = False
    name: str


class OpenLane(Command[bool], frozen=True):
    """Let jobs leave for a device that were stored in its queues by their names.

    Returns False if there are none. The errors are `LanesMeet` and `TooManyLanes`.
    """

    sync: ClassVar[SyncRule] = SyncRule.NONE

    device: str
