"""The verbs that change many jobs, or take a change back, and those about such changes."""

from types import NoneType
from typing import Any

from zq.features.sweeps.model import MOST_REASON
from zq.features.sweeps.wire import (
    Cancelled,
    Patched,
    Redriven,
    Requeued,
    SweepDocument,
    SweepPreviewDocument,
    SweepsDocument,
    UndoneDocument,
)
from zq.model.keys import KeyScope
from zq.verbs.parameters import CHOICE, FIFTY, TEXT, WHOLE
from zq.verbs.verb import ENDED, NO_JOB, UNBUILT, Deleted, Parameter, Verb
from zq.wire import bodies, settings
from zq.wire.documents import JobDocument

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

_MANY = {429: "Too many changes by filter run: try again after `Retry-After` seconds."}
SWEEPING = _MANY | {409: "It would change more than the preview has told: look again."}
"""The refusals of a change by filter."""

_REASON = Parameter(
    "reason",
    {"type": "string", "maxLength": MOST_REASON},
    "Why, for the list of sweeps and the audit.",
)
CHOSEN = (
    *CHOICE,
    _REASON,
    Parameter(
        "count",
        WHOLE,
        "How many jobs a preview has counted, with its `upto`: the change is refused if it would"
        " change more. The operators' page has to send it.",
    ),
    Parameter("typed", TEXT, "With `count`: the queue, or `delete`, to delete over 100 jobs."),
)
"""The filter of a change, and what goes with it."""

_VERB = Parameter(
    "verb",
    {"type": "string", "enum": ["delete", "cancel", "requeue", "patch"]},
    "The change that is looked ahead to: `delete`.",
)
_FORCE = Parameter("force", {"type": "boolean"}, "Whether the cancellation is one by force.")
_HOME = Parameter("home", {"type": "boolean"}, "Whether it goes to the queue of its first death.")
_BEFORE = Parameter("before", WHOLE, "Only sweeps before this id.")
_NO_SWEEP = {404: "There is no such sweep."}
_REFUSED = {422: "A status or a value does not allow this."}
_NOTHING = {409: "There is nothing to take back."}

_SWEEP = "/sweeps/{id}"
_OF_MANY: dict[str, Any] = {"query": CHOSEN, "refusals": _REFUSED | SWEEPING}
_OF_ONE: dict[str, Any] = {"query": (_HOME,), "refusals": NO_JOB | ENDED}
_LIMIT: dict[str, Any] = {"body": settings.RequeueBody, "optional": True}
_FORCED: dict[str, Any] = {"body": bodies.CancelBody, "optional": True}

PATCH = Verb("PATCH", "/jobs", MANAGE, Patched, bodies.PatchBody, **_OF_MANY)
DELETE = Verb("DELETE", "/jobs", MANAGE, Deleted, query=CHOSEN, refusals=UNBUILT | SWEEPING)
REQUEUE = Verb("POST", "/jobs/requeue", MANAGE, Requeued, **_LIMIT, **_OF_MANY)
REDRIVE = Verb("POST", "/jobs/redrive", MANAGE, Redriven, **_LIMIT, **_OF_MANY)
CANCEL = Verb("POST", "/jobs/cancel", MANAGE, Cancelled, **_FORCED, **_OF_MANY)

REQUEUE_ONE = Verb("POST", "/jobs/{id}/requeue", MANAGE, JobDocument, **_OF_ONE)
RETRY_ONE = Verb("POST", "/jobs/{id}/retry", MANAGE, JobDocument, **_OF_ONE)
CANCEL_ONE = Verb(
    "POST", "/jobs/{id}/cancel", MANAGE, JobDocument, **_FORCED, refusals=NO_JOB | ENDED
)

PREVIEW = Verb(
    "GET",
    "/sweeps/preview",
    READ,
    SweepPreviewDocument,
    query=(*CHOICE, _VERB, _FORCE),
    refusals=_REFUSED,
)
RUNNING = Verb("GET", "/sweeps", READ, SweepsDocument)
ENDED_ONES = Verb("GET", "/sweeps/ended", READ, SweepsDocument, query=(_BEFORE, FIFTY))
GET = Verb("GET", _SWEEP, READ, SweepDocument, refusals=_NO_SWEEP)
UNDO = Verb(
    "POST",
    f"{_SWEEP}/undo",
    MANAGE,
    UndoneDocument,
    query=(_REASON,),
    refusals=_NO_SWEEP | _NOTHING | _MANY,
)
STOP = Verb("DELETE", _SWEEP, MANAGE, NoneType, refusals=_NO_SWEEP)
