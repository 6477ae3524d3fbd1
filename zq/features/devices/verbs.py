"""The verbs about devices."""

from types import NoneType
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from zq.features.devices.model import (
    MOST_RECORDS,
    DeviceOrder,
    DeviceReport,
    DeviceSums,
    FetchBody,
    Label,
    LaneReport,
    SeenDevice,
    faults_of,
    queues_of,
)
from zq.features.history.model import ForwardedAttempt
from zq.features.producers.model import MAX_SEQ
from zq.model.errors import InvalidRequest
from zq.model.job import NewJob
from zq.model.keys import KeyScope
from zq.verbs import FIFTY, WHOLE, Parameter, Verb, choices
from zq.wire.bodies import JobBody, Limits, new_job
from zq.wire.codecs import BodyCodec, decode


class ReportedDocument(msgspec.Struct, omit_defaults=True):
    """What a device has to know of the server.

    `durability` is `fsync` if the answer to an enqueue means that its jobs are on the disk, else
    `buffered`. `now` is the server's clock in milliseconds. `hub` names the server's database.
    `batch` is the most jobs of a request, so that no device keeps others waiting; without it, the
    device may choose.
    """

    name: str
    durability: str
    now: int
    hub: str
    batch: int | None = None


class FetchedDocument(msgspec.Struct, omit_defaults=True):
    """Jobs for a device, as bodies of `POST /jobs`. `seq` is the number of the first one.

    The device stores them under these numbers, and tells the last one when it asks again. In
    another epoch than before, it begins with the number 1. `batch` is as in the answer to a report.
    """

    epoch: str | None
    seq: int
    jobs: Annotated[Raw, Meta(extra_json_schema={"type": "array", "items": {"type": "object"}})]
    batch: int | None = None


class HistoryBody(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Records of a device's history, in their order without gaps, from the number `seq` on.

    `epoch` names the device's database. Where the server has records of another epoch, `after` is
    the last number of that: `EPOCH:NUMBER`. Without records, it asks where to go on.
    """

    instance: Label
    epoch: Label | None = None
    seq: Annotated[int, Meta(ge=1, le=MAX_SEQ)] = 1
    after: Annotated[str, Meta(max_length=100)] | None = None
    records: Annotated[list[ForwardedAttempt], Meta(max_length=MOST_RECORDS)] = []


class HistoryEnd(msgspec.Struct):
    """The last record of a device's history that a server has. `epoch` is null if it has none."""

    epoch: str | None
    last: int


class FleetJob(JobBody, frozen=True, forbid_unknown_fields=True):
    """A job for devices, as in the body of `POST /jobs`."""


class FleetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job for devices: one by its name, or those whose names begin so, `device-*`."""

    to: str
    job: FleetJob


class FleetDocument(msgspec.Struct):
    """The group of the jobs, and how many devices have one of them."""

    group: str
    devices: int


class LackingDocument(msgspec.Struct):
    """How many devices have not got the job of a group yet, and up to 100 of their names.

    `missed` has up to 100 others that will never get it: the device has refused the job, or it was
    cancelled or has expired at the server, which has not forgotten it yet.
    """

    waiting: int
    devices: list[str]
    missed: list[str]


class DeviceDocument(msgspec.Struct, omit_defaults=True):
    """A device. Times are in milliseconds since the epoch.

    `seen_at` is when it was last heard of, by a report or by jobs, and `since` when its present
    start was. `clock_ms` is how far its clock is ahead of the server's. `jobs` and `bytes` are what
    it had not sent when it reported, and `oldest_ms` was the age of the oldest of these jobs.
    `faults` may have `silent`, `behind` and `clock`. `queues` has the unsent jobs by queue.
    """

    name: str
    version: str
    seen_at: int
    reported_at: int
    since: int
    every_ms: int
    clock_ms: int
    jobs: int
    bytes: int
    oldest_ms: int | None = None
    faults: list[str] = []
    queues: dict[str, int] = {}
    lanes: list[LaneReport] = []


class DevicesDocument(msgspec.Struct, omit_defaults=True):
    """A page of devices, how many there are, and how many have each fault.

    `jobs` and `bytes` are what all of them had not sent. `next` is the `from` of the next page.
    """

    devices: list[DeviceDocument]
    total: int
    silent: int
    behind: int
    clock: int
    jobs: int
    bytes: int
    next: int | None = None


_history = msgspec.json.Decoder(HistoryBody)
_fetch = msgspec.json.Decoder(FetchBody)
_fleet = msgspec.json.Decoder(FleetBody)
_report = msgspec.json.Decoder(DeviceReport)


def decode_report(body: bytes, codec: BodyCodec) -> DeviceReport:
    """The body in which a device reports. Raises `InvalidRequest`."""
    return decode(body, codec, _report)


def decode_fetch(body: bytes, codec: BodyCodec) -> FetchBody:
    """The body in which a device asks for its jobs. Raises `InvalidRequest`."""
    return decode(body, codec, _fetch)


def decode_history(body: bytes, codec: BodyCodec) -> HistoryBody:
    """The body with records of a device's history. Raises `InvalidRequest`."""
    return decode(body, codec, _history)


def decode_fleet(body: bytes, codec: BodyCodec, limits: Limits) -> tuple[str, NewJob]:
    """The body of a job for a fleet: whom it is for, and the job. Raises `InvalidRequest`."""
    sent = decode(body, codec, _fleet)
    address: str | None = sent.job.to  # type: ignore[attr-defined]
    if address is not None:
        raise InvalidRequest("job.to: `to` stands beside the job, and not in it")
    return sent.to, new_job(sent.job, codec, limits.payload, set())


def device_document(seen: SeenDevice, now: int) -> DeviceDocument:
    """A device as clients see it, at a time in milliseconds."""
    device = seen.device
    return DeviceDocument(
        device.name,
        device.version,
        seen.seen_at,
        device.reported_at,
        device.since,
        device.every_ms,
        device.clock_ms,
        device.jobs,
        device.bytes,
        device.oldest_ms,
        [fault.value for fault in faults_of(seen, now)],
        queues_of(device.lanes),
        device.lanes,
    )


def devices_document(
    found: list[SeenDevice], sums: DeviceSums, now: int, next: int | None
) -> DevicesDocument:
    return DevicesDocument([device_document(each, now) for each in found], *sums, next=next)


READ, ENQUEUE, MANAGE = KeyScope.READ, KeyScope.ENQUEUE, KeyScope.MANAGE

USUAL, MOST = 50, 500
"""How many devices a page has, and how many it may have."""

MOST_SKIPPED = 1_000_000

_DEVICE = "/devices/{name}"
_UNKNOWN = {404: "The device has not reported, or was deleted."}
_TAKEN = {
    403: "The key does not speak for this device.",
    409: "Another device of this name is alive.",
    422: "There are too many devices.",
}

_ORDER = Parameter(
    "order",
    choices(DeviceOrder),
    "By `name`, those that were heard of longest ago first (`silence`), or those whose oldest"
    " unsent job is the oldest (`lag`).",
)
_FROM = Parameter("from", WHOLE, "The `next` of the page before: leave out so many devices.")

LIST = Verb("GET", "/devices", READ, DevicesDocument, query=(_ORDER, _FROM, FIFTY), whole=True)
GET = Verb("GET", _DEVICE, READ, DeviceDocument, refusals=_UNKNOWN, whole=True)
PUT = Verb("PUT", _DEVICE, ENQUEUE, ReportedDocument, DeviceReport, refusals=_TAKEN)
FETCH = Verb(
    *("POST", _DEVICE + "/fetch", ENQUEUE, FetchedDocument, FetchBody),
    refusals=_UNKNOWN | {403: "The key is not bound to the device.", 409: _TAKEN[409]},
)
HISTORY = Verb(
    *("POST", _DEVICE + "/history", ENQUEUE, HistoryEnd, HistoryBody),
    refusals=_UNKNOWN | {403: _TAKEN[403], 409: _TAKEN[409], 422: "The server keeps no history."},
    takes_gzip=True,
)
SEND = Verb(
    *("POST", "/devices/jobs", ENQUEUE, FleetDocument, FleetBody),
    refusals={422: "No such device is known."},
    created=True,
)
LACKING = Verb("GET", "/devices/jobs/{group}", READ, LackingDocument)
DELETE = Verb("DELETE", _DEVICE, MANAGE, NoneType, refusals=_UNKNOWN, whole=True)
