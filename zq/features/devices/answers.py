"""What the verbs about devices do."""

import asyncio

from msgspec import Raw

from zq.answers import Asked, VerbAnswers
from zq.features.devices import verbs
from zq.features.devices.model import DeviceOrder
from zq.features.devices.service import DeviceHistory, Devices, Fetches, Fleets, producer_of
from zq.features.devices.verbs import (
    DeviceDocument,
    DevicesDocument,
    FetchedDocument,
    FleetDocument,
    HistoryEnd,
    LackingDocument,
    ReportedDocument,
    decode_fetch,
    decode_fleet,
    decode_history,
    decode_report,
    device_document,
    devices_document,
)
from zq.features.forward.wire_sent import sent_jobs
from zq.features.producers.wire import ProducerBody, mark_of_body
from zq.model.names import check_group
from zq.wire.query import choice, limit_in, whole_number

ANSWERS = VerbAnswers()

SLICE = 256
"""So many jobs are turned into bodies in one go: in about a millisecond."""


@ANSWERS.to(verbs.LIST)
async def devices(asked: Asked) -> DevicesDocument:
    """The devices that forward their jobs to this server, and what is wrong with them.

    A device is `silent` if three of its reports are missing, `behind` if its oldest unsent job was
    an hour old, and its `clock` is off if it differs by a minute.
    """
    given, service = asked.query, asked.services[Devices]
    order = choice(given, "order", DeviceOrder, DeviceOrder.NAME)
    skip = whole_number("from", given.get("from", "0"), verbs.MOST_SKIPPED)
    limit = limit_in(given, verbs.USUAL, verbs.MOST)
    found = await service.page(order, skip, limit + 1)
    next = skip + limit if len(found) > limit else None
    now = asked.services.clock.now_ms()
    return devices_document(found[:limit], await service.sums(), now, next)


@ANSWERS.to(verbs.GET)
async def get(asked: Asked) -> DeviceDocument:
    """One device: when it was last heard of, what it has not sent, its clock and its lanes."""
    seen = await asked.services[Devices].get(asked.path["name"])
    return device_document(seen, asked.services.clock.now_ms())


@ANSWERS.to(verbs.PUT)
async def report(asked: Asked) -> ReportedDocument:
    """Tell the server what a device has not sent yet, by lane, and what its clock shows.

    A key may report for a device if it may write as its producers, `NAME/…`. `instance` names this
    start of the device and `before` the one before it, by which two devices of one name are found.
    """
    name, services = asked.path["name"], asked.services
    await services[Devices].report(name, decode_report(asked.body, asked.codec), asked.key)
    durable = services.admin.health().durability.enqueues
    mode = "fsync" if durable else "buffered"
    now, batch = services.clock.now_ms(), await services[Devices].batch()
    return ReportedDocument(name, mode, now, services.store.at_start.epoch, batch)


@ANSWERS.to(verbs.FETCH)
async def fetch(asked: Asked) -> FetchedDocument:
    """Give a device the jobs that are for it (`to`), by numbers, and wait for them.

    What the device has stored, up to `last` in `epoch`, is complete from then on. It stores what it
    gets under these numbers, as a producer does, so that a lost answer costs nothing. The key must
    be bound to the device: `producers=NAME/*`.
    """
    body = decode_fetch(asked.body, asked.codec)
    found = await asked.services[Fetches].fetch(asked.path["name"], body, asked.key)
    parts: list[bytes] = []
    for start in range(0, len(found.jobs), SLICE):
        if start:
            await asyncio.sleep(0)
        parts.append(sent_jobs(found.jobs[start : start + SLICE], found.steady))
    batch = await asked.services[Devices].batch()
    return FetchedDocument(found.epoch, found.first, Raw(b"[%b]" % b",".join(parts)), batch)


@ANSWERS.to(verbs.HISTORY)
async def history(asked: Asked) -> HistoryEnd:
    """Append records of a device's history to that of this server, under the device's name.

    Each record is stored once, by its number. Those of queues beyond the key's prefixes are not
    kept. The answer has the last number that is here. The body may be compressed, with
    `Content-Encoding: gzip`.
    """
    name, service = asked.path["name"], asked.services[DeviceHistory]
    body = decode_history(asked.body, asked.codec)
    if body.epoch is None:
        end = await service.end(name, body.instance, asked.key)
        return HistoryEnd(None, 0) if end is None else HistoryEnd(end.epoch, end.last)
    mark = mark_of_body(ProducerBody(producer_of(name), body.epoch, body.seq, body.after))
    end = await service.append(name, body.instance, mark, body.records, asked.key, asked.reach)
    return HistoryEnd(end.epoch, end.last)


@ANSWERS.to(verbs.SEND)
async def send(asked: Asked) -> FleetDocument:
    """Store a job for each known device of a fleet, all or none: 201.

    `to` is the name of a device, or what names begin with and a star. The jobs have one `group`,
    that of the job or a new one, by which `GET /devices/jobs/{group}` tells who lacks it. A
    `unique_key` counts for each device by itself: one that keeps a job of another group with that
    key gets none, and is not counted. A `batch` is refused.
    """
    to, job = decode_fleet(asked.body, asked.codec, asked.limits)
    return FleetDocument(*await asked.services[Fleets].send(to, job, asked.reach))


@ANSWERS.to(verbs.LACKING)
async def lacking(asked: Asked) -> LackingDocument:
    """The devices that do not have the job of a group: none, once each has said that it has."""
    group = check_group(asked.path["group"])
    return LackingDocument(*await asked.services[Fleets].lacking(group, asked.reach))


@ANSWERS.to(verbs.DELETE)
async def forget(asked: Asked) -> None:
    """Forget a device. Another one may have its name then. Its producers keep their numbers."""
    await asked.services[Devices].forget(asked.path["name"])
