"""The metrics of devices: how many there are, and the worst ones by name."""

from typing import NamedTuple

from zq.features.devices.model import DeviceOrder, DeviceSums, SeenDevice
from zq.features.devices.store import DeviceReads
from zq.http.api.parts import ApiParts
from zq.http.metrics import Metric, Scrape, Values, one

MOST_DEVICES = 20
"""How many devices a scrape names. Its cost must not grow with them."""


class DeviceFigures(NamedTuple):
    """All devices together, those that are silent for longest, and those furthest behind."""

    sums: DeviceSums
    silent: list[SeenDevice]
    behind: list[SeenDevice]


class DeviceReader:
    """Reads the devices for a scrape."""

    def __init__(self, parts: ApiParts) -> None:
        self._reads = parts.services.store.reads.of(DeviceReads)
        self._clock = parts.services.clock

    async def read(self) -> DeviceFigures:
        """The devices of this moment. Raises `ReadTimeout`."""
        reads = self._reads
        return DeviceFigures(
            await reads.device_sums(self._clock.now_ms()),
            await reads.devices(DeviceOrder.SILENCE, 0, MOST_DEVICES),
            await reads.devices(DeviceOrder.LAG, 0, MOST_DEVICES),
        )


def _total(scrape: Scrape) -> Values:
    return one(scrape[DeviceFigures].sums.total)


def _faults(scrape: Scrape) -> Values:
    sums = scrape[DeviceFigures].sums
    return [(("silent",), sums.silent), (("behind",), sums.behind), (("clock",), sums.clock)]


def _silences(scrape: Scrape) -> Values:
    for device, seen_at in scrape[DeviceFigures].silent:
        yield (device.name,), max(scrape.now - seen_at, 0) / 1000


def _unsent(scrape: Scrape) -> Values:
    return [((device.name,), device.jobs) for device, _ in scrape[DeviceFigures].behind]


READERS = (DeviceReader,)

METRICS = (
    Metric("zq_devices", "gauge", "Devices that have reported.", _total),
    Metric(
        "zq_devices_at_fault",
        "gauge",
        "Devices that are `silent`, `behind`, or whose `clock` is off.",
        _faults,
        ("fault",),
    ),
    Metric(
        "zq_device_silence_seconds",
        "gauge",
        "For how long nothing was heard of a device: the"
        f" {MOST_DEVICES} that were heard of longest ago.",
        _silences,
        ("device",),
    ),
    Metric(
        "zq_device_unsent_jobs",
        "gauge",
        f"Jobs that a device had not sent when it reported: the {MOST_DEVICES} that are furthest"
        " behind.",
        _unsent,
        ("device",),
    ),
)
