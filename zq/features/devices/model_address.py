"""Addresses: jobs for a device, which it asks for.

A job with `to: DEVICE` waits in a queue of its own, `to/DEVICE/QUEUE`. All queues of a device leave
by one lane, `to:DEVICE` (`zq.features.forward`): no worker here gets their jobs, and the device
fetches them by their numbers. It stores them in the plain queue.
"""

from zq.features.devices.model import check_device
from zq.features.forward.model import LaneRule
from zq.model.errors import InvalidRequest
from zq.model.job import JobSettings
from zq.model.names import check_name

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
