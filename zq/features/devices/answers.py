"""What the verbs about devices do."""

from zq.answers import Asked, VerbAnswers
from zq.features.devices import verbs
from zq.features.devices.model import DeviceOrder
from zq.features.devices.service import Devices
from zq.features.devices.wire import (
    DeviceDocument,
    DevicesDocument,
    ReportedDocument,
    decode_report,
    device_document,
    devices_document,
)
from zq.wire.query import choice, limit_in, whole_number

ANSWERS = VerbAnswers()


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
    return ReportedDocument(name, mode, services.clock.now_ms(), services.store.epoch)


@ANSWERS.to(verbs.DELETE)
async def forget(asked: Asked) -> None:
    """Forget a device. Another one may have its name then. Its producers keep their numbers."""
    await asked.services[Devices].forget(asked.path["name"])
