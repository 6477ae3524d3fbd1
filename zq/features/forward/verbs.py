"""The verbs about lanes."""

from types import NoneType

from zq.features.forward.wire import LaneBody, LaneDocument, LanesDocument, ResumeBody
from zq.model.keys import KeyScope
from zq.verbs import Verb

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_LANE = "/forward/{name}"
_UNKNOWN = {404: "There is no such lane."}
_MEETS = {409: "A queue would be on two lanes.", 422: "There are too many lanes."}

LIST = Verb("GET", "/forward", READ, LanesDocument, whole=True)
GET = Verb("GET", _LANE, READ, LaneDocument, refusals=_UNKNOWN, whole=True)
PUT = Verb("PUT", _LANE, MANAGE, LaneDocument, LaneBody, refusals=_MEETS, whole=True)
DELETE = Verb("DELETE", _LANE, MANAGE, NoneType, refusals=_UNKNOWN, whole=True)
PAUSE = Verb("POST", f"{_LANE}/pause", MANAGE, LaneDocument, refusals=_UNKNOWN, whole=True)
RESUME = Verb(
    "POST", f"{_LANE}/resume", MANAGE, LaneDocument, ResumeBody, refusals=_UNKNOWN, whole=True
)
