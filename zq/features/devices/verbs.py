"""The verbs about devices."""

from types import NoneType

from zq.features.devices.model import DeviceOrder, DeviceReport, FetchBody
from zq.features.devices.wire import (
    DeviceDocument,
    DevicesDocument,
    FetchedDocument,
    FleetBody,
    FleetDocument,
    HistoryBody,
    HistoryEnd,
    LackingDocument,
    ReportedDocument,
)
from zq.model.keys import KeyScope
from zq.verbs.parameters import FIFTY, WHOLE, choices
from zq.verbs.verb import Parameter, Verb

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
